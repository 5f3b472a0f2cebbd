/** The touch of many leases at once: judged and written in one transaction (leases R19-R28). */
import { LeaseholdError } from '../../model/errors.ts'
import { compare } from '../../model/group.ts'
import type { LeaseId } from '../../model/ids.ts'
import { decideHeartbeat, idleWarningAt, isLive } from '../../model/lease.ts'
import { isExpired } from '../../model/clocks.ts'
import { isOverRemoval } from '../../model/removal.ts'
import { updateEach, updateUnchanged } from '../../store/bulk.ts'
import { lockLeases, type LeaseRow } from '../../store/leases.ts'
import { removalsOfLeases } from '../../store/removals.ts'
import { timeNow } from '../../store/time.ts'
import type { Tx } from '../../store/store.ts'
import { mayManageLease, maySeeLease, type Actor } from '../actor.ts'
import { leaseFacts } from '../facts.ts'
import { leaseNotFound } from './find.ts'

export interface HeartbeatInput {
  idleTimeoutSeconds?: number | null
  expectedProvider?: string
}
export interface Beat extends HeartbeatInput {
  actor: Actor
  id: LeaseId
}
export type BeatAnswer = LeaseholdError | LeaseRow

/**
 * Leases whose removal a worker holds right now. Asked only for those past their end: an end whose removal was opened is never moved later, so a lease that is not
 * past it has none.
 */
const beingRemoved = async (tx: Tx, leases: readonly LeaseRow[], now: number): Promise<Set<string | null>> => {
  const past = leases.filter((lease) => isLive(lease.state) && isExpired(lease.expires_at, now))
  const held = (
    await removalsOfLeases(
      tx,
      past.map((lease) => lease.id),
    )
  ).filter((row) => !isOverRemoval(row.state) && row.lock_until !== null && row.lock_until > now)
  return new Set(held.map((row) => row.lease_id))
}

/** leases R21, the order of the checks. */
const judge = (
  beat: Beat,
  lease: LeaseRow | undefined,
  removing: boolean,
  now: number,
): LeaseholdError | { idleSeconds: number; expiresAt: number } => {
  if (!lease || !maySeeLease(beat.actor, lease)) return leaseNotFound(beat.id)
  if (!mayManageLease(beat.actor, lease))
    return new LeaseholdError('forbidden', `${lease.id} belongs to ${lease.owner}: only its owner, an operator or an admin beats it`)
  if (beat.expectedProvider !== undefined && beat.expectedProvider !== lease.provider)
    return new LeaseholdError(
      'provider_mismatch',
      `${lease.id} is of provider ${lease.provider}, not ${beat.expectedProvider}: it was not beaten; name the right one, or none`,
    )
  const decision = decideHeartbeat(leaseFacts(lease), removing, now, beat.idleTimeoutSeconds)
  return decision.kind === 'refused' ? new LeaseholdError(decision.code, `${lease.id}: ${decision.message}`) : decision
}

const touchColumns = [
  ['id', 'text'],
  ['last_touched_at', 'bigint'],
  ['updated_at', 'bigint'],
  ['expires_at', 'bigint'],
] as const

const touch = (lease: LeaseRow, verdict: { idleSeconds: number; expiresAt: number }, now: number): LeaseRow => ({
  ...lease,
  last_touched_at: now,
  updated_at: now,
  expires_at: verdict.expiresAt,
  idle_seconds: verdict.idleSeconds,
})

/**
 * The beats of leases that this process has read or written lately, without reading them again: each is judged by what is known of it, and written only where
 * nothing of that has changed since. What is not in the answer was not written, and is to be beaten by what the database says.
 */
export const applyToKnown = async (
  tx: Tx,
  beats: readonly Beat[],
  known: (id: LeaseId) => LeaseRow | undefined,
): Promise<Map<Beat, LeaseRow>> => {
  const touched = new Map<LeaseId, { before: LeaseRow; after: LeaseRow }>()
  const judged: Beat[] = []
  for (const beat of beats) {
    const before = touched.get(beat.id)?.before ?? known(beat.id)
    // An end that may come earlier than the due time is no matter for here, nor is a no, which must not rest on what may be out of date.
    if (!before || before.due_at === null || beat.idleTimeoutSeconds != null) continue
    if (before.last_touched_at > tx.now || isExpired(before.expires_at, tx.now)) continue
    const verdict = judge(beat, before, false, tx.now)
    if (verdict instanceof LeaseholdError) continue
    touched.set(beat.id, { before, after: touch(before, verdict, tx.now) })
    judged.push(beat)
  }
  const written = await updateUnchanged(
    tx,
    'leases',
    touchColumns,
    [
      ['state', 'text'],
      ['updated_at', 'bigint'],
      ['last_touched_at', 'bigint'],
      ['expires_at', 'bigint'],
      ['idle_seconds', 'bigint'],
      ['ttl_seconds', 'bigint'],
      // The pipeline moves it when it locks the row, and takes it away when it has opened a removal: which ends the lease later, and changes nothing else here.
      ['due_at', 'bigint'],
    ],
    // In the order of their ids: two that write the same leases never wait for each other.
    [...touched.values()]
      .toSorted((a, b) => compare(a.after.id, b.after.id))
      .map(({ before, after }) => [
        after.id,
        after.last_touched_at,
        after.updated_at,
        after.expires_at,
        before.state,
        before.updated_at,
        before.last_touched_at,
        before.expires_at,
        before.idle_seconds,
        before.ttl_seconds,
        before.due_at,
      ]),
  )
  const answers = new Map<Beat, LeaseRow>()
  for (const beat of judged) {
    const change = touched.get(beat.id)
    if (change && written.has(beat.id)) answers.set(beat, change.after)
  }
  return answers
}

/** The beats by what the database says, each row locked. */
export const applyBeats = async (tx: Tx, beats: readonly Beat[]): Promise<BeatAnswer[]> => {
  const leases = new Map((await lockLeases(tx, [...new Set(beats.map((beat) => beat.id))])).map((row) => [row.id, row]))
  // Judged by the time after the wait for the rows: who waited for one meanwhile must not be judged by an older clock.
  const now = await timeNow(tx)
  const removing = await beingRemoved(tx, [...leases.values()], now)
  const touched = new Set<LeaseId>()
  const earlier = new Set<LeaseId>()
  const answers = beats.map((beat): BeatAnswer => {
    const lease = leases.get(beat.id)
    const verdict = judge(beat, lease, removing.has(beat.id), now)
    if (verdict instanceof LeaseholdError || !lease) return verdict as LeaseholdError
    // The due time is moved later only by the pipeline; an end that comes earlier moves it at once.
    if (lease.due_at !== null && verdict.expiresAt < lease.due_at) earlier.add(beat.id)
    const next = touch(lease, verdict, now)
    leases.set(beat.id, next)
    touched.add(beat.id)
    return next
  })
  const rows = [...touched].map((id) => leases.get(id) as LeaseRow)
  await updateEach(
    tx,
    'leases',
    [...touchColumns, ['idle_seconds', 'bigint']],
    rows.map((row) => [row.id, row.last_touched_at, row.updated_at, row.expires_at, row.idle_seconds]),
  )
  if (earlier.size > 0)
    await updateEach(
      tx,
      'leases',
      [
        ['id', 'text'],
        ['due_at', 'bigint'],
      ],
      rows.filter((row) => earlier.has(row.id)).map((row) => [row.id, idleWarningAt(leaseFacts(row)) ?? row.expires_at]),
    )
  return answers
}
