/**
 * A number beside the SQLite file (`leasehold.db.mark`) that is never newer than the one in it. A backup that is written over the file in place keeps the
 * file's identity and has the older number: that is how it shows. On PostgreSQL there is none.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { hex } from '../lib/ids.ts'
import type { InstallationId } from '../model/ids.ts'
import { fileOf } from './place.ts'
import type { Session } from './store.ts'

export interface Mark {
  installation: InstallationId
  mark: number
}

/** Null where there is nothing beside it. */
const pathOf = async (session: Session): Promise<string | null> => {
  const file = session.dialect === 'sqlite' ? await fileOf(session) : null
  return file === null ? null : `${file}.mark`
}

/** Null: there is none, or none that can be understood; that says nothing. */
export const readMark = async (session: Session): Promise<Mark | null> => {
  const path = await pathOf(session)
  if (path === null) return null
  try {
    const value = JSON.parse(await readFile(path, 'utf8')) as Partial<Mark>
    return typeof value.mark === 'number' && typeof value.installation === 'string' ? (value as Mark) : null
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Only after the transaction that counted the number up has committed. */
export const writeMark = async (session: Session, mark: Mark): Promise<void> => {
  const path = await pathOf(session)
  if (path === null) return
  const fresh = `${path}.${hex(4)}`
  await writeFile(fresh, `${JSON.stringify(mark)}\n`, { mode: 0o600 })
  await rename(fresh, path)
}
