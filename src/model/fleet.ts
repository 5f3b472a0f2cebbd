/**
 * Fleets: boxes that are kept ready for whoever asks next, as pure decisions. The fleet pipeline carries them out.
 *
 * - **Ready** is what nobody has and what could be given out now; **coming** is what will be: under way, ready, or being wiped.
 * - A box is nobody's until a lease takes it, and goes back only when it is proved that nothing of its holder is left.
 * - Churn: boxes that ended young without ever having served. Three in half an hour, and no more are made until a person says so (case M2).
 */
import { capSeconds, retainSeconds } from './clocks.ts'
import type { InstanceState } from './wire.ts'

/** How often an idle box is looked at, and its dead-man clock moved; and how long such a look counts. */
export const upkeepMs = 300_000
export const looksCountMs = 2 * upkeepMs
/** What no lease holds may live so long after the coordinator's last word. */
export const idleLifeMs = retainSeconds * 1000
/** A box can promise less than it lives: some of it passes before anybody asks. */
export const longestFleetTtlSeconds = capSeconds - 7200
export const largestFleet = 1000
/** Of one pass, so that a large fleet is not made in one transaction. */
const mostAtOnce = 20
/** More than wanted, because boxes came back: they may be asked for again in a moment. */
const surplusRestMs = 600_000
/** case M2 */
const churnLimit = 3
const churnMs = 1_800_000
/** After one that ended young, the next one waits: a provider that refuses now refuses in a second too. */
const pauseAfterYoungMs = 60_000

export interface FleetFacts {
  size: number
  ttlSeconds: number
  /** ms, when a person last said something of it. */
  changedAt: number
  paused: boolean
  held: boolean
  deleted: boolean
}

export interface MemberFacts {
  id: string
  state: InstanceState
  /** A lease has it. */
  taken: boolean
  wiping: boolean
  createdAt: number
  changedAt: number
  deadAt: number | null
  /** When it was last seen alive. */
  checkedAt: number | null
  served: number
  /** It waits or is being wiped, and is not to be given out (`set-aside.ts`). */
  aside: boolean
}

export type FleetRemovalCause = 'fleet-surplus' | 'fleet-deleted' | 'fleet-old'

export interface FleetDecision {
  create: number
  remove: { id: string; cause: FleetRemovalCause }[]
  /** Under way and no longer wanted: whoever makes them is told. */
  settle: string[]
  /** Why nothing more is made until a person says so; null: no reason. */
  hold: string | null
  /** When to look again at the latest, in ms from now; null: nothing of it is left. */
  lookMs: number | null
}

/** Can it still give that much? `deadAt` null is not known, and so no. */
export const livesLongEnough = (deadAt: number | null, ttlSeconds: number, now: number): boolean =>
  deadAt !== null && deadAt - now >= ttlSeconds * 1000

/** Given out only if it lives long enough for its lease, and was seen alive lately. */
export const isReady = (
  member: { state: InstanceState; deadAt: number | null; checkedAt: number | null },
  ttlSeconds: number,
  now: number,
) => member.state === 'idle' && livesLongEnough(member.deadAt, ttlSeconds, now) && (member.checkedAt ?? 0) > now - looksCountMs

const isEnded = (member: MemberFacts): boolean => member.state === 'terminating' || member.state === 'terminated'

/** Ended young, never served, and made since a person last had a word: nobody but the fleet itself made and lost them. */
export const youngEnds = (fleet: FleetFacts, members: readonly MemberFacts[], now: number): MemberFacts[] =>
  members.filter(
    (one) =>
      isEnded(one) &&
      one.served === 0 &&
      one.createdAt >= fleet.changedAt &&
      one.changedAt - one.createdAt < churnMs &&
      now - one.changedAt < churnMs,
  )

const lookMs = 15_000

/** @param members what is not terminated, and what ended within the last half hour */
export const decideFleet = (fleet: FleetFacts, members: readonly MemberFacts[], now: number): FleetDecision => {
  const living = members.filter((one) => !isEnded(one))
  const idle = living.filter((one) => one.state === 'idle' && !one.taken).toSorted((a, b) => a.createdAt - b.createdAt)
  const underWay = living.filter((one) => !one.taken && (one.state === 'pending' || one.state === 'provisioning'))
  const nothing: FleetDecision = { create: 0, remove: [], settle: [], hold: null, lookMs }
  if (fleet.deleted)
    return {
      ...nothing,
      remove: idle.map(({ id }) => ({ id, cause: 'fleet-deleted' })),
      settle: underWay.map(({ id }) => id),
      lookMs: living.length === 0 ? null : lookMs,
    }
  const quiet = fleet.paused || fleet.held
  // What is set aside is nobody's matter here until that ends: it fills no place, and is taken for neither surplus nor old.
  const usable = idle.filter((one) => !one.aside)
  // One that was just given back has the clock of its last holder still: it is moved with the first look at it, and only then it may prove too old.
  const looked = (one: MemberFacts): boolean => one.served === 0 || (one.checkedAt ?? 0) > one.changedAt
  const old = quiet ? [] : usable.filter((one) => one.deadAt !== null && looked(one) && !livesLongEnough(one.deadAt, fleet.ttlSeconds, now))
  const fresh = usable.filter((one) => !old.includes(one))
  // Each fills no place only once: whatever sets boxes aside may set aside what is made in their stead too, and that is not made without end.
  const excess = Math.max(0, living.filter((one) => one.aside).length - fleet.size)
  const coming = excess + fresh.length + underWay.length + living.filter((one) => one.wiping && !one.aside).length
  // What a person asked for is done now; what is too many by itself rests first.
  const askedAway = (one: MemberFacts): boolean => one.changedAt < fleet.changedAt || (one.served === 0 && one.createdAt < fleet.changedAt)
  const rested = fresh.filter((one) => askedAway(one) || now - one.changedAt >= surplusRestMs)
  // What is being wiped may fail of it, and takes nobody's place before it is ready.
  const surplus = rested.slice(0, Math.max(0, fresh.length + underWay.length - fleet.size))
  const remove: FleetDecision['remove'] = [
    ...surplus.map(({ id }) => ({ id, cause: 'fleet-surplus' as const })),
    ...old.map(({ id }) => ({ id, cause: 'fleet-old' as const })),
  ]
  if (quiet || coming >= fleet.size) return { ...nothing, remove }
  const young = youngEnds(fleet, members, now)
  if (young.length >= churnLimit)
    return { ...nothing, remove, hold: `${young.length} of its boxes ended within 30 min of being made, without having served anybody` }
  const last = Math.max(0, ...young.map((one) => one.changedAt))
  if (young.length > 0 && now < last + young.length * pauseAfterYoungMs) return { ...nothing, remove }
  const missing = fleet.size - coming
  return { ...nothing, remove, create: Math.min(missing, mostAtOnce), lookMs: missing > mostAtOnce ? 0 : lookMs }
}

export type AfterRelease = 'wipe' | 'remove'

/**
 * What a fleet does with a box that a release says nothing of: back to ready by way of a wipe, where its provider can, and where it would then live long
 * enough to be given out; else it goes, and another one is made.
 */
export const decideReturned = (
  fleet: Pick<FleetFacts, 'deleted' | 'ttlSeconds'> | null,
  provider: { wipes: boolean; rearms: boolean },
  deadAt: number | null,
  now: number,
): AfterRelease =>
  fleet !== null && !fleet.deleted && provider.wipes && (provider.rearms || livesLongEnough(deadAt, fleet.ttlSeconds, now))
    ? 'wipe'
    : 'remove'
