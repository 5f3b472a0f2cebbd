/** What the ledger says exists on a backend, compared with what a listing has shown: the ground for the guard on counts and for "missing". */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { BoundResource } from '../../model/missing.ts'
import type { InstanceState } from '../../model/wire.ts'
import { countBound } from '../../store/bound.ts'
import type { EngineContext } from '../context.ts'
import type { Listing } from './listing.ts'
import type { SweepWork } from './load.ts'

const refsAStatement = 500
/** More would be no list that a person reads; the guard on counts has stopped the sweep long before. */
const mostUnseen = 10_000

export interface Unseen extends BoundResource {
  ref: string
  leaseId: string | null
  name: string
  attemptId: string
  attemptToken: string
  scope: string
  facts: Record<string, string>
}

export interface Expected {
  expected: number
  seen: number
  unseen: Unseen[]
}

/** Of these refs, what the ledger says has been bound since `until` at the latest. */
const detailsOf = async (context: EngineContext, work: SweepWork, refs: readonly string[], locations: readonly string[], until: number) =>
  context.store.read(({ db }) =>
    db
      .selectFrom('instances')
      .leftJoin('attempts', 'attempts.id', 'instances.attempt_id')
      .select([
        'instances.id',
        'instances.ref',
        'instances.state',
        'instances.changed_at',
        'instances.terminated_at',
        'instances.gave_up_at',
        'instances.attempt_id',
        'instances.lease_id',
        'instances.name',
        'attempts.kind',
        'attempts.location',
        'attempts.scope',
        'attempts.native_id',
        'attempts.immutable_id',
        'attempts.facts',
        'attempts.token',
      ])
      .where('instances.ref', 'in', refs as never)
      .where('instances.project', '=', work.backend.project)
      .where('instances.backend', '=', work.backend.name)
      .where('instances.state', 'in', ['provisioning', 'idle', 'busy'])
      .where('instances.location', 'in', locations)
      .where('instances.changed_at', '<=', until)
      .where('instances.attempt_id', 'is not', null)
      .execute(),
  )
type Details = Awaited<ReturnType<typeof detailsOf>>[number]

const unseenOf = (row: Details, immutableId: string): Unseen => ({
  ref: row.ref,
  leaseId: row.lease_id,
  name: row.name,
  attemptId: row.attempt_id ?? '',
  attemptToken: row.token ?? '',
  scope: row.scope ?? '',
  kind: row.kind ?? '',
  location: row.location ?? '',
  nativeId: row.native_id ?? '',
  immutableId,
  boundAt: row.changed_at,
  facts: JSON.parse(row.facts ?? '{}') as Record<string, string>,
  instance: {
    id: row.id,
    state: row.state as InstanceState,
    changedAt: row.changed_at,
    terminatedAt: row.terminated_at,
    gaveUpAt: row.gave_up_at,
    boundAttemptId: row.attempt_id,
  },
})

/** Bound, not ended, and past visibility when the listing began; counted in stretches, so that no statement takes long. */
const countExpected = async (
  context: EngineContext,
  work: SweepWork,
  listing: Listing,
  complete: readonly string[],
  until: number,
): Promise<number> => {
  const { project, name: backend } = work.backend
  let expected = 0
  for (const [i, upTo] of [...listing.bound.cuts, null].entries()) {
    const after = listing.bound.cuts[i - 1] ?? ''
    const counts = await context.store.read((session) => countBound(session, { project, backend, after, upTo, until }))
    for (const { location, count } of counts) if (complete.includes(location)) expected += count
    await yieldToOthers()
  }
  return expected
}

export const compareWithLedger = async (context: EngineContext, work: SweepWork, listing: Listing): Promise<Expected> => {
  // One region that is down says nothing about the others (orphans R78): only what lies in a complete cell is expected.
  const complete = listing.coverage.flatMap((cell) =>
    cell.kind === work.provider.ownerKind && cell.state.kind === 'complete' ? [cell.location] : [],
  )
  if (complete.length === 0) return { expected: 0, seen: 0, unseen: [] }
  const until = listing.startedAt - Math.max(work.provider.visibilitySeconds * 1000, work.marginMs)
  const expected = await countExpected(context, work, listing, complete, until)
  const unseen: Unseen[] = []
  let missed = 0
  let refs: string[] = []
  const look = async (): Promise<void> => {
    if (refs.length > 0)
      for (const row of await detailsOf(context, work, refs, complete, until)) {
        missed++
        if (row.immutable_id !== null && unseen.length < mostUnseen) unseen.push(unseenOf(row, row.immutable_id))
      }
    refs = []
    await yieldToOthers()
  }
  for (const ref of listing.bound.table.unseen()) {
    if (ref !== null) refs.push(ref)
    if (ref === null || refs.length === refsAStatement) await look()
  }
  await look()
  return { expected, seen: Math.max(0, expected - missed), unseen }
}
