/**
 * The verdict on one group: a pure function of inventory, evidence, clock and policy. Nothing but `orphan` may ever be taken back, and whatever can't be
 * told is protected. Precedence, first match wins: what names nobody or somebody else; what an active instance is bound to; what is under way; what
 * this listing can't show; what changed around it; what isn't provably ours; what somebody protects; only then an orphan (orphans R50-R66).
 * Each group is judged by itself, so the order of a listing decides nothing (case B7).
 */
import {
  boundAttempt,
  isActive,
  isResourceOf,
  stuckAt,
  type AttemptEvidence,
  type Fact,
  type FactSource,
  type InstanceEvidence,
  type LedgerEvidence,
  type RefEvidence,
  type SweepClock,
  type SweepPolicy,
} from './evidence.ts'
import { leader, type Group } from './group.ts'
import { isRef } from './ids.ts'
import { completeCell, type Inventory } from './inventory.ts'
import { isLive } from './lease.ts'
import { proofTexts, proveGroup, proveMember } from './ownership.ts'
import { macExpected } from './own.ts'
import { conclude, fact, type Case, type Other, type Verdict } from './verdict-case.ts'
import { judgeProtection } from './verdict-protection.ts'
import { reasonOf, type ReasonOf } from './verdict-reasons.ts'

const shown = (group: Group, clock: SweepClock): Fact => {
  const { resource, name, providerState, tags } = leader(group)
  const others = group.members.length > 1 ? ` and ${group.members.length - 1} more` : ''
  const ref = tags.ref === null ? 'no readable ref' : `ref ${tags.ref}`
  return fact(
    'listing',
    clock.listingStartedAt,
    `${resource.kind} ${resource.nativeId} (${name}) in ${resource.location}${others}: ${providerState}, ${ref}`,
  )
}

/**
 * A ref that nobody here issued, under no other installation's tag. Proved to be of this installation, it says that our ledger has forgotten it: by a valid keyed
 * tag; where it can carry none, or one by a key that is not here (rotated since a backup was taken), by the fact fixed at creation. A bare one is
 * ignored (orphans R50, decisions 6).
 */
const unknownRefReason = (group: Group, { own }: SweepPolicy): Other => {
  const macs = group.members.map((member) => own.judgeMac(member.tags, member.resource.scope).kind)
  if (macs.includes('valid')) return 'contradiction.unknown-ref-of-ours'
  if (group.installation === null) return 'foreign.unknown-ref'
  if (macs.includes('wrong')) return 'contradiction.wrong-mac'
  const named = group.members.every((member) => member.fixedAttemptToken !== null && member.fixedAttemptToken === member.tags.attempt)
  if (macs.includes('unknown-key')) return named ? 'contradiction.unknown-ref-of-ours' : 'contradiction.wrong-mac'
  if (!named) return 'foreign.unknown-ref'
  return group.members.some((member) => macExpected(own, member)) ? 'contradiction.no-mac' : 'contradiction.unknown-ref-of-ours'
}

/** Whom it belongs to, as far as that is not us or not known (orphans R48, R50; cases B1, B4; decisions 6, 9). */
const judgeStranger = (group: Group, evidence: RefEvidence | null, clock: SweepClock, policy: SweepPolicy): Verdict | null => {
  const listed = shown(group, clock)
  if (group.ref === null) return conclude('protected.labels-unreadable', [listed])
  if (!isRef(group.ref)) return conclude('foreign.malformed-ref', [listed])
  const installation = group.installation
  const other = installation !== null && installation !== policy.installation
  const tag = fact(
    'listing',
    clock.listingStartedAt,
    `its tag names installation ${installation ?? '(none)'}; this one is ${policy.installation}`,
  )
  const ledger = evidence?.ledger ?? null
  const isFormer = installation !== null && policy.own.former.includes(installation)
  if (isFormer || (ledger !== null && ledger.issuedAt < policy.own.heldSince)) return conclude('foreign.former-installation', [listed, tag])
  if (evidence === null || ledger === null) {
    if (other) return conclude('foreign.other-installation', [listed, tag])
    const unknown = fact('ledger', evidence?.readAt ?? clock.now, 'no project of this installation issued this ref')
    return conclude(unknownRefReason(group, policy), [listed, tag, unknown])
  }
  if (other) {
    const recorded = group.members.some((member) => evidence.attempts.some((attempt) => isResourceOf(attempt, member)))
    return conclude(recorded ? 'contradiction.other-installation' : 'foreign.other-installation', [listed, tag])
  }
  if (ledger.project === policy.project) return null
  return conclude('held.other-project', [
    listed,
    fact('ledger', evidence.readAt, `issued to ${ledger.ownerName} of project ${ledger.project}`),
  ])
}

