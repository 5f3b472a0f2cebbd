/** What follows from our own rows alone, where no sweep has judged: in the words of verdicts, with what holds it back and what would change it. */
import { waitText } from '../../model/budget.ts'
import { stuckAt } from '../../model/evidence.ts'
import type { HeldBack } from '../../model/explain.ts'
import { isLive } from '../../model/lease.ts'
import type { SweepMode } from '../../model/sweep-settings.ts'
import { asksWhy } from '../../model/stopped.ts'
import { verdictReasons } from '../../model/verdict-reasons.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import { waitsUntil } from '../../store/due.ts'
import type { CompactedRow } from '../../store/compacted.ts'
import type { FreezeRow, HoldRow } from '../../store/holds.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { RemovalRow } from '../../store/removals.ts'
import { isFound, isOpenRemoval } from '../../model/removal.ts'
import { stoppedOf } from '../removal-row.ts'
import type { Owner } from './owner.ts'
import { absentText, endOfLife } from './owner-tree.ts'
import { stamp, type Conclusion } from './told.ts'

/** Holds and freezes stop removals, whoever orders them. */
export const obstacles = (holds: readonly HoldRow[], freezes: readonly FreezeRow[]): HeldBack[] => [
  ...freezes.map((one) => ({ what: `a freeze of ${one.scope === '*' ? 'every scope' : one.scope}: ${one.reason}`, until: null })),
  ...holds.map((one) => ({ what: `hold ${one.id} on ${one.target_type} ${one.target_id}: ${one.reason}`, until: one.until_at })),
]

/** The rate of its account has no room for its call. */
const waiting = (until: number): HeldBack => ({ what: waitText(until), until })

const lastFailure = (removal: RemovalRow): HeldBack => ({
  what: `the last of ${removal.failures} tries in a row failed: ${removal.error ?? 'no reason recorded'}`,
  until: removal.retry_at,
})

/** orphans R91: an orphan by our own rows, whatever a sweep has seen of it. */
const concludeGivenUp = (removal: RemovalRow, stops: readonly HeldBack[], mode: SweepMode): Conclusion => ({
  verdict: 'orphan',
  reason: 'orphan.gave-up',
  text: isFound(removal.cause)
    ? 'It has ended, and its removal was dropped: it was not as it had been found.'
    : 'It has ended, and taking it back was given up.',
  heldBack: [
    ...stops,
    ...(mode === 'delete' ? [] : [{ what: `the mode is ${mode}: what sweeps find is not taken back`, until: null }]),
    { what: `the last word of its removal: ${removal.error ?? 'no reason recorded'}`, until: null },
  ],
  change:
    mode === 'delete'
      ? 'a sweep that finds it and takes it back, or its absence by other hands; it is looked for'
      : `its absence, once a person has ended it by hand; it is looked for${removal.lease_id === null ? '' : `. leasehold stop ${removal.lease_id} tries again`}`,
})

/** After a fork its end is the other installation's matter, and no word of this database is a ground to touch it (decisions 6). */
export const concludeLeft = (leftTo: string): Conclusion => ({
  verdict: 'foreign',
  reason: 'foreign.former-installation',
  text: verdictReasons['foreign.former-installation'].text,
  heldBack: [{ what: `the fork of this database: it belongs to installation ${leftTo}, and may be in use there`, until: null }],
  change: `nothing here: the coordinator of installation ${leftTo} takes it back, and only its word is a ground to end it by hand`,
})

