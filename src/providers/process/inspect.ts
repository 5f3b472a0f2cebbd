/** What a box is now: its folder, its first process and what else lives in it, put together. */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { bootId, innermostPid, processEnvironment } from '../../lib/host.ts'
import type { Contradiction, FoundResource, OwnershipTags, ResourceIdentity } from '../contract.ts'
import { type Box, readInit } from './folder.ts'
import { type BoxIdentity, type InitState, factsOf, immutableIdOf, initState, unstartedId } from './identity.ts'
import { type ProcessTable, type RecordedSession, type SessionLook, lookAtSessions, namespaceMembers, readTable } from './table.ts'
import { errorCode, localLocation, ownerKind, tag } from './words.ts'

/** The provider's words for the state of a box. */
export type BoxState = 'unstarted' | 'starting' | 'running' | 'ending' | 'ended' | 'removing'

export interface Inspection {
  box: Box
  state: BoxState
  init: InitState | 'none'
  /** Pids of this box, its first process included; in a namespace also dead ones that wait to be collected. */
  members: Set<number>
  /** Of a session box: who runs in a session of its record without its tags. Reported, never signalled. */
  strays: number[]
  /** Members that still run. */
  alive: number[]
  /** Of these, all but the box's clock: its first process, and the sleep that it waits for. */
  tenants: number[]
}

const readRecord = async (path: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return ''
    throw error
  }
}

