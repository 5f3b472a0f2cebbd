/**
 * The judgement of a removal of several members: what is bound, what its progress and its own records explain, and what a fresh read of every survivor shows
 * (leases R77-R84). Pure; the engine reads, writes and calls.
 */
import type { Identity } from './removal.ts'
import { progressIn } from './removal-record.ts'

/** A member as it was when it was bound, right before the first deletion; hashes where people wrote. */
export interface BoundMember extends Identity {
  /** Null, as the two below: it was not known then, and is not compared. */
  labelsHash: string | null
  attachedTo: readonly string[] | null
  /** Native ids of what is deleted with it. */
  takesAlong: readonly string[] | null
  /** It was taken in without tags (leases R85). Missing: it carried ours. */
  untagged?: true
}

/** The baseline that is kept with a removal. */
export interface Baseline {
  /** ms */
  boundAt: number
  /** Immutable ids that earlier removals of the same attempt had proved gone: their records hold the proofs. Missing: none had. */
  before?: readonly string[]
  /** Immutable ids of those that were taken in without tags: they stay so, or get what their group carries (leases R85). Missing: none. */
  untagged?: readonly string[]
  members: readonly Pick<BoundMember, 'immutableId' | 'labelsHash' | 'attachedTo' | 'takesAlong'>[]
}

export type MemberRead =
  /** Identity and ownership agree with what is bound. Missing: the provider's reads don't show it. */
  | {
      kind: 'present'
      labelsHash?: string
      attachedTo?: readonly string[]
      takesAlong?: readonly string[]
      /** The provider itself says that it is on its way out. */
      going?: true
    }
  /** An exact not-found for the bound immutable id. */
  | { kind: 'absent'; proof: string }
  | { kind: 'unknown'; error: string }
  | { kind: 'contradiction'; why: string }

export interface GroupFacts {
  /** In the order in which they go. */
  members: readonly BoundMember[]
  /** Immutable ids, in order. */
  progress: readonly string[]
  /** Immutable ids with an intent of this removal whose outcome, accepted or gone, is recorded. */
  answered: ReadonlySet<string>
  /** Immutable ids of which a person said that they know why they are gone: by immutable id, who and why. */
  acknowledged: ReadonlyMap<string, string>
  /** The member whose removal was accepted just now and is looked for; missing: none. */
  underWay?: string
  /** By immutable id, of every survivor. */
  reads: ReadonlyMap<string, MemberRead>
}

export type GroupJudgement =
  /** A person had said that these are gone, and they are there: that word is none any more. */
  | { kind: 'lapsed'; members: BoundMember[] }
  /** Proved gone and explained: it is appended before anything else is touched. */
  | { kind: 'append'; member: BoundMember; proof: string }
  | { kind: 'failed'; member: BoundMember; error: string; contradiction: boolean }
  /** It is not any more what was bound. */
  | { kind: 'changed'; member: BoundMember; why: string }
  /** leases R80: gone, and nothing of ours explains it. */
  | { kind: 'unexplained'; members: BoundMember[] }
  | { kind: 'next'; member: BoundMember }
  /** Every member is in the progress. */
  | { kind: 'done' }

export const named = (member: Pick<Identity, 'kind' | 'nativeId'>): string => `${member.kind} ${member.nativeId}`

const takersOf = ({ members }: GroupFacts, member: BoundMember): BoundMember[] =>
  members.filter((other) => other.takesAlong?.includes(member.nativeId) === true)

/** Our own call is doing it: the answer is recorded, and it is on its way out, or absent. What still stands has taken nothing along. */
const isGoing = (facts: GroupFacts, taker: BoundMember): boolean => {
  const read = facts.reads.get(taker.immutableId)
  return facts.answered.has(taker.immutableId) && (read?.kind === 'absent' || (read?.kind === 'present' && read.going === true))
}

/** It may have gone with a member that was taken on just now, and that a read still shows as if nothing were: the next look tells. */
const awaitsTaker = (facts: GroupFacts, member: BoundMember): boolean =>
  takersOf(facts, member).some(
    (taker) =>
      taker.immutableId === facts.underWay &&
      facts.answered.has(taker.immutableId) &&
      facts.reads.get(taker.immutableId)?.kind === 'present',
  )

/**
 * What of the bound cascades is none any more: the taker's own read, before it is called, does not show it, or the taker is proved gone and the member still
 * stands. Whatever becomes of such a member, that taker did not do it (leases R80).
 * @returns by immutable id of the taker, the native ids that it takes along as far as is still known; empty: nothing has changed
 */
