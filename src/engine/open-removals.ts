/** The *ended* entrance: what its holder or its clock gave up, and whose identity our own attempt recorded, goes to the removal at once. */
import { uuidv7Hex } from '../lib/ids.ts'
import type { AttemptRow } from '../store/attempts.ts'
import { insertEach, updateEach } from '../store/bulk.ts'
import { appendEvents } from '../store/events.ts'
import type { InstanceRow } from '../store/instances.ts'
import type { LeaseRow } from '../store/leases.ts'
import { unfinishedRemovalsOf, type RemovalRow } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import { isFound, isOpenRemoval } from '../model/removal.ts'
import type { RemovalId } from '../model/ids.ts'
import type { FoundEvidence, RemovalEvidence } from '../model/removal-evidence.ts'
import type { ReasonOf } from '../model/verdict-reasons.ts'
import type { Baseline } from '../model/group-removal.ts'
import { unlocked } from '../store/due.ts'
import { baselineOf, boundMembers, identitiesOf, progressOf } from './removal-row.ts'
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
 * Its progress, and what it bound, stay; what a sweep judged anew takes the place of the rest, so that its quarantine counts and not the one before (leases
 * R88). What of the bound is neither gone nor seen again stays bound too: the removal then stops at it. The caller holds the rows' locks.
 */
const continueRemoval = async (tx: Tx, row: RemovalRow, one: Ended): Promise<void> => {
  const progress = new Set(progressOf(row))
  const partial = progress.size > 0
  const planned = one.members ?? []
  const seen = new Set(planned.map((member) => member.immutableId))
  const bound = identitiesOf(row)
  const identity =
    one.members === undefined
      ? bound
      : [...bound.filter((member) => progress.has(member.immutableId) || !seen.has(member.immutableId)), ...planned]
  const { numUpdatedRows } = await tx.db
    .updateTable('removals')
    .set((set) => ({
      ...unlocked(tx.now),
      lock_fence: set('lock_fence', '+', 1),
      state: partial ? 'removing' : 'preparing',
      cause: one.cause,
      identity: partial ? JSON.stringify(identity) : null,
      baseline: partial ? JSON.stringify(rebased(row, one, identity)) : null,
      planned: one.members ? JSON.stringify(one.members) : null,
      evidence: evidenceOf(one),
      begun_at: isFound(one.cause) ? tx.now : null,
      started_at: partial ? row.started_at : null,
      accepted_at: null,
      first_failed_at: null,
      failures: 0,
      error: null,
      failed_at: null,
      retry_at: null,
      held_by: null,
      stopped: null,
      polls: 0,
      tries: 0,
    }))
    .where('id', '=', row.id)
    .where('state', '=', 'gave-up')
    .executeTakeFirst()
  // Somebody else went on with it just now.
  if (numUpdatedRows === 0n) return
  await appendEvents(tx, [
    event(
      tx,
      'removal.continued',
      { cause: one.cause },
      {
        project: one.instance.project,
        targets: [...(one.lease ? [leaseTarget(one.lease)] : []), instanceTarget(one.instance)],
        ...(one.actor ? { actor: one.actor } : {}),
      },
    ),
  ])
}

/** What the new quarantine saw of the survivors; the rest as it was bound. */
const rebased = (row: RemovalRow, { found }: Ended, identity: readonly ResourceIdentity[]): Baseline => {
  const before = new Map(boundMembers(row).map((member) => [member.immutableId, member]))
  return {
    boundAt: baselineOf(row)?.boundAt ?? 0,
    members: identity.map(({ immutableId, location, kind, nativeId }) => {
      const then = found?.members?.find((one) => one.location === location && one.kind === kind && one.nativeId === nativeId)
      const was = before.get(immutableId)
      return {
        immutableId,
        labelsHash: then?.labelsHash ?? was?.labelsHash ?? null,
        attachedTo: then?.attachedTo ?? was?.attachedTo ?? null,
        takesAlong: was?.takesAlong ?? (then ? [] : null),
      }
    }),
  }
}

/**
 * Opens a removal for each, unless the attempt has one open: that one wins (leases R76). One that was given up goes on as the same row, never as a second
 * (orphans R91). The instance is `terminating` from now on, so that sweeps pass it over
 * (leases R40); a terminated one stays terminated (I9) although something of it surfaced late. The caller holds the rows' locks.
 */
export const openRemovals = async (tx: Tx, ended: readonly Ended[]): Promise<void> => {
  if (ended.length === 0) return
  const before = await unfinishedRemovalsOf(
    tx,
    ended.map((one) => one.attempt.id),
  )
  const open = new Set(before.filter((row) => isOpenRemoval(row.state)).map((row) => row.attempt_id))
  const givenUp = new Map(before.map((row) => [row.attempt_id, row]))
  const wanted = ended.filter((one) => !open.has(one.attempt.id))
  for (const one of wanted) {
    const row = givenUp.get(one.attempt.id)
    if (row) await continueRemoval(tx, row, one)
  }
  const fresh = wanted.filter((one) => !givenUp.has(one.attempt.id))
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
      identity: null,
      planned: members ? JSON.stringify(members) : null,
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
      begun_at: isFound(cause) ? tx.now : null,
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
    })),
  )
  // A leftover of an earlier attempt: the instance itself goes on with a newer one.
  const living = wanted.filter((one) => one.instance.state !== 'terminated' && one.cause !== 'leftover' && !isFound(one.cause))
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