/** It was made by us after the newest start that this database knows of (decisions 6). */
const judgeEpoch = (group: Group, clock: SweepClock, { own }: SweepPolicy): Verdict | null => {
  for (const member of group.members) {
    const mac = own.judgeMac(member.tags, member.resource.scope)
    if (mac.kind !== 'valid' || mac.epoch <= own.epoch) continue
    const told = fact('listing', clock.listingStartedAt, `its keyed tag names epoch ${mac.epoch}; the newest here is ${own.epoch}`)
    return conclude('contradiction.newer-epoch', [shown(group, clock), told])
  }
  return null
}

const describeInstance = (instance: InstanceEvidence, readAt: number): Fact =>
  fact('instance', readAt, `instance ${instance.id} is ${instance.state}${instance.gaveUpAt === null ? '' : ', given up'}`)

const describeBound = (attempt: AttemptEvidence, readAt: number): Fact =>
  fact(
    'attempt',
    readAt,
    `attempt ${attempt.number} recorded ${attempt.kind ?? 'a resource'} ${attempt.nativeId ?? '?'} (${attempt.immutableId ?? 'no immutable id'}) in ${attempt.location}`,
  )

const holderOf = (evidence: RefEvidence): 'held.live-lease' | 'held.retained' | null => {
  if (evidence.lease === null) return null
  if (isLive(evidence.lease.state)) return 'held.live-lease'
  return evidence.lease.retained ? 'held.retained' : null
}

/** Is what the instance is bound to being taken back? */
const isEnding = ({ instance, removals }: RefEvidence, bound: AttemptEvidence): boolean =>
  instance?.state === 'terminating' && instance.gaveUpAt === null && removals.some((one) => one.open && one.attemptId === bound.id)

/** Is the group what the bound attempt recorded, or what is left of it without its owner resource? */
const isBoundGroup = (group: Group, bound: AttemptEvidence): boolean =>
  group.owner !== null
    ? isResourceOf(bound, group.owner)
    : group.token === bound.token ||
      (bound.nativeId !== null && group.location === bound.location && group.outside.includes(bound.nativeId))

/** orphans R56, R58, leases R37: what an active instance has. Null: the group is something else (R57). */
const judgeActive = (one: Case, instance: InstanceEvidence): Verdict | null => {
  const { group, evidence, listed } = one
  const bound = boundAttempt(evidence)
  const state = describeInstance(instance, evidence.readAt)
  if (!bound || bound.immutableId === null) return conclude('contradiction.no-provisioning-data', [listed, state])
  const facts = [listed, state, describeBound(bound, evidence.readAt)]
  if (group.owner !== null) {
    if (!isResourceOf(bound, group.owner)) return null
    return conclude(evidence.lease?.retained === true ? 'held.retained' : 'tracked.bound', facts)
  }
  if (!isBoundGroup(group, bound)) return null
  if (bound.nativeId !== null && group.location === bound.location && group.outside.includes(bound.nativeId))
    return conclude('tracked.attached', facts)
  // R57 would call it an orphan. It is a part of what somebody holds, so it stays until its owner resource is proved missing and its instance ended (I10).
  return group.members.every((member) => proveMember(member, evidence, one.policy).kind === 'proved')
    ? conclude('missing.owner', facts)
    : null
}

