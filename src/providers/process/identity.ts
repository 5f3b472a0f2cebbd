/**
 * What makes a box itself and no other: boot, namespace, and its first process by pid and start time. A pid is used again
 * within days and a namespace's inode within moments, so neither counts without the rest.
 */
import type { ResourceIdentity } from '../contract.ts'
import { innermostPid, pidNamespaceInode, processEnvironment, processStat, bootId } from '../../lib/host.ts'
import { tag } from './words.ts'

/** The facts that a box's first process writes of itself. `inode` is null for a session box. */
export interface InitFacts {
  boot: string
  inode: string | null
  pid: number
  start: string
}

const initLine = /^([0-9a-f-]{36})[ :](\d+|session)[ :](\d+)[ :](\d+)$/

const parse = (text: string): InitFacts | null => {
  const [, boot, inode, pid, start] = initLine.exec(text) ?? []
  if (!boot || !inode || !pid || !start || Number(pid) < 2) return null
  return { boot, inode: inode === 'session' ? null : inode, pid: Number(pid), start }
}

/** Reads the box's `init` file; null when it is not what an init writes. */
export const parseInitFile = (text: string): InitFacts | null => parse(text.trim())

export const immutableIdOf = (init: InitFacts): string => `${init.boot}:${init.inode ?? 'session'}:${init.pid}:${init.start}`

const unstarted = 'unstarted:'
/** A box whose folder was made and whose first process never reported: its token is all that it has, and it is unique. */
export const unstartedId = (token: string): string => `${unstarted}${token}`

export type BoxIdentity = { kind: 'started'; init: InitFacts } | { kind: 'unstarted'; token: string }

/** Null for text that this provider never wrote. */
export const parseImmutableId = (text: string): BoxIdentity | null => {
  if (text.startsWith(unstarted) && text.length > unstarted.length) return { kind: 'unstarted', token: text.slice(unstarted.length) }
  const init = parse(text)
  return init === null ? null : { kind: 'started', init }
}

/** `<ref>-<attempt number>` */
export const parseNativeId = (text: string): { ref: string; attemptNumber: number } | null => {
  const [, ref, number] = /^([a-z][a-z0-9]{11})-(\d{1,9})$/.exec(text) ?? []
  return ref && number ? { ref, attemptNumber: Number(number) } : null
}

/**
 * `alive`: this very process runs. `ending`: the kernel is taking it down, with what is left in its namespace. `dead`: it is gone, and
 * so is all of its namespace, because a namespace's first process goes last. `foreign`: the numbers fit a process that is not the first
 * of a box with these tags: whoever recorded them was mistaken or lied, and nothing may be done to it.
 */
export type InitState = 'alive' | 'ending' | 'dead' | 'foreign'

/** `expected`: the ref, and the attempt's token where it is known, that the process must have been started with. */
export const initState = (init: InitFacts, expected: { ref: string; token: string | null }): InitState => {
  const boot = bootId()
  if (boot === null) throw new Error('the boot id of this machine is missing, so no process can be told from one of another boot')
  if (init.boot !== boot) return 'dead'
  const stat = processStat(init.pid)
  if (stat === null || stat.start !== init.start || (!stat.alive && stat.state === 'Z')) return 'dead'
  if (!stat.alive) return 'ending'
  const environment = processEnvironment(init.pid)
  const inode = pidNamespaceInode(init.pid)
  // What was read counts only if the process was still the same one afterwards.
  const after = processStat(init.pid)
  if (after === null || after.start !== init.start) return 'dead'
  if (!after.alive) return after.state === 'Z' ? 'dead' : 'ending'
  if (environment.kind !== 'read' || environment.values.get(tag.ref) !== expected.ref) return 'foreign'
  if (expected.token !== null && environment.values.get(tag.attempt) !== expected.token) return 'foreign'
  if (init.inode === null) return 'alive'
  const ownNamespace = inode === null || inode === pidNamespaceInode('self')
  return inode === init.inode && !ownNamespace && innermostPid(init.pid) === 1 ? 'alive' : 'foreign'
}

/** Facts for evidence, and for those who enter the box; all of them fixed at creation. */
export const factsOf = (
  identity: BoxIdentity,
  box: { folder: string; token: string; userNamespace: boolean; observer?: string },
): Record<string, string> => {
  const common = { folder: box.folder, attemptToken: box.token, ...(box.observer ? { observer: box.observer } : {}) }
  if (identity.kind === 'unstarted') return common
  const { boot, inode, pid, start } = identity.init
  const process = { ...common, bootID: boot, pid: String(pid), startTicks: start }
  if (inode === null) return { ...process, mode: 'session' }
  return { ...process, mode: 'namespace', pidNamespaceInode: inode, userNamespace: String(box.userNamespace) }
}

/**
 * Why nothing can be said of a box from here, or null: pids mean something only in the PID namespace of the coordinator that made it
 * (two may share a machine's id and a data folder). `observer` is that namespace's inode. What is of another boot is dead everywhere.
 */
export const seenFromElsewhere = ({ observer, bootID }: { observer?: string | undefined; bootID: string }): string | null =>
  observer === undefined || observer === pidNamespaceInode('self') || bootID !== bootId()
    ? null
    : 'this coordinator sees other processes than the one that made the box'

/** Same scope, location and kind: what any identity of ours must say before its ids are looked at. */
export const isOurKind = (resource: ResourceIdentity, own: Pick<ResourceIdentity, 'scope' | 'location' | 'kind'>): boolean =>
  resource.scope === own.scope && resource.location === own.location && resource.kind === own.kind
