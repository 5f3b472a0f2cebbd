/** What a large listing lets go of without a judgement of its own. */
import { boundAttempt, isActive, isResourceOf, type RefEvidence, type SeenResource, type SweepPolicy } from './evidence.ts'
import { claimedEpoch } from './mac.ts'

/**
 * The cheap question for a page of a large listing: may this resource be let go of at once, because an active instance is bound to it (or to what it is
 * attached to) and nothing about it asks for a closer look? False says nothing: `judge` decides then.
 */
export const isPlainlyTracked = (seen: SeenResource, evidence: RefEvidence, policy: SweepPolicy): boolean => {
  const { instance, ledger } = evidence
  if (ledger?.project !== policy.project || instance === null || !isActive(instance)) return false
  if (seen.labels === null || seen.existence !== 'exists' || evidence.lease?.retained === true) return false
  // Unproved, and so looked at closely.
  if ((claimedEpoch(seen.tags.mac) ?? 0) > policy.own.epoch) return false
  const bound = boundAttempt(evidence)
  if (!bound || bound.immutableId === null) return false
  const { tags } = seen
  if (tags.ref !== evidence.ref || tags.installation !== policy.installation || tags.attempt !== bound.token) return false
  if (seen.resource.kind === policy.ownerKind) return isResourceOf(bound, seen)
  return (
    seen.resource.scope === bound.scope &&
    seen.resource.location === bound.location &&
    (seen.fixedAttemptToken === bound.token || (bound.nativeId !== null && seen.attachedTo.includes(bound.nativeId)))
  )
}
