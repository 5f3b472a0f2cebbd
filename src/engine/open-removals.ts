/** The *ended* entrance: what its holder or its clock gave up, and whose identity our own attempt recorded, goes to the removal at once. */
import { uuidv7Hex } from '../lib/ids.ts'
import type { AttemptRow } from '../store/attempts.ts'
import { insertEach, updateEach } from '../store/bulk.ts'
import { appendEvents } from '../store/events.ts'
import type { InstanceRow } from '../store/instances.ts'
import type { LeaseRow } from '../store/leases.ts'
import { openRemovalsOf } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import { isFound } from '../model/removal.ts'
import type { RemovalId } from '../model/ids.ts'
import type { FoundEvidence, RemovalEvidence } from '../model/removal-evidence.ts'
import type { ReasonOf } from '../model/verdict-reasons.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import { event, instanceTarget, leaseTarget, systemActor } from './record.ts'

/** Why a removal was ordered; `orphan.…`: a sweep found it, and mode, quarantine, plan and limits let it pass. */
export type RemovalCause = 'released' | 'expired' | 'cancelled' | 'create-interrupted' | 'leftover' | 'admin' | ReasonOf<'orphan'>

export interface Ended {
  /** Of the row, or of the ledger where the row is gone. */
  instance: Pick<InstanceRow, 'id' | 'name' | 'project' | 'provider' | 'ref' | 'state'>
  lease: LeaseRow | null
  attempt: AttemptRow
  cause: RemovalCause
  actor?: string
  /** What exactly goes, in order; default: the one resource that the attempt recorded. */
  members?: ResourceIdentity[]
  /** What a sweep stood on. */
  found?: FoundEvidence
}

/** Kept with the removal, for its receipt. */
const evidenceOf = ({ actor, found }: Pick<Ended, 'actor' | 'found'>): string =>
  JSON.stringify({ orderedBy: actor ?? systemActor, ...(found ? { found } : {}) } satisfies RemovalEvidence)

/**
 * Opens a removal for each, unless the attempt has one open. The instance is `terminating` from now on, so that sweeps pass it over
 * (leases R40); a terminated one stays terminated (I9) although something of it surfaced late. The caller holds the rows' locks.
 */
export const openRemovals = async (tx: Tx, ended: readonly Ended[]): Promise<void> => {
  if (ended.length === 0) return
  const open = new Set(
    (
      await openRemovalsOf(
        tx,
        ended.map((one) => one.attempt.id),
      )
    ).map((row) => row.attempt_id),
  )
  const fresh = ended.filter((one) => !open.has(one.attempt.id))
  if (fresh.length === 0) return
  await insertEach(
    tx,
    'removals',
    fresh.map(({ instance, lease, attempt, cause, members, ...ordered }) => ({
      id: `rm_${uuidv7Hex(tx.now)}` as RemovalId,
      version: 2,
      attempt_id: attempt.id,
      instance_id: instance.id,
      lease_id: lease?.id ?? null,
      project: instance.project,
      backend: attempt.backend,
      provider: instance.provider,
      ref: instance.ref,
      name: instance.name,
      scope: attempt.scope,
      location: attempt.location,
      cause,
      state: 'preparing',
      identity: members ? JSON.stringify(members) : null,
      progress: '[]',
      opened_at: tx.now,
      started_at: null,
      accepted_at: null,
      gone_at: null,
      failures: 0,
      error: null,
      failed_at: null,
      retry_at: null,
      held_by: null,
      polls: 0,
      evidence: evidenceOf(ordered),
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
    })),
  )
  // A leftover of an earlier attempt: the instance itself goes on with a newer one.
  const living = fresh.filter((one) => one.instance.state !== 'terminated' && one.cause !== 'leftover' && !isFound(one.cause))
  await updateEach(
    tx,
    'instances',
    [
      ['id', 'text'],
      ['state', 'text'],
      ['changed_at', 'bigint'],
      ['due_at', 'bigint'],
    ],
    living.map((one) => [one.instance.id, 'terminating', tx.now, null]),
  )
  await appendEvents(
    tx,
    fresh.map(({ instance, lease, cause, actor }) =>
      event(
        tx,
        'removal.opened',
        { cause },
        {
          project: instance.project,
          targets: [...(lease ? [leaseTarget(lease)] : []), instanceTarget(instance)],
          ...(actor ? { actor } : {}),
        },
      ),
    ),
  )
}
