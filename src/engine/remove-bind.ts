/**
 * From reserved to bound: the complete group is read afresh, and its whole identity is committed before the first deletion (leases R76, R77). What is no
 * whole group of its provider's topology is not touched.
 */
import { sha256 } from '../lib/sha256.ts'
import { labelsHash } from '../model/fresh-protection.ts'
import type { Baseline } from '../model/group-removal.ts'
import { goneBefore } from '../model/gone-before.ts'
import { isUntagged, maybeInternal, whyNotInternal } from '../model/internal-member.ts'
import { isFound, preflight, resourceKey } from '../model/removal.ts'
import { isLapsed, missingText, type MissingMember } from '../model/stopped.ts'
import { inOrder, oneMember, shapeOf, type Shape, type ShapeMember } from '../model/topology.ts'
import type { FoundResource, Provider, ResourceIdentity } from '../providers/contract.ts'
import { removalsOfAttempt } from '../store/removals.ts'
import type { Held } from './pipeline.ts'
import { applyHeld, type Proved } from './remove-apply.ts'
import { inspectGroup } from './remove-calls.ts'
import { applyDropped } from './remove-giveup.ts'
import { allAbsent, protectionOf, readAll, type Reads } from './remove-group.ts'
import { namesOf, type RemovalWork } from './remove-load.ts'
import { applyBound } from './remove-members.ts'
import { needsPerson } from './remove-stop.ts'
import type { RemovalTools } from './remove-tools.ts'
import { acknowledgedOf, identitiesOf, plannedOf, progressOf } from './removal-row.ts'

/** Has what is taken back more than one member, as far as is known before anything is read? */
export const isGroup = (work: RemovalWork, provider: Provider): boolean =>
  plannedOf(work.removal).length > 1 || (provider.inspect !== undefined && (provider.topology?.(work.config).order.length ?? 1) > 1)

interface Member extends ShapeMember {
  found: FoundResource
}

const memberOf = (found: FoundResource): Member => ({
  kind: found.resource.kind,
  nativeId: found.resource.nativeId,
  attachedTo: found.attachedTo ?? [],
  takesAlong: found.takesAlong ?? [],
  reportOnly: found.reportOnly ?? null,
  found,
})

/** What carried no tags got here as the owner's own, and in no other way. */
const isInternal = ({ found }: Member): boolean => isUntagged(found)

const baselineOf = (members: readonly Member[], before: readonly ResourceIdentity[]): Baseline => ({
  boundAt: 0,
  ...(before.length === 0 ? {} : { before: before.map((one) => one.immutableId) }),
  ...(members.some(isInternal) ? { untagged: members.filter(isInternal).map(({ found }) => found.resource.immutableId) } : {}),
  members: members.map(({ found, attachedTo, takesAlong }) => ({
    immutableId: found.resource.immutableId,
    labelsHash: found.labels === undefined ? null : labelsHash(found.labels, sha256),
    attachedTo: found.attachedTo === undefined ? null : attachedTo,
    takesAlong: found.takesAlong === undefined ? null : takesAlong,
  })),
})

/** Two facts, one of them fixed at creation: what the attempt recorded or a sweep proved, or the token that made it (I6). Null: it is ours. */
const notOurs = async (
  tools: RemovalTools,
  work: RemovalWork,
  known: ReadonlySet<string>,
  found: FoundResource,
): Promise<string | null> => {
  const { removal, attempt } = work
  const { installation } = tools
  // Another account has the same ids (leases R75).
  if (found.resource.scope !== removal.scope) return `it is of account ${found.resource.scope}, and the removal of ${removal.scope}`
  const verdict = preflight(
    { resource: found.resource, ref: removal.ref, installation, attemptToken: attempt.token },
    found,
    found.existence === 'exists',
  )
  if (verdict.kind === 'contradiction') return verdict.why
  const forged = await tools.context.keyring.whyNotOurs(found, attempt.mac_key)
  if (forged !== null) return forged
  if (known.has(found.resource.immutableId) || found.fixedAttemptToken === attempt.token) return null
  return 'nothing that was fixed at its creation says that its attempt made it'
}

type Seen = { kind: 'all'; members: Member[] } | { kind: 'failed'; error: string; contradiction: string | null }

