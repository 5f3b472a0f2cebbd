/** The app set from where it lives: a file, a folder that another process publishes to, or a repository (prune 2.1). */
import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { readAppSet, type AppSet } from '../model/prune/app-set.ts'
import { faultOf, inOrder, type Fault } from '../model/prune/fault.ts'
import { readReleaseFile, type ReleaseEntry } from '../model/prune/release-file.ts'
import type { Document } from '../model/prune/document.ts'
import { textOf, type FileTree } from './file-tree.ts'
import { folderTree } from './folder-tree.ts'
import type { Repository } from './git/repository.ts'
import type { Loaded } from './last-good.ts'
import { parseYaml } from './yaml.ts'

/** Nothing in a repository can change it: it comes from the installation's own settings. */
export type AppSetPlace =
  | { mode: 'file'; path: string }
  | { mode: 'folder'; folder: string; path: string }
  | { mode: 'git'; repository: Repository; name: string; revision: string; path: string }

export interface LoadedAppSet {
  appSet: AppSet
  /** The commit that it was read from; null: it was read from a folder. */
  commit: string | null
}

/** `path` is absolute in mode `file`, and inside the folder or repository else. */
export const loadAppSet = async (place: AppSetPlace): Promise<Loaded<LoadedAppSet>> => {
  if (place.mode === 'file') return await loadFrom(folderTree(dirname(place.path)), basename(place.path), place.path, null)
  if (place.mode === 'folder') return await loadFrom(folderTree(place.folder), place.path, place.path, null)
  const fetched = await place.repository.fetch(place.revision)
  if (!fetched.ok) return { ok: false, faults: [faultOf(place.path, `${place.name} at ${place.revision}: ${fetched.message}`)] }
  return await loadFrom(fetched.tree, place.path, place.path, fetched.commit)
}

const loadFrom = async (tree: FileTree, path: string, called: string, commit: string | null): Promise<Loaded<LoadedAppSet>> => {
  const read = await readDocument(tree, path, called)
  if (!read.ok) return read
  const result = readAppSet(read.document)
  return result.ok
    ? { ok: true, value: { appSet: result.appSet, commit }, digest: read.digest }
    : { ok: false, faults: inOrder(result.faults) }
}

type DocumentResult = { ok: true; document: Document; digest: string } | { ok: false; faults: Fault[] }

const readDocument = async (tree: FileTree, path: string, called: string): Promise<DocumentResult> => {
  const file = await tree.read(path)
  if (!file.ok) return { ok: false, faults: [faultOf(called, file.message)] }
  const text = textOf(file.bytes)
  if (text === null) return { ok: false, faults: [faultOf(called, 'it is no text in UTF-8')] }
  const parsed = parseYaml(called, text)
  return parsed.ok ? { ok: true, document: parsed.document, digest: createHash('sha256').update(file.bytes).digest('hex') } : parsed
}

export type LoadedReleases = { ok: true; document: Document; releases: ReleaseEntry[] } | { ok: false; faults: Fault[] }

/** The release file of an application, in the tree of its repository. */
export const loadReleases = async (tree: FileTree, path: string): Promise<LoadedReleases> => {
  const read = await readDocument(tree, path, path)
  if (!read.ok) return read
  const result = readReleaseFile(read.document, path)
  return result.ok ? { ok: true, document: read.document, releases: result.releases } : { ok: false, faults: inOrder(result.faults) }
}
