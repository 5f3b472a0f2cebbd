/**
 * Is a resource provably ours? Two facts must agree, one of them fixed at its creation (I6; leases R57; orphans R103). The first is its tags; the second
 *  - the immutable id that one of the ref's attempts recorded, or that an earlier removal of it bound, or
 *  - a token fixed at creation that names an attempt of this scope and location. For the owner's kind only while the attempt knows no other identity: what
 *    came back under the same token with another id was not made by that attempt, or
 *  - for an internal resource attached to an owner resource that is itself proved: a creation inside that attempt's time.
 */
import { isResourceOf, type AttemptEvidence, type RefEvidence, type SeenResource, type SweepPolicy } from './evidence.ts'
import type { Group } from './group.ts'
import type { ReasonOf } from './verdict-reasons.ts'

export interface Proof {
  immutableId: string
  kind: string
  attemptId: string
  by: 'recorded-id' | 'fixed-token' | 'bound-by-removal' | 'made-with-its-owner'
}

export type Ownership = { kind: 'proved'; proof: Proof } | { kind: 'unproved'; reason: ReasonOf<'contradiction'>; member: SeenResource }

const unproved = (member: SeenResource, reason: ReasonOf<'contradiction'>): Ownership => ({ kind: 'unproved', reason, member })

/** Does the keyed tag speak against it? A tag that was written and is gone does, as one that was altered. */
const macProblem = (member: SeenResource, policy: SweepPolicy): ReasonOf<'contradiction'> | null => {
  const { kind } = policy.own.judgeMac(member.tags, member.resource.scope)
  return kind === 'wrong' || kind === 'unknown-key' ? 'contradiction.wrong-mac' : null
}
const lacksMac = (member: SeenResource, attempt: AttemptEvidence): boolean => attempt.macKey !== null && member.tags.mac === null

const agreed = (member: SeenResource, attempt: AttemptEvidence, by: Proof['by'], installation: string): Ownership => {
  const disagree =
    member.tags.installation !== installation ||
    member.tags.attempt !== attempt.token ||
    (member.fixedAttemptToken !== null && member.fixedAttemptToken !== attempt.token)
  if (disagree) return unproved(member, 'contradiction.tags-disagree')
  if (lacksMac(member, attempt)) return unproved(member, 'contradiction.no-mac')
  const { immutableId, kind } = member.resource
  return { kind: 'proved', proof: { immutableId, kind, attemptId: attempt.id, by } }
}

const boundBefore = (member: SeenResource, evidence: RefEvidence): AttemptEvidence | undefined => {
  const { scope, location, kind, immutableId } = member.resource
  const removal = evidence.removals.find((one) =>
    one.bound.some((id) => id.immutableId === immutableId && id.kind === kind && id.location === location && id.scope === scope),
  )
  return removal && evidence.attempts.find((attempt) => attempt.id === removal.attemptId)
}

/** Judges one resource by itself. */
export const proveMember = (member: SeenResource, evidence: RefEvidence, policy: SweepPolicy): Ownership => {
  const forged = macProblem(member, policy)
  if (forged !== null) return unproved(member, forged)
  const recorded = evidence.attempts.find((attempt) => isResourceOf(attempt, member))
  if (recorded) return agreed(member, recorded, 'recorded-id', policy.installation)
  const bound = boundBefore(member, evidence)
  if (bound) return agreed(member, bound, 'bound-by-removal', policy.installation)
  const token = member.fixedAttemptToken
  if (token === null) return unproved(member, 'contradiction.tags-only')
  const attempt = evidence.attempts.find((one) => one.token === token)
  if (!attempt) return unproved(member, member.tags.attempt === token ? 'contradiction.unknown-attempt' : 'contradiction.tags-disagree')
  if (attempt.scope !== member.resource.scope || attempt.location !== member.resource.location)
    return unproved(member, 'contradiction.attempt-elsewhere')
  if (member.resource.kind === policy.ownerKind && attempt.immutableId !== null) return unproved(member, 'contradiction.another-identity')
  return agreed(member, attempt, 'fixed-token', policy.installation)
}

const madeWith = (member: SeenResource, owner: Proof, evidence: RefEvidence, policy: SweepPolicy): Ownership => {
  const attempt = evidence.attempts.find((one) => one.id === owner.attemptId)
  const created = member.createdAt
  if (!attempt || created === null || member.tags.attempt !== attempt.token) return unproved(member, 'contradiction.tags-only')
  if (lacksMac(member, attempt)) return unproved(member, 'contradiction.no-mac')
  const end = Math.min(attempt.deadlineAt, attempt.endedAt ?? Infinity)
  // The margin covers the difference between the provider's clock and ours.
  const inside = created >= attempt.openedAt - policy.marginMs && created <= end + policy.marginMs
  return inside ? agreed(member, attempt, 'made-with-its-owner', policy.installation) : unproved(member, 'contradiction.tags-only')
}

/** All members' proofs, or the first that has none: one unproved member is enough to leave a group alone. */
export const proveGroup = (group: Group, evidence: RefEvidence, policy: SweepPolicy): Proof[] | (Ownership & { kind: 'unproved' }) => {
  const proofs: Proof[] = []
  let owner: Proof | null = null
  for (const member of group.members) {
    let ownership = proveMember(member, evidence, policy)
    // Only what has no fact of its own may lean on its owner; a fact that disagrees stays a contradiction.
    if (ownership.kind === 'unproved' && ownership.reason === 'contradiction.tags-only' && owner !== null && member !== group.owner)
      ownership = madeWith(member, owner, evidence, policy)
    if (ownership.kind === 'unproved') return ownership
    if (member === group.owner) owner = ownership.proof
    proofs.push(ownership.proof)
  }
  return proofs
}

/** What each proof says, after the tags that agree with it. */
export const proofTexts: Record<Proof['by'], string> = {
  'recorded-id': 'its tags, and the immutable id that the attempt recorded at its creation',
  'fixed-token': 'its tags, and the token of the attempt that was fixed at its creation',
  'bound-by-removal': 'its tags, and the immutable id that an earlier removal had bound',
  'made-with-its-owner': 'its tags, and its making together with an owner that is proved itself',
}
