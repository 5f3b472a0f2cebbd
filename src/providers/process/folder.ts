/**
 * The folder of a box: `<dataFolder>/boxes/<ref>-<attempt number>`. It is built under a name of its own (`.making-…`) and renamed, so it is
 * there whole or not at all; and before it is deleted it is renamed to `.removing-…`, which says that nothing in it lives any more.
 */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readFile, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { processAlive, processStart } from '../../lib/host.ts'
import { type InitFacts, parseInitFile } from './identity.ts'
import { type BoxMode, errorCode } from './words.ts'

/** What is fixed before a box's first process is started: `box.json`. No secrets. */
export interface BoxRecord {
  version: 1
  ref: string
  installation: string
  attemptNumber: number
  attemptToken: string
  /** The keyed tag; missing: it was made without one. */
  mac?: string
  leaseID: string | null
  name: string
  project: string
  labels: Record<string, string>
  createdAt: string
  mode: BoxMode
  userNamespace: boolean
  bootID: string
  /** Inode of the PID namespace of the coordinator that made it. */
  observer?: string
}

export interface Box {
  nativeId: string
  folder: string
  /** The folder has its removal name: what lived in it is proved gone, and it is being deleted. */
  removing: boolean
  record: BoxRecord
  /** Null until the first process has reported. */
  init: InitFacts | null
}

export type ReadBox = { kind: 'box'; box: Box } | { kind: 'none' } | { kind: 'damaged'; why: string }

export const boxesFolder = (dataFolder: string): string => join(dataFolder, 'boxes')
export const boxFolder = (dataFolder: string, nativeId: string): string => join(boxesFolder(dataFolder), nativeId)
const removingFolder = (dataFolder: string, nativeId: string): string => join(boxesFolder(dataFolder), `.removing-${nativeId}`)

const making = /^\.making-([a-z][a-z0-9]{11})-(\d+)-(\d+)-[0-9a-f]+$/

const parseRecord = (text: string): BoxRecord | null => {
  try {
    const value = JSON.parse(text) as BoxRecord
    const texts = [value.ref, value.installation, value.attemptToken, value.mode]
    return value.version === 1 && texts.every((field) => typeof field === 'string' && field !== '') ? value : null
  } catch {
    return null
  }
}

const readText = async (path: string): Promise<string | null> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null
    throw error
  }
}

export const readInit = async (folder: string): Promise<InitFacts | null> => parseInitFile((await readText(join(folder, 'init'))) ?? '')

const exists = async (folder: string): Promise<boolean> => {
  try {
    await readdir(folder)
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return false
    throw error
  }
}

/** False for a link, or anything else in the place of a folder: it is never followed, and never deleted. True when nothing is there. */
export const isOwnFolder = async (folder: string): Promise<boolean> => {
  try {
    return (await lstat(folder)).isDirectory()
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return true
    throw error
  }
}

const foreign = (folder: string): string => `${folder} is not the folder that was made, but a link or a file in its place`
const refuseForeign = async (folder: string): Promise<void> => {
  if (!(await isOwnFolder(folder))) throw new Error(foreign(folder))
}

const readFolder = async (folder: string, nativeId: string, removing: boolean): Promise<ReadBox> => {
  if (!(await isOwnFolder(folder))) return { kind: 'damaged', why: foreign(folder) }
  const text = await readText(join(folder, 'box.json'))
  if (text === null) {
    // The record goes last but for the folder itself, so an empty one is all that a removal can have left.
    if (removing) await rmdir(folder).catch(() => undefined)
    return (await exists(folder)) ? { kind: 'damaged', why: `${folder} holds no box.json` } : { kind: 'none' }
  }
  const record = parseRecord(text)
  if (record === null) return { kind: 'damaged', why: `${folder}/box.json can't be understood` }
  if (`${record.ref}-${record.attemptNumber}` !== nativeId) return { kind: 'damaged', why: `${folder}/box.json is of another box` }
  return { kind: 'box', box: { nativeId, folder, removing, record, init: await readInit(folder) } }
}

