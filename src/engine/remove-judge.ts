/** What a fresh read, or an answer, says of one resource of a removal. */
import { sha256 } from '../lib/sha256.ts'
import { changedSince, labelsHash, protectedNow } from '../model/fresh-protection.ts'
import type { MemberRead } from '../model/group-removal.ts'
import type { RemovalEvidence } from '../model/removal-evidence.ts'
import { isFound, preflight } from '../model/removal.ts'
import type { Contradiction, FoundResource, ReadOutcome, RemoveOutcome, ResourceIdentity } from '../providers/contract.ts'
import type { RemovalWork } from './remove-load.ts'
import { gotTags, isStillUntagged, wasUntagged } from './removal-row.ts'

export type Judged =
  | { kind: 'absent'; proof: string; contradictions: Contradiction[] }
  | {
      kind: 'present'
      found: FoundResource
      existence: 'exists' | 'going' | 'gone'
      contradictions: Contradiction[]
      fingerprint: Record<string, unknown>
      /** What stands against taking it back now, if a sweep found it. */
      protectedBy: string | null
      /** What of it is not as the sweep saw it. */
      changed: string | null
    }
  | { kind: 'failed'; error: string; contradiction: boolean }

/** Only what a sweep found: what its holder gave up goes however it looks by now. */
const changedOf = ({ removal }: RemovalWork, identity: ResourceIdentity, found: FoundResource): string | null => {
  if (!isFound(removal.cause) || removal.evidence === null) return null
  const { found: stoodOn } = JSON.parse(removal.evidence) as RemovalEvidence
  // Names are given again to things of other kinds, and elsewhere.
  const then = stoodOn?.members?.find(
    (member) => member.nativeId === identity.nativeId && member.kind === identity.kind && member.location === identity.location,
  )
  return then ? changedSince(then, found, sha256) : null
}

export const judge = (work: RemovalWork, identity: ResourceIdentity, read: ReadOutcome, installation: string): Judged => {
  switch (read.kind) {
    case 'absent':
      return read
    case 'unknown':
      return { kind: 'failed', error: `the fresh read failed: ${read.error}`, contradiction: false }
    case 'replaced':
      return { kind: 'failed', error: `what stands under its name is not what was made: ${read.why}`, contradiction: true }
    case 'present': {
      const { found } = read
      const bound = { resource: identity, ref: work.removal.ref, installation, attemptToken: work.attempt.token }
      const tagged = found.existence === 'exists' && !isStillUntagged(work.removal, found)
      const verdict = preflight(bound, found, tagged)
      if (verdict.kind === 'contradiction') {
        const late = tagged && wasUntagged(work.removal, identity) ? `${gotTags}: ` : ''
        return { kind: 'failed', error: `${late}${verdict.why}`, contradiction: true }
      }
      return {
        kind: 'present',
        found,
        existence: found.existence,
        contradictions: read.contradictions,
        fingerprint: {
          resource: found.resource,
          tags: found.tags,
          state: found.providerState,
          ...(found.version === undefined ? {} : { version: found.version }),
        },
        protectedBy: isFound(work.removal.cause) ? protectedNow(found) : null,
        changed: changedOf(work, identity, found),
      }
    }
  }
}

/** The same for the judgement of its group. Of what is on its way out the labels may be unreadable already. */
export const memberRead = (judged: Judged): MemberRead => {
  switch (judged.kind) {
    case 'absent':
      return { kind: 'absent', proof: judged.proof }
    case 'failed':
      return judged.contradiction ? { kind: 'contradiction', why: judged.error } : { kind: 'unknown', error: judged.error }
    case 'present': {
      const { labels, attachedTo, takesAlong } = judged.found
      return {
        kind: 'present',
        ...(judged.existence === 'exists' ? {} : { going: true as const }),
        ...(labels === undefined || judged.existence !== 'exists' ? {} : { labelsHash: labelsHash(labels, sha256) }),
        ...(attachedTo === undefined ? {} : { attachedTo }),
        ...(takesAlong === undefined ? {} : { takesAlong }),
      }
    }
  }
}

export const failureOf = (outcome: RemoveOutcome): string | null => {
  switch (outcome.kind) {
    case 'accepted':
    case 'gone':
      return null
    case 'blocked':
      return `blocked by ${outcome.by}`
    case 'retryLater':
      return `the provider asks to try later: ${outcome.why}`
    case 'denied':
      return `permission denied: ${outcome.permission}`
    case 'changed':
      return `it changed after it was read, and nothing was done: ${outcome.why}`
    case 'unknown':
      return outcome.error
  }
}
