/** The transactions of a removal of several members: its binding, its progress, its quick tries. Each is guarded by the fence, and so by the whole row (leases R82). */
import type { Baseline } from '../model/group-removal.ts'
import { mergeProgress } from '../model/progress.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import { appendEvents } from '../store/events.ts'
import { stillHeld, unlocked } from '../store/due.ts'
import { removalsByIds, type RemovalRow } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import { event } from './record.ts'
import { recordProofs, targetsOf, type Proved } from './remove-apply.ts'
import { lapse } from './remove-lapsed.ts'
import type { RemovalWork } from './remove-load.ts'
import { baselineOf, identitiesOf, plannedOf, progressOf } from './removal-row.ts'

/** The member whose turn it is, or what would be the first; undefined while nothing is known, or when all are gone. */
export const currentMember = (removal: RemovalRow): ResourceIdentity | undefined => {
  const gone = new Set(progressOf(removal))
  const members = removal.identity === null ? plannedOf(removal) : identitiesOf(removal)
  return members.find((member) => !gone.has(member.immutableId))
}

export interface Binding {
  /** What goes, in order. */
  members: readonly ResourceIdentity[]
  /** What earlier removals of the same attempt proved gone: bound with them, and in the progress from the beginning (leases R80). */
  before: readonly ResourceIdentity[]
  baseline: Baseline
  /** Proved absent before anything was bound, and by no removal. */
  absent: readonly Proved[]
}

/**
 * leases R77: the whole identity in one transaction, before the first deletion.
 * @returns the row as it is now; undefined: the lock was lost, and nothing is bound
 */
export const applyBound = async (
  tx: Tx,
  held: Held,
  work: RemovalWork,
  { members, before, baseline, absent }: Binding,
): Promise<RemovalRow | undefined> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return undefined
  // What had gone before anything was bound is no member, and its absence is on record all the same.
  await recordProofs(tx, absent)
  await lapse(tx, work, members)
  await tx.db
    .updateTable('removals')
    .set({
      // A row of the first version has its stable baseline from here on (leases R90).
      version: 2,
      identity: JSON.stringify([...before, ...members]),
      progress: JSON.stringify(before.map((one) => one.immutableId)),
      baseline: before.length + members.length > 1 ? JSON.stringify({ ...baseline, boundAt: tx.now }) : null,
      stopped: null,
    })
    .where('id', '=', held.id as never)
    .where('identity', 'is', null)
    .execute()
  return (await removalsByIds(tx, [held.id]))[0]
}

/** A cascade that was bound is none any more: it explains nothing from here on (leases R80). Looked at again at once. */
export const applyCascades = async (
  tx: Tx,
  held: Held,
  removal: RemovalRow,
  cascades: ReadonlyMap<string, readonly string[]>,
): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  const baseline = baselineOf(removal)
  if (baseline === null) return
  const members = baseline.members.map((one) => ({ ...one, takesAlong: cascades.get(one.immutableId) ?? one.takesAlong }))
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now), baseline: JSON.stringify({ ...baseline, members }) })
    .where('id', '=', removal.id)
    .execute()
}

export interface MemberGone {
  held: Held
  work: RemovalWork
  identity: ResourceIdentity
  proof: string
}

/**
 * One member is proved gone: written before the next is touched, merged into what is stored, and never shortened (leases R79, R81).
 * @returns the progress as it is stored now; undefined: the lock was lost
 * @throws when what is stored is not of this removal's sequence
 */
export const applyProgress = async (tx: Tx, { held, work, identity, proof }: MemberGone): Promise<string[] | undefined> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return undefined
  const [stored] = await removalsByIds(tx, [held.id])
  if (!stored) return undefined
  if (stored.identity !== work.removal.identity) throw new Error(`removal ${held.id} is bound to something else by now`)
  const merged = mergeProgress(progressOf(stored), [...progressOf(work.removal), identity.immutableId])
  if (merged.kind === 'diverged') throw new Error(`removal ${held.id}: ${merged.why}`)
  await tx.db
    .updateTable('removals')
    .set({
      ...unlocked(tx.now),
      state: 'removing',
      progress: JSON.stringify(merged.progress),
      accepted_at: null,
      started_at: stored.started_at ?? tx.now,
      polls: 0,
      tries: 0,
      failures: 0,
      error: null,
      failed_at: null,
      retry_at: null,
      held_by: null,
      stopped: null,
    })
    .where('id', '=', work.removal.id)
    .execute()
  await recordProofs(tx, [{ work, identity, proof }])
  const left = identitiesOf(stored).length - merged.progress.length
  await appendEvents(tx, [
    event(
      tx,
      'removal.member-gone',
      { cloudId: identity.nativeId, proof, left },
      { project: work.removal.project, targets: targetsOf(work) },
    ),
  ])
  return merged.progress
}

/** leases R87: what still seems to be in use by a member that just went is asked for again soon, and counts as no failure. */
export const applyQuickTry = async (tx: Tx, held: Held, work: RemovalWork, error: string, delayMs: number): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  await tx.db
    .updateTable('removals')
    .set({
      ...unlocked(tx.now + delayMs),
      state: 'removing',
      tries: work.removal.tries + 1,
      error,
      retry_at: tx.now + delayMs,
      accepted_at: null,
      held_by: null,
    })
    .where('id', '=', work.removal.id)
    .execute()
}
