/** Keeps accounts open between calls. */
import { statSync } from 'node:fs'
import { type Cloud, openCloud } from './cloud.ts'

export interface CloudOpener {
  /** The account in this file now; a file that was deleted or replaced meanwhile is another account. */
  at(path: string): Cloud
}

export const createOpener = (now?: () => number): CloudOpener => {
  const open = new Map<string, { cloud: Cloud; inode: string }>()
  const inodeOf = (path: string): string | null => {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? null : `${stat.dev}:${stat.ino}`
  }
  return {
    at(path) {
      const known = open.get(path)
      if (known !== undefined && known.inode === inodeOf(path)) return known.cloud
      known?.cloud.close()
      open.delete(path)
      const cloud = openCloud(path, now)
      open.set(path, { cloud, inode: inodeOf(path) ?? '' })
      return cloud
    },
  }
}
