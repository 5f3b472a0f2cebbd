/** What was given up goes on as the same row, never as a second one (orphans R91). */
import type { Baseline } from '../model/group-removal.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import { unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import type { RemovalRow } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import { evidenceOf, type Ended } from './ended.ts'
import { event, instanceTarget, leaseTarget, resourceTargets } from './record.ts'
import { baselineOf, boundMembers, identitiesOf, progressOf, resourcesOf } from './removal-row.ts'

/**
 * Its progress, and what it bound, stay; what a sweep judged anew takes the place of the rest, so that its quarantine counts and not the one before (leases
 * R88). What of the bound is neither gone nor seen again stays bound too: the removal then stops at it. The caller holds the rows' locks.
 */
export const continueRemoval = async (tx: Tx, row: RemovalRow, one: Ended): Promise<void> => {
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
      begun_at: row.begun_at ?? tx.now,
      continued_at: tx.now,
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
        targets: [
          ...(one.lease ? [leaseTarget(one.lease)] : []),
          instanceTarget(one.instance),
          ...resourceTargets(row.provider, resourcesOf({ ...row, planned: JSON.stringify(planned) }, one.attempt)),
        ],
        ...(one.actor ? { actor: one.actor } : {}),
      },
    ),
  ])
}

/** What the new quarantine saw of the survivors; the rest as it was bound. */
const rebased = (row: RemovalRow, { found }: Ended, identity: readonly ResourceIdentity[]): Baseline => {
  const before = new Map(boundMembers(row).map((member) => [member.immutableId, member]))
  const { boundAt = 0, before: earlier, untagged } = baselineOf(row) ?? {}
  return {
    boundAt,
    ...(earlier === undefined ? {} : { before: earlier }),
    ...(untagged === undefined ? {} : { untagged }),
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
