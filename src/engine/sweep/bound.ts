/**
 * What active instances are bound to, as a sweep uses it: filled in one walk before the listing, and told before each page what has changed since. A provider
 * lists in an order that has nothing to do with our refs, and a look-up for each resource would cost many times the walk.
 */
import { randomBytes } from 'node:crypto'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { createBoundTable, type BoundTable } from '../../model/bound-table.ts'
import { boundAStatement, boundWordsOf, changedInstances } from '../../store/bound.ts'
import type { EngineContext } from '../context.ts'
import type { SweepWork } from './load.ts'

/**
 * Between the time that a transaction writes and its commit. One that takes longer is not missed for good: it is after the watermark, so the next sweep lists
 * again and finds it done.
 */
const commitLagMs = 5_000
/** So many refs are counted in one statement. */
const refsAStretch = 10 * boundAStatement

export interface BoundView {
  readonly table: BoundTable
  /** What changed since the last call vouches for nothing any more: to be called after a page has arrived, before it is looked at. */
  refresh(): Promise<void>
  /** Refs at which the ledger can be cut into stretches of bearable length. */
  readonly cuts: readonly string[]
}

/** @throws the signal's reason */
export const viewBound = async (context: EngineContext, work: SweepWork, startedAt: number, signal: AbortSignal): Promise<BoundView> => {
  const { store } = context
  const { project, name } = work.backend
  const table = createBoundTable(randomBytes(4).readInt32LE())
  const cuts: string[] = []
  let walked = 0
  for (let after = ''; ;) {
    signal.throwIfAborted()
    const from = after
    const rows = await store.read((session) => boundWordsOf(session, project, name, from))
    for (const row of rows) table.add(row)
    walked += rows.length
    const last = rows.at(-1)
    if (!last || rows.length < boundAStatement) break
    after = last.ref
    if (walked % refsAStretch === 0) cuts.push(after)
    await yieldToOthers()
  }
  let asked = startedAt
  return {
    table,
    cuts,
    async refresh() {
      const now = await store.now()
      const since = asked - commitLagMs
      for (const ref of await store.read((session) => changedInstances(session, project, since))) table.doubt(ref)
      asked = now
    },
  }
}
