/** Taking a box back: TERM, grace, KILL, verified absence, and only then the folder. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { innermostPid, processAlive, processStat } from '../../lib/host.ts'
import type { RemoveOutcome } from '../contract.ts'
import { BoxUnreachableError, spawnInNamespace } from './enter.ts'
import { type Box, deleteFolder, isOwnFolder, takeClaim } from './folder.ts'
import { type Inspection, initStateOf, inspect, inspectAll } from './inspect.ts'
import { type ProcessTable, readWholeTable } from './table.ts'
import { errorCode, errorText } from './words.ts'

const pollMs = 5
const slowPollMs = 50
/** From KILL until the kernel has collected everything. */
const killMs = 8000
const collectMs = 500

/** Signals a process only while it is the one that the table shows. */
const signalEntry = (table: ProcessTable, pid: number, signal: NodeJS.Signals): void => {
  const entry = table.entries.get(pid)
  const now = processStat(pid)
  if (entry === undefined || now === null || now.start !== entry.start || now.session !== entry.session) return
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/**
 * From inside, `kill -1` reaches all of the namespace but its first process, and nothing else whatever happens meanwhile.
 * @param script what is run inside: `kill -TERM -1; kill -CONT -1` and the like
 */
export const signalNamespace = async (box: Box, script: string, signal: AbortSignal): Promise<void> => {
  if (!box.init?.inode) return
  const { inode, pid, boot } = box.init
  const access = {
    kind: 'namespace',
    folder: box.folder,
    pid,
    pidNamespaceInode: inode,
    userNamespace: box.record.userNamespace,
    machineID: '',
    bootID: boot,
  } as const
  const child = spawnInNamespace(access, ['sh', '-c', script], {
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    stdio: 'ignore',
  })
  await once(child, 'exit', { signal })
}

const terminate = async (inspection: Inspection, table: ProcessTable, signal: AbortSignal): Promise<void> => {
  const { box } = inspection
  if (box.init?.inode) {
    try {
      await signalNamespace(box, 'kill -TERM -1; kill -CONT -1', signal)
    } catch (error) {
      // It may have ended by itself; the look that follows tells. If not, KILL does what TERM could not.
      if (signal.aborted || !(error instanceof BoxUnreachableError || errorCode(error) !== undefined)) throw error
    }
    return
  }
  for (const pid of inspection.tenants) {
    signalEntry(table, pid, 'SIGTERM')
    signalEntry(table, pid, 'SIGCONT')
  }
}

/** Returns when nobody but the clock is left, or the grace is over. */
export const grace = async (box: Box, graceMs: number, signal: AbortSignal): Promise<void> => {
  const end = performance.now() + graceMs
  for (let wait = pollMs; ; wait = Math.min(wait * 2, slowPollMs)) {
    const table = await readWholeTable(signal)
    const { tenants: left } = await inspect(box, table)
    if (left.length === 0 || performance.now() >= end) return
    const [first] = left
    const start = first === undefined ? undefined : table.entries.get(first)?.start
    // A whole pass only when the one that was waited for has ended.
    while (first !== undefined && start !== undefined && processAlive(first, start) && performance.now() < end)
      await pause(wait, undefined, { signal })
  }
}

const killInit = (box: Box): void => {
  if (box.init === null || initStateOf(box) !== 'alive') return
  try {
    process.kill(box.init.pid, 'SIGKILL')
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/** Living processes of the namespace of a dead first process: none, unless the inode is another namespace's by now. */
const leftovers = (box: Box, table: ProcessTable): number[] => {
  const inode = box.init?.inode
  if (!inode) return []
  const same = [...table.entries.values()].filter((entry) => entry.alive && entry.namespace === inode).map((entry) => entry.pid)
  return same.some((pid) => pid !== box.init?.pid && innermostPid(pid) === 1) ? [] : same
}

/** Kills what is left and proves that nothing lives any more; the reason why not, if it can't. */
const kill = async (box: Box, signal: AbortSignal): Promise<string | null> => {
  const end = performance.now() + killMs
  for (;;) {
    killInit(box)
    // Who holds a dead process uncollected (a door that was stopped) holds up its first process too: that is not waited for long.
    const collected = Math.min(end, performance.now() + collectMs)
    if (box.init?.inode !== null) while (initStateOf(box) !== 'dead' && performance.now() < collected) await pause(1, undefined, { signal })
    const table = await readWholeTable(signal)
    const inspection = await inspect(box, table)
    const left = inspection.init === 'dead' ? [...inspection.alive, ...leftovers(box, table)] : inspection.alive
    if (inspection.init !== 'alive' && left.length === 0) return null
    if (performance.now() > end) return `process ${left[0] ?? box.init?.pid} does not end`
    if (box.init?.inode === null) for (const pid of left) signalEntry(table, pid, 'SIGKILL')
    await pause(pollMs, undefined, { signal })
  }
}

/** A box that never reported must never start: whoever has the claim decides. */
const neverStart = async (box: Box, signal: AbortSignal): Promise<Box | null> => {
  await takeClaim(box.folder)
  const { inspections, table } = await inspectAll([box], signal)
  if (table.incomplete !== null) throw new Error(table.incomplete)
  const [inspection] = inspections
  return inspection === undefined || inspection.state === 'starting' ? null : inspection.box
}

const close = async (box: Box): Promise<void> => {
  try {
    await writeFile(join(box.folder, 'closing'), '', { mode: 0o600 })
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

const end = async (box: Box, graceSeconds: number, signal: AbortSignal): Promise<RemoveOutcome | null> => {
  if (initStateOf(box) === 'foreign')
    return { kind: 'blocked', by: `process ${box.init?.pid}, which is not the first process of ${box.nativeId}` }
  if (box.init?.inode === null) {
    // Its sessions are told by the folder only.
    if (!(await isOwnFolder(box.folder))) return { kind: 'unknown', error: `${box.folder} is a link or a file in the place of a folder` }
    await close(box)
  }
  const table = await readWholeTable(signal)
  const inspection = await inspect(box, table)
  if (inspection.tenants.length > 0) {
    await terminate(inspection, table, signal)
    await grace(box, graceSeconds * 1000, signal)
  }
  const why = await kill(box, signal)
  return why === null ? null : { kind: 'retryLater', why, afterSeconds: null }
}

/** `box`: as just located by its identity. Ends it and deletes its folder; `gone` only when both are verified. */
export const removeBox = async (dataFolder: string, box: Box, graceSeconds: number, signal: AbortSignal): Promise<RemoveOutcome> => {
  try {
    let known = box
    if (!box.removing && box.init === null) {
      const settled = await neverStart(box, signal)
      if (settled === null) return { kind: 'retryLater', why: `${box.nativeId} is just starting`, afterSeconds: 1 }
      known = settled
    }
    if (!known.removing && known.init !== null) {
      const failure = await end(known, graceSeconds, signal)
      if (failure !== null) return failure
    }
    await deleteFolder(dataFolder, known, signal)
    return { kind: 'gone', requestId: null }
  } catch (error) {
    if (signal.aborted)
      return { kind: 'retryLater', why: `the removal of ${box.nativeId} was interrupted and goes on where it stopped`, afterSeconds: null }
    if (errorCode(error) === 'EPERM' || errorCode(error) === 'EACCES') return { kind: 'denied', permission: errorText(error) }
    return { kind: 'unknown', error: errorText(error) }
  }
}
