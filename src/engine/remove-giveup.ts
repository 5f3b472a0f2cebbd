/**
 * The end of the tries for what no lease holds (orphans R88-R99). Giving up proves nothing: the instance stays `terminating`, its absence alone ends it, and
 * from here on sweeps judge it as an orphan. What gave up is still read now and then, because a person may have ended it by hand.
 */
import { budgetSince, givenUpLookMs, givesUp, giveUpCode, heldBy, removalKind } from '../model/removal.ts'
import { keepOfLease } from '../model/keep.ts'
import type { SweepMode } from '../model/sweep-settings.ts'
import { withSeen, type Seen } from '../model/stopped.ts'
import type { Provider, ResourceIdentity } from '../providers/contract.ts'
import { findingsAbout, restartQuarantine } from '../store/findings.ts'
import { stillHeld, unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { readObstacles } from '../store/obstacles.ts'
import { instancesByIds } from '../store/instances.ts'
import { leaseById } from '../store/leases.ts'
import { markGaveUp } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import { event, reportFinding } from './record.ts'
import { lockAll, targetsOf } from './remove-apply.ts'
import type { RemovalWork } from './remove-load.ts'
import { byHand } from './removal-left.ts'
import { leftOf, leftText, stoppedOf, unlistedOf } from './removal-row.ts'

/** orphans R90: not a word of failure, because nothing failed. */
export const notProvedYet = 'the provider accepted the removal, and its absence is not proved yet'

export interface GiveUp {
  held: Held
  work: RemovalWork
  error: string
  mode: SweepMode
  /** Undefined: this binary does not have it. */
  provider: Provider | undefined
  /** The fresh read said that what is there is not provably ours. */
  contradiction: boolean
  /** What stands of a group that was never bound; null: nobody looked. */
  seen: Seen | null
}

export const kindOf = ({ removal }: RemovalWork): ReturnType<typeof removalKind> =>
  removalKind({ cause: removal.cause, leaseId: removal.lease_id })

/** orphans R89, R90: is this the last of it, should it fail or still stand now? */
export const budgetIsOver = (work: RemovalWork, now: number): boolean => {
  if (kindOf(work) !== 'unheld') return false
  const since = budgetSince({ firstFailedAt: work.removal.first_failed_at, acceptedAt: work.removal.accepted_at })
  return since !== null && givesUp(since, now)
}

/** Refused for the account's rate: no failure, and due at once, for the budget says when. The clock of what is given up runs from here all the same (orphans R90). */
export const applyThrottled = async (tx: Tx, held: Held, work: RemovalWork): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  const first = kindOf(work) === 'unheld' ? { first_failed_at: work.removal.first_failed_at ?? tx.now } : {}
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now), ...first })
    .where('id', '=', work.removal.id)
    .execute()
}

/** Holds and freezes stop a sweep's removals, and a keep on the lease is a keep label on its box (decisions 4). */
const protectedBy = async (tx: Tx, work: RemovalWork): Promise<string | null> => {
  const { holds, frozenScopes } = await readObstacles(tx, tx.now)
  const holder = heldBy(work.target, holds, frozenScopes)
  if (holder !== null) return holder
  const [instance] = await instancesByIds(tx, [work.removal.instance_id])
  const leaseId = work.removal.lease_id ?? instance?.lease_id
  const lease = leaseId ? await leaseById(tx, leaseId) : undefined
  if (!lease) return null
  return keepOfLease(lease)
}

/** What was seen just now, kept with the removal. Null: nobody looked. */
export const seenOf = (removal: RemovalWork['removal'], seen: Seen | null): { stopped?: string } =>
  seen === null ? {} : { stopped: JSON.stringify(withSeen(stoppedOf(removal), seen)) }

/** All that is left, each in the provider's own words for where a person finds it. */
const how = (work: RemovalWork, provider: Provider | undefined, left: readonly ResourceIdentity[]): string =>
  left.length > 0
    ? byHand(left, provider, work.config)
    : `what carries ref ${work.removal.ref} in ${work.removal.location} of ${work.removal.scope}`

/** The event goes by; that a person is needed stands until its absence is proved. */
const reportManual = async (
  tx: Tx,
  { removal, attempt }: RemovalWork,
  message: string,
  error: string | null,
  left: readonly ResourceIdentity[],
): Promise<void> =>
  reportFinding(tx, {
    code: 'removal-needs-person',
    project: removal.project,
    scope: removal.scope,
    target: { type: 'instance', id: removal.instance_id, name: removal.name },
    message,
    evidence: { ref: removal.ref, removal: removal.id, attempt: attempt.id, error, left: left.map((one) => one.nativeId) },
  })