export const cascadesNow = (facts: GroupFacts): ReadonlyMap<string, readonly string[]> => {
  const stands = new Set(
    facts.members.flatMap(({ immutableId, nativeId }) => {
      const read = facts.reads.get(immutableId)
      return read?.kind === 'present' && read.going !== true ? [nativeId] : []
    }),
  )
  const now = new Map<string, readonly string[]>()
  for (const { immutableId, takesAlong } of facts.members) {
    if (takesAlong === null || takesAlong.length === 0) continue
    const read = facts.reads.get(immutableId)
    const shown = read?.kind === 'present' && read.going !== true && !facts.answered.has(immutableId) ? read.takesAlong : undefined
    const isGone = facts.progress.includes(immutableId)
    const left = takesAlong.filter((id) => (shown === undefined || shown.includes(id)) && !(isGone && stands.has(id)))
    if (left.length < takesAlong.length) now.set(immutableId, left)
  }
  return now
}

const explained = (facts: GroupFacts, member: BoundMember, proof: string): string | null => {
  if (facts.answered.has(member.immutableId)) return proof
  const who = facts.acknowledged.get(member.immutableId)
  if (who !== undefined) return `${proof}; its absence was acknowledged by ${who}`
  const taker = takersOf(facts, member).find((other) => facts.progress.includes(other.immutableId) || isGoing(facts, other))
  return taker === undefined ? null : `${proof}; it went with ${named(taker)}`
}

/** What was bound without tags may get its own late: exactly those that another member was bound with, and not one label more (leases R85). */
const gotItsTags = (member: BoundMember, labels: string, { members }: Pick<GroupFacts, 'members'>): boolean =>
  member.untagged === true && members.some((other) => other.untagged !== true && other.labelsHash === labels)

/**
 * What of a survivor is not as it was bound; null: all that the read shows is. A reference that is stale, or gone, is tolerated only where the other member
 * is in the progress (leases R84).
 */
export const memberChange = (
  member: BoundMember,
  read: MemberRead & { kind: 'present' },
  facts: Pick<GroupFacts, 'members' | 'progress'>,
): string | null => {
  const { labelsHash } = read
  const isAsBound = labelsHash === undefined || member.labelsHash === null || labelsHash === member.labelsHash
  if (!isAsBound && !gotItsTags(member, labelsHash, facts)) return `the labels of ${named(member)} have changed`
  const goneIds = new Set(facts.members.filter((one) => facts.progress.includes(one.immutableId)).map((one) => one.nativeId))
  for (const [now, then, word] of [
    [read.attachedTo, member.attachedTo, 'attached to'],
    [read.takesAlong, member.takesAlong, 'deleted together with'],
  ] as const) {
    if (now === undefined || then === null) continue
    const added = now.find((id) => !then.includes(id))
    if (added !== undefined) return `${named(member)} is now ${word} ${added}`
    const lost = then.find((id) => !now.includes(id) && !goneIds.has(id))
    if (lost !== undefined && word === 'attached to') return `${named(member)} is no longer ${word} ${lost}`
  }
  return null
}

/** One step of a removal. The first that holds: an explained absence is kept, a doubt stops, and only then the next member goes (leases R78-R80). */
export const judgeGroup = (facts: GroupFacts): GroupJudgement => {
  const survivors = facts.members.filter((member) => !facts.progress.includes(member.immutableId))
  const [first] = survivors
  if (first === undefined) return { kind: 'done' }
  const seen = survivors.map((member) => ({
    member,
    read: facts.reads.get(member.immutableId) ?? ({ kind: 'unknown', error: 'it was not read' } as const),
  }))
  const back = seen.filter(({ member, read }) => read.kind === 'present' && facts.acknowledged.has(member.immutableId))
  if (back.length > 0) return { kind: 'lapsed', members: back.map(({ member }) => member) }
  const missing: BoundMember[] = []
  for (const { member, read } of seen) {
    if (read.kind !== 'absent') continue
    const proof = explained(facts, member, read.proof)
    if (proof !== null) return { kind: 'append', member, proof }
    if (!awaitsTaker(facts, member)) missing.push(member)
  }
  for (const { member, read } of seen) {
    if (read.kind === 'contradiction') return { kind: 'failed', member, error: `${named(member)}: ${read.why}`, contradiction: true }
    if (read.kind === 'unknown') return { kind: 'failed', member, error: `${named(member)}: ${read.error}`, contradiction: false }
  }
  // A one-member group: an exact not-found for the bound id is all the proof there is to have.
  if (missing.length > 0 && facts.members.length === 1 && missing[0]) {
    const [only] = missing
    const read = facts.reads.get(only.immutableId)
    return { kind: 'append', member: only, proof: read?.kind === 'absent' ? read.proof : '' }
  }
  if (missing.length > 0) return { kind: 'unexplained', members: missing }
  for (const { member, read } of seen) {
    const why = read.kind === 'present' ? memberChange(member, read, facts) : null
    if (why !== null) return { kind: 'changed', member, why }
  }
  return { kind: 'next', member: first }
}

/** What a person confirms: this removal, with exactly these members, this progress, and these that are missing (leases R91). */
export const removalFingerprintText = (removal: {
  id: string
  version: number
  identity: string | null
  progress: string
  missing: readonly string[]
}): string =>
  JSON.stringify([
    removal.id,
    removal.version,
    removal.identity,
    progressIn(removal.progress) ?? removal.progress,
    removal.missing.toSorted(),
  ])
