/**
 * What an attempt has on record and its removal proves nothing of: the removal's success must not erase it (leases R44). What was given up goes by the *ended*
 * entrance; beside what a sweep found it was never judged, and is left to sweeps with all that they ask for: label, quarantine, plan and limits.
 */
import { givenUpLookMs, isFound } from '../model/removal.ts'
import type { RemovalEvidence } from '../model/removal-evidence.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import type { AttemptRow } from '../store/attempts.ts'
import { recordsOfRemovals } from '../store/audit.ts'
import { unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { instancesByIds } from '../store/instances.ts'
import type { LeaseRow } from '../store/leases.ts'
import { markGaveUp, removalsOfAttempt } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import type { RemovalCause } from './ended.ts'
import { openRemovals } from './open-removals.ts'
import { event, systemActor } from './record.ts'
import { targetsOf } from './remove-apply.ts'
import type { RemovalWork } from './remove-load.ts'
import { progressOf } from './removal-row.ts'

interface Whole {
  held: { id: string }
  work: RemovalWork
  identity: ResourceIdentity
}

/** Also what had gone before anything was bound has its proof on record, and is no member. Asked for only where a removal does not name the resource. */
const isProvedElsewhere = async (tx: Tx, attempt: AttemptRow): Promise<boolean> => {
  const removals = await removalsOfAttempt(tx, attempt.id)
  if (removals.some((row) => progressOf(row).includes(attempt.immutable_id ?? ''))) return true
  const records = await recordsOfRemovals(
    tx,
    removals.map((row) => row.id),
  )
  return records.some(
    (record) =>
      record.kind === 'proof' &&
      (JSON.parse(record.body) as { absent?: { immutableId?: string } }).absent?.immutableId === attempt.immutable_id,
  )
}

/**
 * Attempts whose recorded resource is none of those that are proved gone, by removal.
 * @param rows the attempts as they are now; the caller holds the instances' locks, under which a late answer is written too
 */
export const overtakenBy = async <W extends Whole>(
  tx: Tx,
  whole: readonly W[],
  rows: readonly AttemptRow[],
  provedOf: (one: W) => readonly string[],
): Promise<Map<string, AttemptRow>> => {
  const now = new Map(rows.map((row) => [row.id as string, row]))
  const overtaken = new Map<string, AttemptRow>()
  for (const one of whole) {
    const attempt = now.get(one.work.attempt.id)
    // What was proved absent before, or was closed by a person, is not fresh: this removal is of something else that the attempt made.
    if (attempt?.outcome !== 'open' && attempt?.outcome !== 'bound') continue
    if (attempt.immutable_id === null || provedOf(one).includes(attempt.immutable_id)) continue
    if (await isProvedElsewhere(tx, attempt)) continue
    overtaken.set(one.held.id, attempt)
  }
  return overtaken
}

export interface Overtaken extends Whole {
  attempt: AttemptRow
  progress: readonly string[]
  lease: LeaseRow | undefined
}

/** The causes for which all that the attempt made goes, by the *ended* entrance. Null: a sweep judged exactly this, and no more. */
export const endedCause = ({ removal }: Pick<RemovalWork, 'removal'>): RemovalCause | null =>
  isFound(removal.cause) ? null : (removal.cause as RemovalCause)

const actorOf = ({ removal }: RemovalWork): { actor?: string } => {
  const by = removal.evidence === null ? systemActor : (JSON.parse(removal.evidence) as RemovalEvidence).orderedBy
  return by === systemActor ? {} : { actor: by }
}

/** What it proved stays on record; attempt, instance and lease stay as they are, and what came late is taken back for the same cause. */
export const closeOvertaken = async (tx: Tx, items: readonly Overtaken[]): Promise<void> => {
  for (const { work, identity, attempt, progress, lease } of items) {
    const { removal } = work
    const cause = endedCause(work)
    if (cause === null) throw new Error(`removal ${removal.id} was found by a sweep: what stands beside it has not ended by that`)
    const cloudId = attempt.native_id ?? removal.ref
    await tx.db
      .updateTable('removals')
      .set({
        ...unlocked(null),
        state: 'closed',
        identity: removal.identity ?? JSON.stringify([identity]),
        progress: JSON.stringify(progress),
        closed_at: tx.now,
        closed_by: systemActor,
        closed_reason: `its attempt recorded ${cloudId}, which this removal proves nothing of`,
        retry_at: null,
        held_by: null,
      })
      .where('id', '=', removal.id)
      .execute()
    await appendEvents(tx, [event(tx, 'removal.overtaken', { cloudId }, { project: removal.project, targets: targetsOf(work, lease) })])
    const [instance] = await instancesByIds(tx, [removal.instance_id])
    if (!instance) continue
    // Our own attempt recorded it, and nobody wants it: no sweep has to find it first.
    await openRemovals(tx, [{ instance, lease: lease ?? null, attempt, cause, ...actorOf(work) }])
  }
}

/**
 * What the sweep judged is gone, and what its attempt recorded is not proved gone: the removal stays given up, so that sweeps go on with the same row once they
 * have judged the rest by itself, and a look finds out when it goes by other hands (orphans R91).
 */
export const leaveToSweeps = async (tx: Tx, items: readonly Overtaken[]): Promise<void> => {
  for (const { work, identity, attempt, progress, lease } of items) {
    const { removal } = work
    const cloudId = attempt.native_id ?? removal.ref
    // A look finds it as it was left: nothing has happened.
    const again = removal.state === 'gave-up'
    await tx.db
      .updateTable('removals')
      .set({
        ...unlocked(tx.now + givenUpLookMs(again ? removal.polls + 1 : 0)),
        state: 'gave-up',
        identity: removal.identity ?? JSON.stringify([identity]),
        progress: JSON.stringify(progress),
        error: `what was judged is gone; ${cloudId}, which its attempt recorded, is not proved gone, and is judged by itself`,
        accepted_at: null,
        retry_at: null,
        held_by: null,
        polls: again ? removal.polls + 1 : 0,
      })
      .where('id', '=', removal.id)
      .execute()
    await markGaveUp(tx, [removal.instance_id])
    if (!again)
      await appendEvents(tx, [
        event(tx, 'removal.left-to-sweeps', { cloudId }, { project: removal.project, targets: targetsOf(work, lease) }),
      ])
  }
}