/** What an open removal waits for, and until when. */
export const concludeRemoval = (removal: RemovalRow, stops: readonly HeldBack[], mode: SweepMode): Conclusion => {
  const base = { verdict: 'inFlight', reason: 'inFlight.removal-open' }
  if (removal.state === 'gone')
    return {
      verdict: 'gone',
      reason: null,
      text: 'It was taken back, and its absence is proved.',
      heldBack: [],
      change: 'nothing: what is proved gone stays gone, and whatever turns up under its ref is judged by itself',
    }
  if (removal.state === 'closed')
    return {
      verdict: 'ended',
      reason: null,
      text: `${removal.closed_by ?? 'Somebody'} closed its removal: ${removal.closed_reason ?? 'no reason recorded'}. Nothing is proved by that.`,
      heldBack: [],
      change: 'nothing by itself: what is still there of it ends by hand, or by a sweep that finds it to be a whole group',
    }
  if (removal.state === 'gave-up') return concludeGivenUp(removal, stops, mode)
  const forbidden =
    isFound(removal.cause) && mode !== 'delete' ? [{ what: `the mode is ${mode}: what sweeps found is not taken back`, until: null }] : []
  // A label that its last read showed is known to nobody else.
  const label = removal.held_by !== null && stops.length === 0 && forbidden.length === 0 ? [{ what: removal.held_by, until: null }] : []
  const heldBack = [...stops, ...label, ...forbidden, ...(removal.failures > 0 && removal.error !== null ? [lastFailure(removal)] : [])]
  if (stops.length > 0 || label.length > 0 || forbidden.length > 0)
    return {
      ...base,
      verdict: 'held',
      text: 'Its removal is ordered, and stopped.',
      heldBack,
      change: 'the end of what stops it; it is then tried at once',
    }
  if (removal.due_at === null)
    return {
      ...base,
      text: 'Its removal can not succeed without a person.',
      heldBack,
      change: !asksWhy(stoppedOf(removal))
        ? 'a person: its finding removal-needs-person says why'
        : `a person who knows why something of it is gone: leasehold removal show ${removal.id}`,
    }
  const waits = waitsUntil(removal)
  if (waits !== null)
    return {
      ...base,
      text: 'It is to be taken back.',
      heldBack: [waiting(waits), ...heldBack],
      change: `room for its call, at ${stamp(waits)}`,
    }
  if (removal.failures > 0 && removal.retry_at !== null)
    return { ...base, text: 'Its removal failed and is tried again.', heldBack, change: `the next try at ${stamp(removal.retry_at)}` }
  if (removal.state === 'verifying') {
    const what = 'the provider took its removal on, and its absence is not proved yet'
    const next = removal.lock_owner === null ? `; the next look at ${stamp(removal.due_at)}` : ''
    return { ...base, text: 'Its removal was accepted.', heldBack: [{ what, until: null }], change: `the proof of its absence${next}` }
  }
  return { ...base, text: 'It is being taken back.', heldBack, change: 'the proof of its absence, or the failure of this try' }
}

const concludeLive = (lease: LeaseRow): Pick<Conclusion, 'heldBack' | 'change'> => {
  const end = endOfLife(lease)
  const heldBack = [{ what: `lease ${lease.id} of ${lease.owner} holds it`, until: lease.expires_at }]
  if (lease.expires_at >= end)
    return { heldBack, change: `its release, or its end at ${stamp(end)}: its maximum lifetime, which no heartbeat moves` }
  return { heldBack, change: `its release, a heartbeat before ${stamp(lease.expires_at)}, or its end then; at ${stamp(end)} at the latest` }
}

const retained = (lease: LeaseRow): Conclusion => ({
  verdict: 'held',
  reason: 'held.retained',
  text: 'A release kept it for its holder.',
  heldBack: [
    {
      what: `the release of lease ${lease.id} kept it; ${lease.retain_until === null ? 'nobody is reminded' : 'a reminder comes'}`,
      until: lease.retain_until,
    },
  ],
  change: `a release with delete: leasehold stop ${lease.id}`,
})

const concludeActive = (owner: Owner): Conclusion => {
  const { lease, instance } = owner
  if (lease !== null && lease.state === 'released' && lease.release_deletes === 0) return retained(lease)
  const tracked = { verdict: 'tracked', reason: 'tracked.bound', text: 'An active instance is bound to it.' }
  if (instance !== null && instance.wiping_since !== null)
    return {
      ...tracked,
      text: `It is being wiped for fleet ${instance.fleet}.`,
      heldBack: [],
      change: 'the proof that nothing of its last holder is left in it, or its removal',
    }
  if (lease === null && instance?.fleet != null)
    return {
      ...tracked,
      text: `Fleet ${instance.fleet} keeps it ready.`,
      heldBack: [],
      change: `a lease that takes it, or its fleet: leasehold explain ${instance.project}/${instance.fleet}`,
    }
  if (lease === null) return { ...tracked, heldBack: [], change: 'the end of its instance' }
  if (isLive(lease.state)) return { ...tracked, ...concludeLive(lease) }
  return { ...tracked, heldBack: [], change: `the removal that follows the end of lease ${lease.id}` }
}

const newestOpen = (owner: Owner): AttemptRow | undefined => owner.attempts.filter((one) => one.outcome === 'open').at(-1)

const stuckAtOf = (attempt: AttemptRow): number => stuckAt({ openedAt: attempt.opened_at, deadlineAt: attempt.deadline_at })

const concludePending = (owner: Owner, now: number): Conclusion => {
  const open = newestOpen(owner)
  const until = open ? stuckAtOf(open) : null
  const stuck = until !== null && now >= until
  const waits = owner.instance === null ? null : waitsUntil(owner.instance)
  const ends = owner.lease && isLive(owner.lease.state) ? `, or the end of lease ${owner.lease.id} at ${stamp(owner.lease.expires_at)}` : ''
  return {
    verdict: 'inFlight',
    reason: stuck ? 'inFlight.stuck' : 'inFlight.pending',
    text: stuck ? 'It has been in the making for more than twice the time that an attempt may take.' : 'It is still being made.',
    heldBack: [
      ...(waits === null ? [] : [waiting(waits)]),
      ...(open ? [{ what: `attempt ${open.number} is open`, until: stuck ? null : until }] : []),
    ],
    change: `${open ? `the end of attempt ${open.number}` : 'its first attempt'}${ends}`,
  }
}

