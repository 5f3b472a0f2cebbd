/** One pass over `/proc`: who lives in which box, and who carries a ref. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { coalesce } from '../../lib/coalesce.ts'
import { type ProcessStat, isDenial, listPids, pidNamespaceInode, processEnvironment, processStat } from '../../lib/host.ts'
import { errorText, tag } from './words.ts'

export interface TableEntry extends ProcessStat {
  /** Null where it may not be read. */
  namespace: string | null
  /** The tags that it was started with; null where it has none, or may not be read. */
  ref: string | null
  attempt: string | null
}

export interface ProcessTable {
  entries: Map<number, TableEntry>
  /**
   * Processes whose environment may not be read: other users', or guarded ones. Boxes are found by their folders and namespaces, so all
   * that could go unseen in them is a copied tag.
   */
  denied: number
  /** Why the pass shows not everything; null when it does. Absence is never concluded from such a table. */
  incomplete: string | null
}

/** Reads between two turns of the event loop, so that a big machine does not hold up the API. */
const batch = 64

const pass = async (): Promise<ProcessTable> => {
  const pids = listPids()
  const entries = new Map<number, TableEntry>()
  if (pids === null) return { entries, denied: 0, incomplete: "/proc can't be listed" }
  let denied = 0
  for (const [index, pid] of pids.entries()) {
    if (index % batch === batch - 1) await nextTurn()
    try {
      const namespace = pidNamespaceInode(pid)
      const environment = processEnvironment(pid)
      const stat = processStat(pid)
      if (stat === null) continue
      if (environment.kind === 'denied' && stat.alive) denied += 1
      const values = environment.kind === 'read' ? environment.values : null
      entries.set(pid, { ...stat, namespace, ref: values?.get(tag.ref) ?? null, attempt: values?.get(tag.attempt) ?? null })
    } catch (error) {
      if (!isDenial(error)) return { entries, denied, incomplete: `process ${pid} can't be read: ${errorText(error)}` }
      denied += 1
    }
  }
  return { entries, denied, incomplete: null }
}

/** Calls that wait at the same time share one pass; it begins after the last of them was made, so it is fresh for all. */
const sharedPass = coalesce<null, ProcessTable>(
  async (calls) => {
    const table = await pass()
    return calls.map(() => table)
  },
  { largest: Number.MAX_SAFE_INTEGER },
)

/** Throws `signal.reason` when aborted. */
export const readTable = async (signal: AbortSignal): Promise<ProcessTable> => {
  signal.throwIfAborted()
  const table = await sharedPass(null)
  signal.throwIfAborted()
  return table
}

/** As `readTable`; throws when the pass is not whole, so that what is not in it is proved absent. */
export const readWholeTable = async (signal: AbortSignal): Promise<ProcessTable> => {
  const table = await readTable(signal)
  if (table.incomplete !== null) throw new Error(table.incomplete)
  return table
}

/**
 * All processes of a namespace, dead ones that nobody has collected included. One in a nested namespace has an ancestor here, because a
 * process never leaves its PID namespace upwards and orphans go to its first process.
 */
export const namespaceMembers = (table: ProcessTable, inode: string): Set<number> => {
  const verdicts = new Map<number, boolean>()
  for (const pid of table.entries.keys()) {
    // Upwards in a loop: what runs in a box decides how deep its tree is.
    const path: number[] = []
    let verdict: boolean | undefined
    for (let at = pid; verdict === undefined; at = table.entries.get(at)?.parent ?? 0) {
      const entry = table.entries.get(at)
      verdict =
        verdicts.get(at) ?? (entry === undefined || path.length > table.entries.size ? false : entry.namespace === inode || undefined)
      path.push(at)
    }
    for (const one of path) if (!verdicts.has(one)) verdicts.set(one, verdict)
  }
  return new Set([...table.entries.keys()].filter((pid) => verdicts.get(pid)))
}

export interface RecordedSession {
  sid: number
  start: string
}

export interface SessionLook {
  members: Set<number>
  /** Living ones of a recorded session that nothing but the record calls ours: told to a person, never signalled. */
  strays: number[]
}

/**
 * Members of a session box: of each recorded session, all while its leader is the one recorded and carries the box's tags; else those
 * that carry them themselves, because the number can have been used again, and what runs in a box can write a record. A recorded leader
 * without the tags (`env -i` took them) is a stray, and so is who is with it.
 */
export const lookAtSessions = (
  table: ProcessTable,
  sessions: readonly RecordedSession[],
  own: { ref: string; token: string },
): SessionLook => {
  const carries = (entry: TableEntry): boolean => entry.ref === own.ref && entry.attempt === own.token
  const recorded = new Map(sessions.map((session) => [session.sid, session.start]))
  const members = new Set<number>()
  const strays: number[] = []
  for (const entry of table.entries.values()) {
    const start = recorded.get(entry.session)
    if (start === undefined) continue
    const leader = table.entries.get(entry.session)
    if (leader !== undefined && leader.start !== start) continue
    if ((leader !== undefined && carries(leader)) || carries(entry)) members.add(entry.pid)
    else if (leader !== undefined && entry.alive) strays.push(entry.pid)
  }
  return { members, strays }
}
