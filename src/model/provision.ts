/**
 * What comes next for an instance that is being made, and what becomes of an attempt that is found after a crash (orphans R1-R13, leases R5-R12,
 * decisions 3). Everything here is a value: the provision pipeline carries it out.
 */

export interface AttemptFacts {
  id: string
  number: number
  token: string
  outcome: 'open' | 'bound' | 'absent' | 'abandoned'
  /** ms; null while the provider has not been called. */
  calledAt: number | null
  deadlineAt: number
  hasIdentity: boolean
  absentSince: number | null
  absentCount: number
}

/** Who the box is for. `ended` tells why it is no longer wanted. */
export type Wanted =
  | { kind: 'wanted'; replayable: boolean }
  | { kind: 'ended'; cause: 'cancelled' | 'released' | 'expired' | 'failed'; keepsBox: boolean }

export type NextStep =
  /** Nothing was ever asked of the provider: close without a call. */
  | { kind: 'close-unmade' }
  | { kind: 'call' }
  /** A call may have been made by somebody who is gone: look before doing anything else, never create again. */
  | { kind: 'look-up' }
  /** It exists and is not ready yet. */
  | { kind: 'poll' }
  /** Its identity is known and nobody wants it. */
  | { kind: 'take-back' }
  /** Every attempt is proved absent. */
  | { kind: 'next-attempt' }
  | { kind: 'give-up' }

export const mostAttempts = 3

/** @param attempt the newest one */
export const nextStep = (attempt: AttemptFacts | undefined, wanted: Wanted): NextStep => {
  if (!attempt) return { kind: 'close-unmade' }
  if (attempt.outcome === 'bound') return wanted.kind === 'wanted' ? { kind: 'poll' } : { kind: 'take-back' }
  if (attempt.outcome === 'open') {
    if (attempt.calledAt !== null) return { kind: 'look-up' }
    return wanted.kind === 'wanted' ? { kind: 'call' } : { kind: 'close-unmade' }
  }
  if (wanted.kind !== 'wanted') return { kind: 'close-unmade' }
  return wanted.replayable && attempt.number < mostAttempts ? { kind: 'next-attempt' } : { kind: 'give-up' }
}

export interface Candidate {
  tags: { ref: string | null; installation: string | null; attempt: string | null }
  fixedAttemptToken: string | null
  existence: 'exists' | 'going' | 'gone'
}

export type LookUp<C extends Candidate> =
  | { kind: 'none' }
  | { kind: 'one'; candidate: C; adoptable: boolean }
  /** leases R9: fail closed, never a guess. */
  | { kind: 'contradiction'; why: string }

/**
 * Which of the resources with our ref is this attempt's: the tags and a fact fixed at creation must name it, both (I6).
 * A box whose tags are gone because it is going is still ours by the fixed fact; it can't be adopted.
 */
export const judgeLookUp = <C extends Candidate>(
  found: readonly C[],
  attemptToken: string,
  ref: string,
  installation: string,
): LookUp<C> => {
  const mine = found.filter((one) => one.fixedAttemptToken === attemptToken || one.tags.attempt === attemptToken)
  if (mine.length === 0) return { kind: 'none' }
  if (mine.length > 1) return { kind: 'contradiction', why: `${mine.length} resources carry the token of one attempt` }
  const candidate = mine[0] as C
  if (candidate.fixedAttemptToken !== attemptToken)
    return { kind: 'contradiction', why: 'a resource carries the tags of this attempt, but nothing fixed at its creation names it' }
  const tagsAgree = candidate.tags.ref === ref && candidate.tags.installation === installation && candidate.tags.attempt === attemptToken
  if (candidate.existence === 'exists' && !tagsAgree)
    return { kind: 'contradiction', why: 'the resource that this attempt made carries tags that name somebody else' }
  return { kind: 'one', candidate, adoptable: candidate.existence === 'exists' }
}

/**
 * May the attempt be called absent? Only after two looks that found nothing, the settle time, and when no call can still be under way
 * (decisions, Defaults: absence needs six times `visibilitySeconds` and two complete inventories).
 * @param callerDead the process that called is known to be dead, on this very machine
 */
export const provedAbsent = (
  attempt: Pick<AttemptFacts, 'absentSince' | 'absentCount' | 'deadlineAt'>,
  visibilitySeconds: number,
  callerDead: boolean,
  now: number,
): boolean =>
  attempt.absentSince !== null &&
  attempt.absentCount >= 2 &&
  now - attempt.absentSince >= visibilitySeconds * 6000 &&
  (callerDead || now >= attempt.deadlineAt)

/** When to look again for an attempt that was not found. */
export const nextLookMs = (visibilitySeconds: number): number =>
  visibilitySeconds === 0 ? 500 : Math.min(300_000, visibilitySeconds * 1000)