/** The sessions that were recorded in this boot: the numbers of another one mean nothing now. */
export const readSessions = async (folder: string): Promise<RecordedSession[]> => {
  let names: string[]
  try {
    names = await readdir(join(folder, 'sessions'))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
  const texts = await Promise.all(names.map((name) => readRecord(join(folder, 'sessions', name))))
  const now = bootId()
  return texts.flatMap((text) => {
    const [, sid, start, boot] = /^(\d+) (\d+) ([0-9a-f-]{36})\n$/.exec(text) ?? []
    return sid && start && boot === now && Number(sid) > 1 ? [{ sid: Number(sid), start }] : []
  })
}

const expectedOf = (box: Box) => ({ ref: box.record.ref, token: box.record.attemptToken })

export const initStateOf = (box: Box): InitState | 'none' => (box.init === null ? 'none' : initState(box.init, expectedOf(box)))

const membersOf = async (box: Box, init: InitState | 'none', table: ProcessTable): Promise<SessionLook> => {
  if (box.removing || box.init === null) return { members: new Set(), strays: [] }
  if (box.init.inode === null) {
    const clock = { sid: box.init.pid, start: box.init.start }
    return lookAtSessions(table, [...(await readSessions(box.folder)), clock], expectedOf(box))
  }
  // A dead first process proves the namespace empty, and its inode may by now be another box's.
  return { members: init === 'alive' || init === 'ending' ? namespaceMembers(table, box.init.inode) : new Set(), strays: [] }
}

/** First processes that carry the token of a box and have not reported yet. */
const starting = (box: Box, table: ProcessTable): number[] =>
  [...table.entries.values()]
    .filter((entry) => entry.alive && entry.attempt === box.record.attemptToken)
    .map((entry) => entry.pid)
    .filter((pid) => box.record.mode === 'session' || innermostPid(pid) === 1)

/** No tenant is in the clock's session: what enters a namespace brings its own, and a session box is entered by new ones. */
const isClock = ({ init }: Box, table: ProcessTable, pid: number): boolean => {
  const entry = table.entries.get(pid)
  if (init === null || entry === undefined) return false
  if (init.inode === null) return entry.session === init.pid
  return pid === init.pid || (entry.parent === init.pid && entry.session === table.entries.get(init.pid)?.session)
}

/** Takes the table as it was just read; where a box is `starting`, look again with `settled`. */
export const inspect = async (box: Box, table: ProcessTable): Promise<Inspection> => {
  const init = initStateOf(box)
  const { members, strays } = await membersOf(box, init, table)
  const alive = [...members].filter((pid) => table.entries.get(pid)?.alive)
  const base = { box, init, members, strays, alive, tenants: alive.filter((pid) => !isClock(box, table, pid)) }
  if (box.removing) return { ...base, state: 'removing' }
  if (init === 'none') return { ...base, state: starting(box, table).length > 0 ? 'starting' : 'unstarted' }
  if (init === 'alive') return { ...base, state: 'running' }
  return { ...base, state: init === 'ending' || alive.length > 0 ? 'ending' : 'ended' }
}

/** Inspects boxes with one table, and waits for what is just starting: at most two seconds. */
export const inspectAll = async (
  boxes: readonly Box[],
  signal: AbortSignal,
): Promise<{ inspections: Inspection[]; table: ProcessTable }> => {
  const end = performance.now() + 2000
  for (;;) {
    const table = await readTable(signal)
    const fresh = await Promise.all(
      boxes.map(async (box) => (box.init === null && !box.removing ? { ...box, init: await readInit(box.folder) } : box)),
    )
    const inspections = await Promise.all(fresh.map((box) => inspect(box, table)))
    if (performance.now() > end || inspections.every((one) => one.state !== 'starting')) return { inspections, table }
    await pause(20, undefined, { signal })
  }
}

export const identityOf = (box: Box): BoxIdentity =>
  box.init === null ? { kind: 'unstarted', token: box.record.attemptToken } : { kind: 'started', init: box.init }

export const resourceOf = (box: Box, scope: ResourceIdentity['scope']): ResourceIdentity => ({
  scope,
  location: localLocation,
  kind: ownerKind,
  nativeId: box.nativeId,
  immutableId: box.init === null ? unstartedId(box.record.attemptToken) : immutableIdOf(box.init),
  facts: factsOf(identityOf(box), { folder: box.folder, token: box.record.attemptToken, ...box.record }),
})

/** The tags: of a living box those that its first process runs with, of a dead one those that were recorded. */
const tagsOf = ({ box, init }: Inspection): OwnershipTags => {
  if (box.init !== null && init === 'alive') {
    const environment = processEnvironment(box.init.pid)
    if (environment.kind === 'read') {
      const value = (name: string): string | null => environment.values.get(name) ?? null
      return { ref: value(tag.ref), installation: value(tag.installation), attempt: value(tag.attempt), mac: value(tag.mac) }
    }
  }
  const { ref, installation, attemptToken, mac } = box.record
  return { ref, installation, attempt: attemptToken, mac: mac ?? null }
}

export const foundOf = (inspection: Inspection, scope: ResourceIdentity['scope']): FoundResource => ({
  resource: resourceOf(inspection.box, scope),
  tags: tagsOf(inspection),
  fixedAttemptToken: inspection.box.record.attemptToken,
  providerState: inspection.state,
  existence: inspection.state === 'running' || inspection.state === 'starting' || inspection.tenants.length > 0 ? 'exists' : 'going',
})

/** Living processes that carry the ref and are in no box of it: copies of a tag, or what has left its session. */
export const contradictionsOf = (ref: string, inspections: readonly Inspection[], table: ProcessTable): Contradiction[] => {
  const ours = new Set(inspections.flatMap((one) => [...one.members, ...(one.state === 'starting' ? starting(one.box, table) : [])]))
  const about = (pid: number, why: string): Contradiction => ({ nativeId: `pid:${pid}`, location: localLocation, ref, why })
  const copies = [...table.entries.values()].filter((entry) => entry.alive && entry.ref === ref && !ours.has(entry.pid))
  const strays = new Map(
    inspections.flatMap(({ box, strays: pids }) => pids.filter((pid) => !ours.has(pid)).map((pid): [number, Box] => [pid, box])),
  )
  return [
    ...copies.map(({ pid }) =>
      about(pid, `process ${pid} carries ${tag.ref}=${ref} and is in no box of it; it was not made by an attempt, or has left its box`),
    ),
    ...[...strays].flatMap(([pid, box]) =>
      copies.some((copy) => copy.pid === pid)
        ? []
        : [about(pid, `process ${pid} runs in a session that ${box.folder} records, without the tags of that box; it is left alone`)],
    ),
  ]
}

/** A box whose record names a process that is not its first one. */
export const mistaken = ({ box }: Inspection): Contradiction => ({
  nativeId: box.nativeId,
  location: localLocation,
  why: `${box.folder}/init names process ${box.init?.pid}, which is not the first process of this box`,
})
