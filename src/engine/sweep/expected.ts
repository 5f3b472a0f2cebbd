/** What the ledger says exists on a backend, compared with what a listing has shown: the ground for the guard on counts and for "missing". */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { BoundResource } from '../../model/missing.ts'
import type { InstanceState } from '../../model/wire.ts'
import type { EngineContext } from '../context.ts'
import type { Listing } from './listing.ts'
import type { SweepWork } from './load.ts'

const page = 1000
/** More would be no list that a person reads; the guard on counts has stopped the sweep long before. */
const mostUnseen = 10_000

export interface Unseen extends BoundResource {
  ref: string
  leaseId: string | null
  name: string
  attemptId: string
  scope: string
  facts: Record<string, string>
}

export interface Expected {
  expected: number
  seen: number
  unseen: Unseen[]
}

const detailsOf = async (context: EngineContext, refs: readonly string[]) =>
  refs.length === 0
    ? []
    : context.store.read(({ db }) =>
        db
          .selectFrom('instances')
          .innerJoin('attempts', 'attempts.id', 'instances.attempt_id')
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
          ])
          .where('instances.ref', 'in', refs as never)
          .execute(),
      )

/** Bound, not ended, and past visibility when the listing began. */
export const compareWithLedger = async (context: EngineContext, work: SweepWork, listing: Listing): Promise<Expected> => {
  const { seenBound, startedAt: listingStartedAt } = listing
  // One region that is down says nothing about the others (orphans R78): only what lies in a complete cell is expected.
  const complete = new Set(
    listing.coverage.flatMap((cell) => (cell.kind === work.provider.ownerKind && cell.state.kind === 'complete' ? [cell.location] : [])),
  )
  const result: Expected = { expected: 0, seen: 0, unseen: [] }
  const visibleSince = listingStartedAt - Math.max(work.provider.visibilitySeconds * 1000, work.marginMs)
  for (let after = ''; ;) {
    const rows = await context.store.read(({ db }) =>
      db
        .selectFrom('instances')
        .select(['ref', 'changed_at', 'attempt_id', 'location'])
        .where('ref', '>', after as never)
        .where('project', '=', work.backend.project)
        .where('backend', '=', work.backend.name)
        .where('state', 'in', ['provisioning', 'idle', 'busy'])
        .orderBy('ref')
        .limit(page)
        .execute(),
    )
    const unseenRefs = rows.flatMap((row) => {
      if (row.changed_at > visibleSince || row.attempt_id === null || !complete.has(row.location)) return []
      result.expected++
      if (!seenBound.has(row.ref)) return [row.ref]
      result.seen++
      return []
    })
    for (const row of await detailsOf(context, unseenRefs.slice(0, mostUnseen - result.unseen.length))) {
      if (row.immutable_id === null) continue
      result.unseen.push({
        ref: row.ref,
        leaseId: row.lease_id,
        name: row.name,
        attemptId: row.attempt_id ?? '',
        scope: row.scope,
        kind: row.kind ?? '',
        location: row.location,
        nativeId: row.native_id ?? '',
        immutableId: row.immutable_id,
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
    }
    const last = rows.at(-1)
    if (!last || rows.length < page) return result
    after = last.ref
    await yieldToOthers()
  }
}
