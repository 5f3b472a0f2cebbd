/** What the JSON of a removal's row says: its members, how far it is, and what a person answered for. */
import { sha256 } from '../lib/sha256.ts'
import { removalFingerprintText, type Baseline, type BoundMember } from '../model/group-removal.ts'
import { isUntagged } from '../model/internal-member.ts'
import type { Acknowledged, Stopped } from '../model/stopped.ts'
import { missingKeys } from '../model/stopped.ts'
import { membersIn, objectIn, progressIn } from '../model/removal-record.ts'
import type { FoundResource, ResourceIdentity } from '../providers/contract.ts'
import { identityOf, type AttemptRow } from '../store/attempts.ts'
import type { RemovalRow } from '../store/removals.ts'

// What can't be read shows as nothing, so that a list still shows the row; who acts on one asks `whyUnreadable` first.
const list = (text: string | null): ResourceIdentity[] => membersIn<ResourceIdentity>(text) ?? []

/** What is bound, in the order in which it goes; empty while preparing. */
export const identitiesOf = (removal: Pick<RemovalRow, 'identity'>): ResourceIdentity[] => list(removal.identity)
/** What the sweep that ordered it judged. */
export const plannedOf = (removal: Pick<RemovalRow, 'planned'>): ResourceIdentity[] => list(removal.planned)
/** What it is about, as far as it is known: what is bound, else what is to be, and what its attempt recorded. */
export const resourcesOf = (
  removal: Pick<RemovalRow, 'identity' | 'planned'>,
  attempt?: Pick<AttemptRow, 'location' | 'native_id'>,
): Pick<ResourceIdentity, 'location' | 'nativeId'>[] => [
  ...(attempt === undefined || attempt.native_id === null ? [] : [{ location: attempt.location, nativeId: attempt.native_id }]),
  ...(removal.identity === null ? plannedOf(removal) : identitiesOf(removal)),
]
/** Immutable ids that are proved gone, in order. */
export const progressOf = (removal: Pick<RemovalRow, 'progress'>): string[] => progressIn(removal.progress) ?? []
export const acknowledgedOf = (removal: Pick<RemovalRow, 'acknowledged'>): Acknowledged[] =>
  JSON.parse(removal.acknowledged) as Acknowledged[]
export const stoppedOf = (removal: Pick<RemovalRow, 'stopped'>): Stopped | null => objectIn<Stopped>(removal.stopped)
export const baselineOf = (removal: Pick<RemovalRow, 'baseline'>): Baseline | null => objectIn<Baseline>(removal.baseline)

/**
 * What of it is neither proved gone nor known to be missing, as far as anybody knows: what a look showed, else of what is bound, else of what a sweep judged, else
 * what the attempt recorded.
 */
export const leftOf = (
  removal: Pick<RemovalRow, 'identity' | 'planned' | 'progress' | 'state' | 'stopped'>,
  attempt: AttemptRow | undefined,
): ResourceIdentity[] => {
  if (removal.state === 'gone') return []
  const recorded = attempt === undefined ? null : identityOf(attempt)
  const seen = stoppedOf(removal)?.seen
  const known =
    seen?.there ??
    [identitiesOf(removal), plannedOf(removal), recorded === null ? [] : [recorded]].find((members) => members.length > 0) ??
    []
  const missing = stoppedOf(removal)?.missing.map((one) => one.immutableId) ?? []
  const gone = new Set([...progressOf(removal), ...missing])
  return known.filter((member) => !gone.has(member.immutableId))
}

/** Where it is and what it is called, for people; what could not be read to the end says so. */
export const leftTexts = (...args: Parameters<typeof leftOf>): string[] => {
  const unknown = args[0].state === 'gone' ? null : (stoppedOf(args[0])?.seen?.unknown ?? null)
  return [...leftOf(...args).map(leftText), ...(unknown === null ? [] : [`and perhaps more (${unknown})`])]
}

/** For people. */
export const leftText = ({ kind, nativeId, location }: ResourceIdentity): string => `${kind} ${nativeId} in ${location}`

/** leases R85: it was taken in without tags, by what its owner says of it. */
export const wasUntagged = (removal: Pick<RemovalRow, 'baseline'>, { immutableId }: Pick<ResourceIdentity, 'immutableId'>): boolean =>
  baselineOf(removal)?.untagged?.includes(immutableId) === true

/** Why it is refused, where its tags are not what they should be. */
export const gotTags = 'it was taken in without tags, and carries some by now'

/** As it was taken in: tags that it got since are asked what all others are. Of what is on its way out they may be unreadable already. */
export const isStillUntagged = (removal: Pick<RemovalRow, 'baseline'>, found: FoundResource): boolean =>
  wasUntagged(removal, found.resource) && (found.existence !== 'exists' || isUntagged(found))

/** What of it no listing shows, because it carries no tags: no sweep goes on with that (leases R85). */
export const unlistedOf = (removal: Pick<RemovalRow, 'identity' | 'progress' | 'baseline' | 'state' | 'stopped'>): ResourceIdentity[] =>
  leftOf({ ...removal, planned: null }, undefined).filter((one) => wasUntagged(removal, one))

/** Bound by an older version, or of one member: without a baseline only identity and ownership are compared. */
export const boundMembers = (removal: Pick<RemovalRow, 'identity' | 'baseline'>): BoundMember[] => {
  const { members = [], untagged = [] } = baselineOf(removal) ?? {}
  const baseline = new Map(members.map((one) => [one.immutableId, one]))
  return identitiesOf(removal).map((identity) => {
    const then = baseline.get(identity.immutableId)
    const { scope, location, kind, nativeId, immutableId } = identity
    return {
      scope,
      location,
      kind,
      nativeId,
      immutableId,
      labelsHash: then?.labelsHash ?? null,
      attachedTo: then?.attachedTo ?? null,
      takesAlong: then?.takesAlong ?? null,
      ...(untagged.includes(immutableId) ? { untagged: true as const } : {}),
    }
  })
}

/** leases R91: what a person confirms stands for exactly this removal as it is now. */
export const fingerprintOf = (removal: RemovalRow): string =>
  sha256(
    removalFingerprintText({
      id: removal.id,
      version: removal.version,
      identity: removal.identity,
      progress: removal.progress,
      missing: missingKeys(stoppedOf(removal)),
    }),
  )