/** Everything that exists of the group now. Where the provider knows no groups, what is known is all there is. */
const lookAt = async (tools: RemovalTools, held: Held, work: RemovalWork, provider: Provider, reads: Reads): Promise<Seen> => {
  const known = [...reads.values()]
  const present = known.flatMap(({ judged }) => (judged.kind === 'present' ? [judged.found] : []))
  const inspected = await inspectGroup(
    work,
    provider,
    known.map((one) => one.identity),
    held.signal,
  )
  if (inspected?.kind === 'incomplete')
    return { kind: 'failed', error: `its group could not be read: ${inspected.why}`, contradiction: null }
  const members = (inspected?.members ?? present).map(memberOf)
  const ids = new Set(members.map(({ found }) => found.resource.immutableId))
  const lost = present.find(({ resource }) => !ids.has(resource.immutableId))
  if (lost)
    return {
      kind: 'failed',
      error: `${lost.resource.kind} ${lost.resource.nativeId} was read, and its group does not show it`,
      contradiction: null,
    }
  const own = new Set(known.map((one) => one.identity.immutableId))
  const topology = provider.topology?.(work.config)
  // Tagged ones first: what carries no tags is ours only by an owner that is.
  const owners: FoundResource[] = []
  for (const { found } of members.toSorted((a, b) => Number(isInternal(a)) - Number(isInternal(b)))) {
    const internal = maybeInternal(topology, found)
    const why = internal ? whyNotInternal(found, owners, work.attempt.token) : await notOurs(tools, work, own, found)
    if (!internal && found.resource.kind === provider.ownerKind) owners.push(found)
    if (why === null) continue
    const { kind, nativeId, location } = found.resource
    return {
      kind: 'failed',
      error: `${kind} ${nativeId} of its group: ${why}`,
      contradiction: resourceKey(work.removal.provider, location, nativeId),
    }
  }
  return { kind: 'all', members }
}

/** Since the listing something came or went: sweeps judge it afresh. Null: it is exactly what was judged. */
const differsFromPlan = (planned: readonly ResourceIdentity[], members: readonly Member[]): string | null => {
  const then = new Set(planned.map((one) => one.immutableId))
  const now = new Set(members.map(({ found }) => found.resource.immutableId))
  const added = members.find(({ found }) => !then.has(found.resource.immutableId))
  if (added) return `${added.kind} ${added.nativeId} has come to its group`
  const lost = planned.find((one) => !now.has(one.immutableId))
  return lost ? `${lost.kind} ${lost.nativeId} of its group is gone` : null
}

/** Does its provider show nothing of its group either? Where it knows no groups, what was read is all there is. */
export const nothingLeftOf = async (
  work: RemovalWork,
  provider: Provider,
  known: readonly ResourceIdentity[],
  signal: AbortSignal,
): Promise<boolean> => {
  const inspected = await inspectGroup(work, provider, known, signal)
  return inspected === undefined || (inspected.kind === 'complete' && inspected.members.length === 0)
}

/** So long after its making an attempt's companions may still not be seen (decisions, Defaults: absence needs six times the visibility). */
const isYoung = ({ attempt }: RemovalWork, provider: Provider, now: number): boolean =>
  now < (attempt.ended_at ?? attempt.called_at ?? attempt.opened_at) + 6 * provider.visibilitySeconds * 1000

const missingOf = (work: RemovalWork, provider: Provider, members: readonly Member[], shape: Shape, reads: Reads): MissingMember[] => {
  const kinds = shape.kind === 'incomplete' ? shape.missing : []
  const missing = kinds.map((kind): MissingMember => ({ kind, immutableId: null, nativeId: null }))
  // A row of the first version tells of nothing that was removed: also its owner must be there, or a person says why it is not (leases R90).
  if (work.removal.version !== 1 || members.some((one) => one.kind === provider.ownerKind)) return missing
  const owners = [...reads.values()].filter((one) => one.judged.kind === 'absent' && one.identity.kind === provider.ownerKind)
  return [...owners.map(({ identity: { kind, immutableId, nativeId } }) => ({ kind, immutableId, nativeId })), ...missing]
}

/** What an earlier removal of this attempt proved gone, and what stays so: whatever is there again is no absence. */
const before = async (tools: RemovalTools, { removal }: RemovalWork, members: readonly Member[]): Promise<ResourceIdentity[]> => {
  const rows = await tools.context.store.read((session) => removalsOfAttempt(session, removal.attempt_id))
  const there = new Set(members.map(({ found }) => found.resource.immutableId))
  const earlier = rows.filter((row) => row.id !== removal.id).map((row) => ({ bound: identitiesOf(row), progress: progressOf(row) }))
  return goneBefore(earlier).filter((one) => !there.has(one.immutableId))
}

type Decision =
  | { kind: 'bind'; members: Member[]; before: ResourceIdentity[]; absent: Proved[] }
  /** It is not bound now, and this gives the row back. */
  | { kind: 'settle'; by: () => Promise<void> }

const settleBy = (by: () => Promise<void>): Decision => ({ kind: 'settle', by })