/** Its rows were let go of after their time, which is done only with what was proved gone. */
const concludeCompacted = (row: CompactedRow): Conclusion => {
  const what = row.lease_id === null ? `instance ${row.instance_id}` : `lease ${row.lease_id} (${row.slug}) of ${row.owner ?? 'somebody'}`
  return {
    verdict: 'gone',
    reason: null,
    text: `Compacted at ${stamp(row.compacted_at)}: ${what} ended at ${stamp(row.ended_at)}, and its absence is proved. Its ref, removals and audit are kept.`,
    heldBack: [],
    change: 'nothing: what has ended never becomes live again, and whatever turns up under its ref is judged by itself',
  }
}

/** @param stops what stops removals of it */
export const concludeOwner = (owner: Owner, stops: readonly HeldBack[], mode: SweepMode, now: number): Conclusion => {
  const { instance, lease } = owner
  const open = owner.removals.findLast((one) => isOpenRemoval(one.state)) ?? owner.removals.findLast((one) => one.state === 'gave-up')
  const closed = owner.removals.findLast((one) => one.state === 'closed' && one.closed_at !== null)
  if (instance === null && owner.compacted !== null && !open) return concludeCompacted(owner.compacted)
  if (instance === null)
    return {
      verdict: 'unknown',
      reason: null,
      text: 'The record of its owner is gone, and no sweep has judged what may be left of it.',
      heldBack: [],
      change: 'a sweep: leasehold sweep, or leasehold sweep --dry-run',
    }
  switch (instance.state) {
    case 'pending':
      return concludePending(owner, now)
    case 'provisioning':
    case 'idle':
    case 'busy': {
      const active = concludeActive(owner)
      return { ...active, heldBack: [...active.heldBack, ...stops] }
    }
    case 'terminating':
      if (open) return concludeRemoval(open, stops, mode)
      return {
        verdict: 'inFlight',
        reason: 'inFlight.terminating',
        text: 'It has ended, and what its attempts made is looked for.',
        heldBack: owner.attempts
          .filter((one) => one.outcome !== 'absent')
          .map((one) => ({ what: `attempt ${one.number} is ${one.outcome}: something of it may exist`, until: instance.due_at })),
        change: 'the proof that nothing of it exists, or the removal of what is found',
      }
    case 'terminated':
      if (open) return concludeRemoval(open, stops, mode)
      if (closed && owner.attempts.some((one) => one.outcome === 'abandoned')) return concludeRemoval(closed, stops, mode)
      if (lease !== null && isLive(lease.state))
        return {
          verdict: 'held',
          reason: 'held.live-lease',
          text: 'A live lease holds it, although its instance has ended.',
          ...concludeLive(lease),
        }
      return {
        verdict: 'gone',
        reason: null,
        text: 'It has ended, and its absence is proved.',
        heldBack: [],
        change: 'nothing: what has ended never becomes live again, and whatever turns up under its ref is judged by itself',
      }
  }
}

/** One attempt by itself. Null: what its instance is, it is. */
export const concludeAttempt = (
  owner: Owner,
  attempt: AttemptRow,
  stops: readonly HeldBack[],
  mode: SweepMode,
  now: number,
): Conclusion | null => {
  const removal = owner.removals.findLast((one) => one.attempt_id === attempt.id)
  if (removal) return concludeRemoval(removal, stops, mode)
  switch (attempt.outcome) {
    case 'bound':
      return null
    case 'open': {
      const until = stuckAtOf(attempt)
      return {
        verdict: 'inFlight',
        reason: now >= until ? 'inFlight.stuck' : 'inFlight.attempt-open',
        text: 'The attempt is under way.',
        heldBack: [{ what: 'it may still make something', until: now >= until ? null : until }],
        change: 'its end: bound to what it made, proved absent, or given up and looked for',
      }
    }
    case 'absent':
      return {
        verdict: 'gone',
        reason: null,
        text: `It is over: ${absentText(attempt)}.`,
        heldBack: [],
        change: 'nothing: whatever turns up later is judged by itself',
      }
    case 'abandoned':
      return {
        verdict: 'unknown',
        reason: null,
        text: 'It was given up without proof that it made nothing.',
        heldBack: [],
        change: 'a sweep that finds what it made',
      }
  }
}
