import { constants } from 'node:fs'
import { open, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { joinPath } from '../model/prune/repository-path.ts'
import { mostFileBytes, type FileResult, type FileTree } from './file-tree.ts'

/** The files of a folder. A link is followed within it, and refused where it leads out. */
export const folderTree = (folder: string, name: string = folder): FileTree => ({ name, read: (path) => readWithin(folder, path) })

const refuse = (message: string): FileResult => ({ ok: false, message })

const readWithin = async (folder: string, path: string): Promise<FileResult> => {
  const inside = joinPath('', path)
  if (inside === null || inside === '') return refuse('the path leads out of the folder')
  try {
    const root = await realpath(folder)
    const real = await realpath(join(root, inside))
    if (!real.startsWith(root === sep ? sep : root + sep)) return refuse('a link leads out of the folder')
    // Not followed again, and never waited for: what is there now may be another thing than what was looked at.
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const found = await file.stat()
      if (!found.isFile()) return refuse('it is no file')
      if (found.size > mostFileBytes) return refuse(`it is larger than ${mostFileBytes / 1024 / 1024} MiB`)
      const again = await stat(await realpath(join(root, inside)))
      if (again.ino !== found.ino || again.dev !== found.dev) return refuse('it was replaced while it was read')
      const { bytesRead, buffer } = await file.read(Buffer.alloc(mostFileBytes + 1), 0, mostFileBytes + 1, 0)
      return bytesRead > mostFileBytes
        ? refuse(`it is larger than ${mostFileBytes / 1024 / 1024} MiB`)
        : { ok: true, bytes: buffer.subarray(0, bytesRead) }
    } finally {
      await file.close()
    }
  } catch (error) {
    return refuse(reason(error))
  }
}

const reason = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read'
  if (code === 'ELOOP') return 'its links go round in a circle'
  return `it can't be read (${code ?? 'unknown'})`
}