/** A read that failed, or what protects or changed something that a sweep found: the whole group waits, or is judged afresh. Null: nothing stands against it. */
const stoppedByReads = (tools: RemovalTools, held: Held, work: RemovalWork, reads: Reads): Decision | null => {
  const { store } = tools.context
  for (const { identity, judged } of reads.values()) {
    if (judged.kind !== 'failed') continue
    const contradiction = judged.contradiction ? resourceKey(work.removal.provider, identity.location, identity.nativeId) : null
    return settleBy(() => tools.failed({ held, work, error: judged.error, contradiction }))
  }
  const by = protectionOf(reads)
  if (by !== null) return settleBy(() => store.write((tx) => applyHeld(tx, held, work, by)))
  for (const { judged } of reads.values()) {
    if (judged.kind !== 'present' || judged.changed === null) continue
    const { changed } = judged
    return settleBy(() => store.write((tx) => applyDropped(tx, held, work, changed)))
  }
  return null
}

const decide = async (
  tools: RemovalTools,
  held: Held,
  work: RemovalWork,
  provider: Provider,
  known: readonly ResourceIdentity[],
): Promise<Decision> => {
  const { store } = tools.context
  const found = isFound(work.removal.cause)
  const reads = await readAll(tools, work, provider, known, held.signal)
  const stopped = stoppedByReads(tools, held, work, reads)
  if (stopped !== null) return stopped
  const seen = await lookAt(tools, held, work, provider, reads)
  if (seen.kind === 'failed') return settleBy(() => tools.failed({ held, work, ...seen }))
  const { members } = seen
  const young = isYoung(work, provider, await store.now())
  if (members.length === 0 && young && isGroup(work, provider)) {
    const error = 'nothing of its group is shown, and it is too young for that to prove anything'
    return settleBy(() => tools.failed({ held, work, error, contradiction: null }))
  }
  if (members.length === 0)
    return settleBy(async () => {
      // Nothing of it is there, and nothing was called: its absence is all that there is to record (leases R90).
      const empty = allAbsent(held, work, reads)
      if (empty) await tools.finish(empty)
      tools.settle(work)
    })
  const drop = (why: string): Decision => settleBy(() => store.write((tx) => applyDropped(tx, held, work, why)))
  const differs = found ? differsFromPlan(known, members) : null
  if (differs !== null) return drop(differs)

  const earlier = await before(tools, work, members)
  const there = members.map(({ found }) => found.resource)
  const said = acknowledgedOf(work.removal).filter((one) => !isLapsed(one, there))
  const gone = [...said, ...earlier].map(({ kind, nativeId }) => ({ kind, nativeId }))
  const topology = provider.topology?.(work.config)
  const shape: Shape<Member> =
    topology === undefined ? { kind: 'exact', members } : shapeOf(topology, members, { entrance: found ? 'found' : 'ended', gone })
  const missing = missingOf(work, provider, members, shape, reads).filter((one) => !gone.some((other) => other.kind === one.kind))
  if (shape.kind === 'exact' && missing.length === 0) {
    const absent = [...reads.values()].flatMap(({ identity, judged }) =>
      judged.kind === 'absent' ? [{ work, identity, proof: judged.proof }] : [],
    )
    return { kind: 'bind', members: shape.members, before: earlier, absent }
  }
  const why = shape.kind === 'exact' ? `its group is incomplete: ${missing.map(missingText).join(', ')} is gone` : shape.why
  if (found) return drop(why)
  if (shape.kind === 'refused' || shape.kind === 'blocked') return settleBy(() => store.write((tx) => needsPerson(tx, held, work, why)))
  if (young) return settleBy(() => tools.failed({ held, work, error: why, contradiction: null }))
  const code = work.removal.version === 1 ? 'unexplained-absence' : 'incomplete'
  const { sorted, ring } = inOrder(topology ?? oneMember(provider.ownerKind), members)
  const standing = [...sorted, ...ring].map(({ found: one }) => one.resource)
  return settleBy(() =>
    store.write((tx) => needsPerson(tx, held, work, why, { code, missing, seen: { at: tx.now, there: standing, unknown: null } })),
  )
}

/** @returns the removal as it is bound now; undefined: it is settled otherwise, and the row is given back */
export const bindGroup = async (
  tools: RemovalTools,
  held: Held,
  work: RemovalWork,
  provider: Provider,
  known: readonly ResourceIdentity[],
): Promise<RemovalWork | undefined> => {
  const decision = await decide(tools, held, work, provider, known)
  if (decision.kind === 'settle') {
    await decision.by()
    return undefined
  }
  const members = decision.members.map((one) => one.found.resource)
  const baseline = baselineOf(decision.members, decision.before)
  const bound = await tools.context.store.write((tx) =>
    applyBound(tx, held, work, { members, before: decision.before, baseline, absent: decision.absent }),
  )
  // By all its names from here on: a hold on any of them stops it in this very pass.
  return bound && { ...work, removal: bound, target: { ...work.target, resourceKeys: namesOf(bound, work.attempt) } }
}
