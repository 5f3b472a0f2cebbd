/** The two words that a person has in a removal that stands still: "I know why that is gone", and "leave it" (leases R91, orphans R91). */
import { LeaseholdError } from '../../model/errors.ts'
import { isLive } from '../../model/lease.ts'
import { isContradicted } from '../../model/removal-next.ts'
import { isOverRemoval } from '../../model/removal.ts'
import { isLeftByFork } from '../../model/stop.ts'
import { asksWhy, missingText, type Acknowledged, type Seen } from '../../model/stopped.ts'
import type { RemovalView } from '../../model/wire-removals.ts'
import { attemptById, type AttemptRow } from '../../store/attempts.ts'
import { unlocked } from '../../store/due.ts'
import { appendEvents } from '../../store/events.ts'
import { contradictedRemovals } from '../contradicted.ts'
import { leftByFork, readInstallation } from '../../store/installation.ts'
import { lockInstances } from '../../store/instances.ts'
import { closeOwners } from '../../store/ledger.ts'
import { lockLeases, type LeaseRow } from '../../store/leases.ts'
import { lockRemoval, removalsByIds, type RemovalRow } from '../../store/removals.ts'
import type { Tx } from '../../store/store.ts'
import { requireApprover, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { event, instanceTarget, leaseTarget, resourceTargets } from '../record.ts'
import { seenOf } from '../remove-giveup.ts'
import { loadRemovals } from '../remove-load.ts'
import { seeLeft } from '../removal-left.ts'
import { resolveWaiting } from '../resolve-waiting.ts'
import { acknowledgedOf, fingerprintOf, leftOf, leftTexts, resourcesOf, stoppedOf } from '../removal-row.ts'
import { auditOperator } from './operator-audit.ts'
import { getRemoval, removalNotFound } from './removals.ts'

const reasonOf = (reason: string): string => {
  const said = reason.trim()
  if (said === '') throw new LeaseholdError('bad_request', 'reason: say why, for those who ask what was deleted afterwards')
  return said
}

/** What the audit keeps of it, beside removal, fingerprint and reason. */
type Said = { action: string } & Record<string, unknown>

interface Locked {
  row: RemovalRow
  lease: LeaseRow | undefined
  targets: Parameters<typeof event>[3]['targets']
  /** Refuses what changed since it was looked at; without a fingerprint it is meant as it is. */
  requireSame: () => void
}

/** In the order of every transaction: lease, instance, removal. */
const lockAll = async (tx: Tx, actor: Actor, id: string): Promise<Omit<Locked, 'requireSame'>> => {
  const [known] = await removalsByIds(tx, [id])
  if (!known || !seesProject(actor, known.project)) throw removalNotFound(id)
  const [lease] = known.lease_id === null ? [] : await lockLeases(tx, [known.lease_id])
  await lockInstances(tx, [known.instance_id])
  const row = await lockRemoval(tx, id)
  if (!row) throw removalNotFound(id)
  const attempt = await attemptById(tx, row.attempt_id)
  const about = resourceTargets(row.provider, resourcesOf(row, attempt))
  const targets = [...(lease ? [leaseTarget(lease)] : []), instanceTarget({ id: row.instance_id, name: row.name }), ...about]
  return { row, lease, targets }
}

/** Enough of a hash that nobody meets by chance. */
const shortestFingerprint = 12

const requireSame = (row: RemovalRow, fingerprint: string): void => {
  if (!/^[0-9a-f]{1,64}$/.test(fingerprint) || fingerprint.length < shortestFingerprint)
    throw new LeaseholdError(
      'bad_request',
      `fingerprint: give at least ${shortestFingerprint} hex digits of what "leasehold removals" shows`,
    )
  if (!fingerprintOf(row).startsWith(fingerprint))
    throw new LeaseholdError('removal_changed', `removal ${row.id} is not any more what that fingerprint stands for; look at it again`)
}

/** Who says what of which removal: asks for role and reason, locks everything, has it written, and shows what has become of it. */
const say = async (
  context: EngineContext,
  actor: Actor,
  { id, reason, fingerprint }: { id: string; reason: string; fingerprint?: string },
  write: (tx: Tx, locked: Locked, reason: string) => Promise<Said>,
): Promise<RemovalView> => {
  requireApprover(actor)
  const why = reasonOf(reason)
  const row = await context.store.write(async (tx) => {
    const locked = await lockAll(tx, actor, id)
    const { row: removal } = locked
    const said = await write(
      tx,
      {
        ...locked,
        requireSame: () => {
          if (fingerprint !== undefined) requireSame(removal, fingerprint)
        },
      },
      why,
    )
    const about = { project: removal.project, scope: removal.scope, ref: removal.ref, removalId: removal.id }
    await auditOperator(tx, actor, about, { removal: removal.id, fingerprint: fingerprintOf(removal), ...said, reason: why })
    await resolveWaiting(tx, [removal])
    return removal
  })
  context.signals.wake('remove')
  if (row.lease_id) context.signals.changed(row.lease_id)
  return getRemoval(context, actor, row.id)
}

/**
 * leases R91: a person answers for what is missing, and the removal goes on, once an exact read has proved each absence again. Bound to the removal's
 * fingerprint: what changed meanwhile is refused.
 * @throws LeaseholdError forbidden, not_found, bad_request, removal_changed, removal_not_stopped
 */
export const acknowledgeAbsence = (
  context: EngineContext,
  actor: Actor,
  id: string,
  input: { fingerprint: string; reason: string },
): Promise<RemovalView> =>
  say(context, actor, { id, ...input }, async (tx, { row: removal, targets, requireSame: same }, reason) => {
    const stopped = stoppedOf(removal)
    if (!asksWhy(stopped) || isOverRemoval(removal.state))
      throw new LeaseholdError(
        'removal_not_stopped',
        `removal ${id} does not wait for anybody to say why something of it is gone; "leasehold removal show ${id}" says what comes next`,
      )
    same()
    const said = stopped.missing.map((one): Acknowledged => ({ ...one, by: actor.name, reason, at: tx.now }))
    await tx.db
      .updateTable('removals')
      .set((set) => ({
        ...unlocked(tx.now),
        lock_fence: set('lock_fence', '+', 1),
        acknowledged: JSON.stringify([...acknowledgedOf(removal), ...said]),
        stopped: null,
        error: null,
        failures: 0,
        failed_at: null,
        retry_at: null,
      }))
      .where('id', '=', removal.id)
      .execute()
    const missing = stopped.missing.map(missingText).join(', ')
    await appendEvents(tx, [
      event(tx, 'removal.absence-acknowledged', { missing, reason }, { project: removal.project, actor: actor.name, targets }),
    ])
    return { action: 'acknowledge-absence', code: stopped.code, missing: stopped.missing }
  })

/** May it be given up for good? What is still tried is not: it would go on at the provider. */
const requireIdle = async (tx: Tx, row: RemovalRow): Promise<void> => {
  const left = isLeftByFork(row.held_by ?? '')
  const contradicted = (await contradictedRemovals(tx, [row])).has(row.id)
  if (!isOverRemoval(row.state) && isContradicted({ failures: row.failures, contradicted })) return
  if (row.state === 'gave-up' || (!isOverRemoval(row.state) && (row.due_at === null || left))) return
  const why = isOverRemoval(row.state) ? `is ${row.state}` : 'is still tried by itself'
  throw new LeaseholdError(
    'removal_not_stopped',
    `removal ${row.id} ${why}: only what was given up, is contradicted or waits for a person can be closed`,
  )
}

/** The instance ends with its last open attempt: by a person's word, not by a proof. */
const endInstance = async (tx: Tx, removal: RemovalRow): Promise<void> => {
  await tx.db
    .updateTable('attempts')
    .set({ outcome: 'abandoned', ended_at: tx.now })
    .where('id', '=', removal.attempt_id)
    .where('outcome', '<>', 'absent')
    .execute()
  const open = await tx.db
    .selectFrom('attempts')
    .select('id')
    .where('instance_id', '=', removal.instance_id)
    .where('outcome', 'not in', ['absent', 'abandoned'])
    .executeTakeFirst()
  if (open) return
  await tx.db
    .updateTable('instances')
    .set({ state: 'terminated', changed_at: tx.now, terminated_at: tx.now, due_at: null })
    .where('id', '=', removal.instance_id)
    .where('state', '=', 'terminating')
    .execute()
  await closeOwners(tx, [removal.ref])
}

/** What a person is told to end by hand: asked of the provider before anything is written, and never longer than a person waits. */
const lookBefore = async (context: EngineContext, actor: Actor, id: string): Promise<Seen | null> => {
  const [work] = await loadRemovals(context.store, [id])
  // Refused below, and an answer of its provider changes nothing of that.
  if (!work || !seesProject(actor, work.removal.project) || isOverRemoval(work.removal.state)) return null
  const own = await context.store.read(readInstallation)
  // It is another installation's: what is there is in use, or that one's to end.
  if (leftByFork(own, work.removal.opened_at) !== null) return null
  return seeLeft(context, work, new AbortController().signal)
}

const leftSaid = (removal: RemovalRow, attempt: AttemptRow | undefined): string => {
  const left = leftTexts(removal, attempt)
  if (left.length > 0) return left.join(', ')
  return stoppedOf(removal)?.seen === undefined ? 'nobody knows what' : 'its provider shows nothing of it'
}

/**
 * A person ends what was given up, or waits for one: recorded with name and reason, with what stands of it at that moment, and never as a proof. Whatever of it
 * turns up later is judged by sweeps: what is no whole group stands as `left-behind` until a person ends it (orphans R91).
 * @throws LeaseholdError forbidden, not_found, bad_request, removal_not_stopped, removal_changed
 */
export const closeRemoval = async (
  context: EngineContext,
  actor: Actor,
  id: string,
  input: { reason: string; fingerprint?: string },
): Promise<RemovalView> => {
  requireApprover(actor)
  reasonOf(input.reason)
  const seen = await lookBefore(context, actor, id)
  return say(context, actor, { id, ...input }, async (tx, { row: before, lease, targets, requireSame: same }, reason) => {
    await requireIdle(tx, before)
    same()
    const removal = { ...before, ...seenOf(before, seen) }
    await tx.db
      .updateTable('removals')
      .set((set) => ({
        ...unlocked(null),
        lock_fence: set('lock_fence', '+', 1),
        state: 'closed',
        closed_at: tx.now,
        closed_by: actor.name,
        closed_reason: reason,
        retry_at: null,
        held_by: null,
        stopped: removal.stopped,
      }))
      .where('id', '=', removal.id)
      .execute()
    await endInstance(tx, removal)
    if (lease && isLive(lease.state))
      await tx.db
        .updateTable('leases')
        .set({ state: 'failed', failure_code: 'removal_closed', failure_error: reason, ended_at: tx.now, updated_at: tx.now, due_at: null })
        .where('id', '=', lease.id)
        .execute()
    const attempt = await attemptById(tx, removal.attempt_id)
    const payload = { reason, left: leftSaid(removal, attempt) }
    await appendEvents(tx, [event(tx, 'removal.closed', payload, { project: removal.project, actor: actor.name, targets })])
    return {
      action: 'close-removal',
      was: removal.state,
      error: removal.error,
      left: leftOf(removal, attempt).map(({ kind, nativeId, immutableId }) => ({ kind, nativeId, immutableId })),
    }
  })
}
