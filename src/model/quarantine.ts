/**
 * The time that an orphan must stand unchanged before it may be taken back (leases R58, R59, R67; case I4). It is eligible once the same fingerprint has
 * stood in two complete inventories, the last of them at or after first sighting + grace. Any change, and its reversal, starts afresh; an incomplete
 * inventory neither counts nor resets.
 */
import { stableText, type Group } from './group.ts'

/** The durable part of a finding. Times are those at which the listings began, in ms. */
export interface Quarantine {
  fingerprint: string
  firstSeenAt: number
  lastSeenAt: number
  /** Complete inventories with this fingerprint. */
  timesSeen: number
}

/** What one inventory shows of it. `complete`: the cells of its location count (see `countsFor`). */
export type Sighting =
  | { kind: 'orphan'; fingerprint: string; at: number; complete: boolean }
  /** It was judged to be something else. */
  | { kind: 'other'; at: number; complete: boolean }
  | { kind: 'absent'; at: number; complete: boolean }

export type Advance =
  | { kind: 'appeared' | 'changed' | 'again'; quarantine: Quarantine }
  /** Nothing moves: the inventory was incomplete, or is one that was counted already. */
  | { kind: 'uncounted'; quarantine: Quarantine | null }
  | { kind: 'ended' }

/**
 * The text whose hash is the fingerprint: members with their ids, names, tags, labels, locations and edges. What is volatile (the provider's state, our
 * own rows) is not in it.
 */
export const fingerprintText = (provider: string, group: Group): string =>
  JSON.stringify([provider, group.members.map(stableText).toSorted()])

const begin = (fingerprint: string, at: number): Quarantine => ({ fingerprint, firstSeenAt: at, lastSeenAt: at, timesSeen: 1 })

export const advance = (before: Quarantine | null, sighting: Sighting): Advance => {
  if (!sighting.complete || (before !== null && sighting.at <= before.lastSeenAt)) return { kind: 'uncounted', quarantine: before }
  if (sighting.kind !== 'orphan') return before === null ? { kind: 'uncounted', quarantine: null } : { kind: 'ended' }
  if (before === null) return { kind: 'appeared', quarantine: begin(sighting.fingerprint, sighting.at) }
  if (before.fingerprint !== sighting.fingerprint) return { kind: 'changed', quarantine: begin(sighting.fingerprint, sighting.at) }
  return { kind: 'again', quarantine: { ...before, lastSeenAt: sighting.at, timesSeen: before.timesSeen + 1 } }
}

/** How many complete inventories must agree, whatever the grace. */
export const inventoriesNeeded = 2

/** ms: a complete inventory that begins then, or later, may end the quarantine. */
export const eligibleAt = (quarantine: Quarantine, graceMs: number): number => quarantine.firstSeenAt + graceMs

/** @param graceMs 0 is allowed: two complete inventories still have to agree */
export const isEligible = (quarantine: Quarantine, graceMs: number, now: number): boolean =>
  quarantine.timesSeen >= inventoriesNeeded && quarantine.lastSeenAt >= eligibleAt(quarantine, graceMs) && quarantine.lastSeenAt <= now

/** How many more complete inventories it needs at least. */
export const inventoriesMissing = (quarantine: Quarantine, graceMs: number): number =>
  Math.max(inventoriesNeeded - quarantine.timesSeen, quarantine.lastSeenAt >= eligibleAt(quarantine, graceMs) ? 0 : 1)