/** orphans R52-R54, R87: somebody is at work. */
const judgeUnderWay = (one: Case): Verdict | null => {
  const { group, evidence, clock, policy, listed } = one
  const { instance } = evidence
  const openAttempts = evidence.attempts.filter((attempt) => attempt.outcome === 'open')
  const facts = instance === null ? [listed] : [listed, describeInstance(instance, evidence.readAt)]
  if (instance?.state === 'pending') {
    const newest = openAttempts.toSorted((a, b) => b.number - a.number)[0]
    const stuck = newest ? stuckAt(newest) : instance.changedAt + 2 * policy.attemptMs
    return clock.now >= stuck ? conclude('inFlight.stuck', facts) : conclude('inFlight.pending', facts, stuck)
  }
  if (instance?.state === 'terminating' && instance.gaveUpAt === null) return conclude('inFlight.terminating', facts)
  const ids = new Set(group.members.map((member) => member.resource.immutableId))
  const mine = evidence.attempts.find((attempt) => attempt.token === group.token)
  const removal = evidence.removals.find(
    (candidate) => candidate.open && (candidate.attemptId === mine?.id || candidate.bound.some((bound) => ids.has(bound.immutableId))),
  )
  if (removal) return conclude('inFlight.removal-open', [...facts, fact('removal', evidence.readAt, `removal ${removal.id} is open`)])
  if (mine?.outcome === 'open' && clock.now < stuckAt(mine))
    return conclude('inFlight.attempt-open', [...facts, fact('attempt', evidence.readAt, `attempt ${mine.number} is open`)], stuckAt(mine))
  if (group.members.some((member) => member.existence === 'going')) return conclude('inFlight.going', facts)
  return null
}

interface Change {
  what: string
  source: FactSource
  at: number
}

/** What counts as a change of the owner, newest last. Heartbeats and reads are none. */
const changesOf = (one: Case): Change[] => {
  const { group, evidence, ledger } = one
  const { instance } = evidence
  const changes: Change[] = []
  const add = (what: string, source: FactSource, at: number | null | undefined): void => {
    if (at !== null && at !== undefined) changes.push({ what, source, at })
  }
  add('its owner was closed', 'ledger', ledger.ownerClosedAt)
  // A row that was deleted by hand left no time of its end: its issue is all that is known (orphans U4).
  if (instance === null && ledger.ownerClosedAt === null) add('its ref was issued', 'ledger', ledger.issuedAt)
  add('its instance changed', 'instance', instance?.changedAt)
  add('its instance was terminated', 'instance', instance?.terminatedAt)
  add('taking it back was given up', 'instance', instance?.gaveUpAt)
  for (const attempt of evidence.attempts) {
    add(`attempt ${attempt.number} was opened`, 'attempt', attempt.openedAt)
    add(`attempt ${attempt.number} ended`, 'attempt', attempt.endedAt)
  }
  for (const member of group.members) add(`${member.resource.kind} ${member.resource.nativeId} was made`, 'listing', member.createdAt)
  return changes.toSorted((a, b) => a.at - b.at)
}

/** orphans R62-R66, case A5: a change at or after listing − margin can be newer than what the listing shows. */
const judgeMargin = (one: Case): Verdict | null => {
  const { clock, policy, evidence } = one
  const newest = changesOf(one).at(-1)
  if (!newest || newest.at < clock.listingStartedAt - policy.marginMs) return null
  const facts = [one.listed, { fact: newest.what, source: newest.source, at: newest.at }]
  if (evidence.instance) facts.push(describeInstance(evidence.instance, evidence.readAt))
  return conclude('settling.changed', facts, newest.at + policy.marginMs + 1)
}

const orphanReason = (instance: InstanceEvidence | null, bound: AttemptEvidence | undefined, policy: SweepPolicy): ReasonOf<'orphan'> => {
  if (instance === null) return 'orphan.owner-gone'
  if (instance.gaveUpAt !== null) return 'orphan.gave-up'
  if (!isActive(instance)) return 'orphan.owner-ended'
  return bound !== undefined && bound.scope !== policy.scope ? 'orphan.lives-elsewhere' : 'orphan.not-the-bound-one'
}

