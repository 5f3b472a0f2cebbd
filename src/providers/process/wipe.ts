/**
 * A box for its next holder: all that runs in it but its clock is ended, and its folder is as its create made it. The proof is a look at the kernel's table
 * and at the folder, each whole.
 *
 * What runs in a box runs as the coordinator's user and knows its folder, so nothing in there is taken for what it was: the files that a command is let in
 * by are written anew, and the script that runs already must still be the one that was started. A box of sessions is never wiped: what left its sessions
 * could not be seen.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processEnvironment } from '../../lib/host.ts'
import { exportLines } from '../../lib/shell-variables.ts'
import type { LeftoverOutcome, WipeContext, WipeOutcome } from '../contract.ts'
import { orderFile } from './clock.ts'
import { type Box, deleteTree, replaceFile } from './folder.ts'
import { inspect } from './inspect.ts'
import { grace, signalNamespace } from './remove.ts'
import { enterScript, initScript } from './scripts.ts'
import { readWholeTable } from './table.ts'
import { errorCode, tag } from './words.ts'

const killMs = 8000
const pollMs = 20
const largestFile = 1_000_000

/** The tags that its first process was started with: the kernel keeps them, and no file that the box can write stands for them. */
const tagsOf = (box: Box): Record<string, string> => {
  const environment = processEnvironment(box.init?.pid ?? 0)
  if (environment.kind !== 'read') throw new Error(`the tags of ${box.nativeId} can't be read from its first process`)
  return Object.fromEntries(
    [tag.ref, tag.installation, tag.attempt, tag.mac].flatMap((name) => {
      const value = environment.values.get(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** Files of a box that no holder has anything in, with the text that each must have; null: any, it moves or is compared elsewhere. */
const belongings = (box: Box): ReadonlyMap<string, string | null> =>
  new Map<string, string | null>([
    ['box.json', null],
    ['init', null],
    ['deadline', null],
    ['claim', ''],
    ['init.log', ''],
    ['init.sh', initScript],
    ['enter.sh', enterScript],
    // The tags alone: no token, and no lease.
    ['env', exportLines(tagsOf(box))],
  ])

/** Null: it is no plain file, or not readable as one; a link is never followed. */
const plainText = async (path: string): Promise<string | null> => {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const stat = await file.stat()
      if (!stat.isFile() || stat.nlink !== 1 || stat.size > largestFile) return null
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENXIO', 'EISDIR'].includes(errorCode(error) ?? '')) return null
    throw error
  }
}

const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await lstat(path)).isDirectory()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}

const tenantsOf = async (box: Box, signal: AbortSignal): Promise<{ state: string; tenants: number[] }> => {
  const { state, tenants } = await inspect(box, await readWholeTable(signal))
  return { state, tenants }
}

/** Why not, or null: nothing but its clock runs in it. */
const endTenants = async (box: Box, graceSeconds: number, { signal, stands }: WipeContext): Promise<string | null> => {
  const lost = 'whoever wiped it may have lost it meanwhile'
  if ((await tenantsOf(box, signal)).tenants.length > 0) {
    if (!stands()) return lost
    await signalNamespace(box, 'kill -TERM -1; kill -CONT -1', signal)
    await grace(box, graceSeconds * 1000, signal)
  }
  const end = performance.now() + killMs
  for (;;) {
    const { tenants } = await tenantsOf(box, signal)
    if (tenants.length === 0) return null
    if (performance.now() > end) return `process ${tenants[0]} does not end`
    if (!stands()) return lost
    await signalNamespace(box, 'kill -KILL -1', signal)
    await pause(pollMs, undefined, { signal })
  }
}

const emptyFolder = async (box: Box, { signal, stands }: WipeContext): Promise<string | null> => {
  const own = belongings(box)
  for (const name of await readdir(box.folder)) {
    if (own.has(name)) continue
    if (!stands()) return 'whoever wiped it may have lost it meanwhile'
    await deleteTree(join(box.folder, name), signal)
  }
  await mkdir(join(box.folder, 'home'), { mode: 0o700 })
  for (const name of ['env', 'enter.sh', 'init.log', 'claim'])
    await replaceFile(join(box.folder, name), own.get(name) ?? '', randomBytes(4).toString('hex'))
  return null
}

/** `box`: as just located by its identity. */
export const clearBox = async (box: Box, graceSeconds: number, context: WipeContext): Promise<WipeOutcome> => {
  if (box.init?.inode == null) return { kind: 'failed', why: 'what left the sessions of a box without a namespace could not be seen' }
  const why = (await endTenants(box, graceSeconds, context)) ?? (await emptyFolder(box, context))
  return why === null ? { kind: 'wiped' } : { kind: 'failed', why }
}

/** A clock that was moved since says under which number, and nothing else. */
const isOrder = async (box: Box, name: string): Promise<boolean> =>
  name === orderFile && /^\d{1,16}$/.test((await plainText(join(box.folder, name))) ?? '')

/** All that is in the box and not of its create. */
export const leftoversOf = async (box: Box, signal: AbortSignal): Promise<LeftoverOutcome> => {
  if (box.init?.inode == null) return { kind: 'incomplete', why: 'a box without a namespace can not be looked at as a whole' }
  const left: string[] = []
  const own = belongings(box)
  for (const name of await readdir(box.folder)) if (!own.has(name) && name !== 'home' && !(await isOrder(box, name))) left.push(name)
  for (const [name, text] of own) {
    const stored = await plainText(join(box.folder, name))
    if (stored === null || (text !== null && stored !== text)) left.push(`${name}, which is not as it was made`)
  }
  const home = join(box.folder, 'home')
  if (await isFolder(home)) for (const name of await readdir(home)) left.push(`home/${name}`)
  else left.push('home, which is no folder')
  // Last: what still runs could have written meanwhile.
  const { state, tenants } = await tenantsOf(box, signal)
  if (state !== 'running') return { kind: 'incomplete', why: `the box is ${state}` }
  for (const pid of tenants) left.push(`process ${pid}`)
  return { kind: 'complete', left, looked: 'no process but its clock, and a folder as it was made' }
}
