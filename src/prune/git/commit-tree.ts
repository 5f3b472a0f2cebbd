/** The files of one commit, read from git's objects: nothing is checked out, so no link, filter or attribute of the repository acts on this machine. */
import { folderOf, joinPath } from '../../model/prune/repository-path.ts'
import { mostFileBytes, textOf, type FileResult, type FileTree } from '../file-tree.ts'
import type { GitOutcome } from './run.ts'

export interface TreeEntry {
  mode: string
  object: string
  bytes: number
}

const mostLinks = 20
const link = '120000'
const submodule = '160000'

/** Of `git ls-tree -r -l -z`. Null: it can't be understood. */
export const parseTree = (listing: string): Map<string, TreeEntry> | null => {
  const entries = new Map<string, TreeEntry>()
  for (const line of listing.split('\0')) {
    if (line === '') continue
    const found = /^(\d{6}) (?:blob|commit|tree) ([0-9a-f]{40,64}) +(\d+|-)\t([\s\S]+)$/.exec(line)
    if (!found) return null
    const [, mode, object, bytes, path] = found as unknown as [string, string, string, string, string]
    entries.set(path, { mode, object, bytes: bytes === '-' ? 0 : Number(bytes) })
  }
  return entries
}

const refuse = (message: string): FileResult => ({ ok: false, message })

/** `blob` gives the content of an object. Links are followed within the commit, and refused where they lead out. */
export const commitTree = (
  name: string,
  entries: ReadonlyMap<string, TreeEntry>,
  blob: (object: string) => Promise<GitOutcome>,
): FileTree => {
  const read = async (path: string, links: number): Promise<FileResult> => {
    const inside = joinPath('', path)
    if (inside === null || inside === '') return refuse('the path leads out of the repository')
    const parts = inside.split('/')
    for (let length = 1; length <= parts.length; length += 1) {
      const at = parts.slice(0, length).join('/')
      const entry = entries.get(at)
      if (entry?.mode === submodule) return refuse('it is in a submodule, and these are not fetched')
      if (entry?.mode !== link) continue
      if (links >= mostLinks) return refuse('its links go round in a circle')
      const found = entry.bytes > 4096 ? null : await blob(entry.object)
      if (!found?.ok) return refuse(found ? found.message : 'a link of it is too long')
      const target = joinPath(folderOf(at), textOf(found.stdout) ?? '\0')
      if (target === null) return refuse('a link leads out of the repository')
      return await read([target, ...parts.slice(length)].join('/'), links + 1)
    }
    const entry = entries.get(inside)
    if (!entry) return refuse('there is no such file')
    if (entry.bytes > mostFileBytes) return refuse(`it is larger than ${mostFileBytes / 1024 / 1024} MiB`)
    const found = await blob(entry.object)
    return found.ok ? { ok: true, bytes: found.stdout } : refuse(found.message)
  }
  return { name, read: (path) => read(path, 0) }
}