/** What stands against calling it an orphan, in order; the last word is ownership and protection. */
const judgeCandidate = (one: Case): Verdict => {
  const { group, evidence, ledger, inventory, clock, policy, listed } = one
  const { instance } = evidence
  const bound = boundAttempt(evidence)
  const state = instance
    ? describeInstance(instance, evidence.readAt)
    : fact('ledger', evidence.readAt, `its owner ${ledger.ownerName} (${ledger.ownerId}) is gone`)
  // What an active instance has was answered above; here a lease outranks an instance that says it has ended (I10).
  const holder = instance && isActive(instance) ? null : holderOf(evidence)
  // A lease whose clock ran out is live by its row until its removal succeeds: where that keeps failing nothing contradicts anything.
  if (holder === 'held.live-lease' && bound && isBoundGroup(group, bound) && isEnding(evidence, bound))
    return conclude('inFlight.terminating', [listed, state, fact('removal', evidence.readAt, 'its removal was ordered, and is tried on')])
  if (holder !== null && bound && isBoundGroup(group, bound))
    return conclude(holder, [listed, state, fact('lease', evidence.readAt, `lease ${evidence.lease?.id} is ${evidence.lease?.state}`)])
  const underWay = judgeUnderWay(one)
  if (underWay) return underWay
  if (group.inconsistent) return conclude('unseen.inconsistent', [listed])
  // orphans R57a: a disk whose machine's page failed is a live disk.
  if (group.owner === null && completeCell(inventory, group.location, policy.ownerKind) === null)
    return conclude('unseen.owner-kind', [
      listed,
      fact('coverage', inventory.endedAt, `${policy.ownerKind} in ${group.location} is not complete`),
    ])
  const margin = judgeMargin(one)
  if (margin) return margin
  if (group.members.some((member) => member.labels === null)) return conclude('protected.labels-unreadable', [listed, state])
  if (group.members.some((member) => member.resource.scope !== policy.scope)) return conclude('contradiction.other-scope', [listed])
  if (group.members.some((member) => !policy.kinds.includes(member.resource.kind))) return conclude('contradiction.wrong-kind', [listed])
  if (group.shared) return conclude('contradiction.shared', [listed])
  const proofs = proveGroup(group, evidence, policy)
  if (!Array.isArray(proofs)) {
    const { kind, nativeId } = proofs.member.resource
    return conclude(proofs.reason, [listed, state, fact('listing', clock.listingStartedAt, `${kind} ${nativeId} is not proved ours`)])
  }
  const protection = judgeProtection(one)
  if (protection) return protection
  const facts = [listed, state]
  if (bound) facts.push(describeBound(bound, evidence.readAt))
  for (const proof of proofs)
    facts.push(fact('attempt', evidence.readAt, `${proof.kind} ${proof.immutableId} is ours by two facts: ${proofTexts[proof.by]}`))
  return { kind: 'orphan', reason: orphanReason(instance, bound, policy), facts, until: null, proofs }
}

/**
 * orphans R50-R66. Counts as a removal's ground only as `orphan`, and then only after quarantine, plan and a fresh read.
 * @param evidence null where the ref is not one that can be looked up
 */
export const judge = (
  group: Group,
  evidence: RefEvidence | null,
  inventory: Inventory,
  clock: SweepClock,
  policy: SweepPolicy,
): Verdict => {
  const stranger = judgeStranger(group, evidence, clock, policy) ?? judgeEpoch(group, clock, policy)
  if (stranger) return stranger
  const known = evidence as RefEvidence
  const one: Case = {
    group,
    evidence: known,
    ledger: known.ledger as LedgerEvidence,
    inventory,
    clock,
    policy,
    listed: shown(group, clock),
  }
  if (known.instance && isActive(known.instance)) {
    const verdict = judgeActive(one, known.instance)
    if (verdict) return verdict
  }
  return judgeCandidate(one)
}

/** Must it be looked at again soon (orphans R77)? */
export const isSettled = (verdict: Verdict): boolean => reasonOf(verdict.reason).settled