export const applyGiveUp = async (tx: Tx, given: GiveUp): Promise<void> => {
  const { held, work, error, provider } = given
  const { mine, leases } = await lockAll(tx, [{ held, work }])
  if (mine.size === 0) return
  const { removal } = work
  const kept = seenOf(removal, given.seen)
  const failed = error !== notProvedYet
  await tx.db
    .updateTable('removals')
    .set({
      ...unlocked(tx.now + givenUpLookMs(0)),
      state: 'gave-up',
      error,
      failures: removal.failures + (failed ? 1 : 0),
      first_failed_at: removal.first_failed_at ?? removal.accepted_at ?? tx.now,
      failed_at: tx.now,
      retry_at: null,
      polls: 0,
      held_by: null,
      ...kept,
    })
    .where('id', '=', removal.id)
    .execute()
  await markGaveUp(tx, [removal.instance_id])
  const code = giveUpCode({
    mode: given.mode,
    lists: provider?.list !== undefined && !work.backendMissing && unlistedOf(removal).length === 0,
    protectedBy: await protectedBy(tx, work),
    contradiction: given.contradiction,
  })
  const payload = {
    name: removal.name,
    id: removal.instance_id,
    backend: removal.backend,
    minutes: work.backendMissing ? 0 : 15,
    error,
  }
  const about = { project: removal.project, targets: targetsOf(work, leases.get(removal.lease_id ?? '')) }
  const left = leftOf({ ...removal, ...kept }, work.attempt)
  const told =
    code === 'terminate.gave-up.manual'
      ? event(tx, code, { ...payload, how: how(work, provider, left) }, about)
      : event(tx, code, payload, about)
  await appendEvents(tx, [told])
  if (code === 'terminate.gave-up.manual') await reportManual(tx, work, told.message, error, left)
}

/** What gave up still stands: it is looked at again, ever less often; where a person ended some of it, what is left is said anew. */
export const applyLook = async (
  tx: Tx,
  held: Held,
  work: RemovalWork,
  seen: Seen | null,
  provider: Provider | undefined,
): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  const { removal, attempt } = work
  const looks = removal.polls + 1
  const kept = seenOf(removal, seen)
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now + givenUpLookMs(looks)), polls: looks, ...kept })
    .where('id', '=', removal.id)
    .execute()
  const left = leftOf({ ...removal, ...kept }, attempt)
  if (seen === null || left.length === leftOf(removal, attempt).length) return
  const standing = (await findingsAbout(tx, 'instance', removal.instance_id)).some(
    (one) => one.code === 'removal-needs-person' && one.state === 'open',
  )
  if (!standing) return
  const message = `Instance ${removal.name} (${removal.instance_id}) was given up: ${removal.error ?? 'no reason recorded'}. Still to be terminated manually: ${how(work, provider, left)}`
  await reportManual(tx, work, message, removal.error, left)
}

/** It is not any more what the sweep judged: nothing is called, and sweeps judge it afresh, with a quarantine of its own (leases R59). */
export const applyDropped = async (tx: Tx, held: Held, work: RemovalWork, why: string): Promise<void> => {
  const { mine, leases } = await lockAll(tx, [{ held, work }])
  if (mine.size === 0) return
  const { removal } = work
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now + givenUpLookMs(0)), state: 'gave-up', error: `dropped: ${why}`, retry_at: null, polls: 0, held_by: null })
    .where('id', '=', removal.id)
    .execute()
  await restartQuarantine(tx, removal.attempt_id, removal.scope)
  const about = { project: removal.project, targets: targetsOf(work, leases.get(removal.lease_id ?? '')) }
  await appendEvents(tx, [event(tx, 'removal.dropped', { why }, about)])
  const unlisted = unlistedOf(removal)
  if (unlisted.length === 0) return
  await reportFinding(tx, {
    code: 'removal-needs-person',
    project: removal.project,
    scope: removal.scope,
    target: { type: 'instance', id: removal.instance_id, name: removal.name },
    message: `its removal was dropped (${why}), and no sweep can see ${unlisted.map(leftText).join(', ')}, which carries no tags`,
    evidence: { ref: removal.ref, removal: removal.id, attempt: work.attempt.id, error: why },
  })
}