/** Throws only when the folder can't be read at all: a failed read is never emptiness. */
export const readBox = async (dataFolder: string, nativeId: string): Promise<ReadBox> => {
  const box = await readFolder(boxFolder(dataFolder, nativeId), nativeId, false)
  return box.kind === 'none' ? readFolder(removingFolder(dataFolder, nativeId), nativeId, true) : box
}

/**
 * The native ids of all boxes of a ref, folders that are being deleted included. Half-made folders whose maker is dead are
 * deleted in passing: nothing is ever started in one, so they are litter and no resource.
 */
export const listBoxes = async (dataFolder: string, ref: string): Promise<string[]> => {
  let names: string[]
  try {
    names = await readdir(boxesFolder(dataFolder))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
  const found = new Set<string>()
  for (const name of names) {
    const nativeId = name.replace(/^\.removing-/, '')
    if (nativeId.startsWith(`${ref}-`) && /^\d+$/.test(nativeId.slice(ref.length + 1))) found.add(nativeId)
    const [, owner, pid, start] = making.exec(name) ?? []
    if (owner === ref && pid && start && !processAlive(Number(pid), start)) {
      await rm(join(boxesFolder(dataFolder), name), { recursive: true, force: true })
    }
  }
  return [...found].toSorted()
}

/** A folder to build a box in, named after its maker; 0700. */
export const makeScratch = async (dataFolder: string, ref: string, unique: string): Promise<string> => {
  await mkdir(boxesFolder(dataFolder), { recursive: true, mode: 0o700 })
  const scratch = join(boxesFolder(dataFolder), `.making-${ref}-${process.pid}-${processStart(process.pid)}-${unique}`)
  await mkdir(scratch, { mode: 0o700 })
  return scratch
}

/** Gives a built folder its name. False when a box of that name is already there, or being deleted. */
export const publish = async (dataFolder: string, scratch: string, nativeId: string): Promise<boolean> => {
  if (await exists(removingFolder(dataFolder, nativeId))) return false
  try {
    // Never replaces a box: a folder can take the place of an empty one only.
    await rename(scratch, boxFolder(dataFolder, nativeId))
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOTEMPTY' || errorCode(error) === 'EEXIST') return false
    throw error
  }
}

/** Writes a file that must outlive a power cut. */
export const writeDurably = async (path: string, text: string): Promise<void> => {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    await file.writeFile(text)
    await file.datasync()
  } finally {
    await file.close()
  }
}

/** Replaces a file in one step, so that a reader sees the old or the new text. */
export const replaceFile = async (path: string, text: string, unique: string): Promise<void> => {
  await writeFile(`${path}.${unique}`, text, { mode: 0o600 })
  await rename(`${path}.${unique}`, path)
}

/** Takes the claim before the box's first process does: then it will never start. False when it was taken. */
export const takeClaim = async (folder: string): Promise<boolean> => {
  try {
    await writeFile(join(folder, 'claim'), '', { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  }
}

/** What a box has written may lie deeper than one path can say; `rm` of the system walks down by handles, and follows no link either. */
export const deleteTree = async (path: string, signal: AbortSignal): Promise<void> => {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 2 })
  } catch (error) {
    if (errorCode(error) !== 'ENAMETOOLONG') throw error
    await promisify(execFile)('rm', ['-rf', '--', path], { signal })
  }
}

/**
 * Deletes the folder of a box in which nothing lives any more. What identifies it goes last, so that a deletion that was
 * interrupted is still known for what it is. Throws `signal.reason` between entries, and where a link stands in the folder's place.
 */
export const deleteFolder = async (dataFolder: string, box: Box, signal: AbortSignal): Promise<void> => {
  const removing = removingFolder(dataFolder, box.nativeId)
  const last = ['init', 'box.json']
  let names: string[]
  try {
    await refuseForeign(box.removing ? removing : box.folder)
    if (!box.removing) await rename(box.folder, removing)
    await refuseForeign(removing)
    names = await readdir(removing)
  } catch (error) {
    // Other hands were faster, or two removals ran at once.
    if (errorCode(error) === 'ENOENT') return
    throw error
  }
  for (const name of names) {
    signal.throwIfAborted()
    if (!last.includes(name)) await deleteTree(join(removing, name), signal)
  }
  for (const name of last) await rm(join(removing, name), { force: true })
  await rm(removing, { recursive: true, force: true })
}
