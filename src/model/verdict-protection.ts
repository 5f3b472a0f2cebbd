/** Who, or what, protects what is provably ours: a hold, a label, and the shape that its provider lets be taken back; see `verdict.ts`. */
import type { Fact, RefEvidence, RemovalEvidence, SeenResource } from './evidence.ts'
import { goneBefore } from './gone-before.ts'
import type { Group } from './group.ts'
import { holdAmong } from './holds-index.ts'
import { keepLabel } from './keep.ts'
import { resourceKey, type HoldFacts } from './removal.ts'
import { shapeOf, type Shape, type ShapeMember, type Topology } from './topology.ts'
import { conclude, fact, type Case, type Other, type Verdict } from './verdict-case.ts'

const holdOn = ({ group, evidence, ledger, policy }: Case): HoldFacts | undefined =>
  policy.holds.length === 0
    ? undefined
    : holdAmong(policy.holds, {
        resourceKeys: group.members.map(({ resource }) => resourceKey(policy.provider, resource.location, resource.nativeId)),
        instanceId: evidence.instance?.id ?? ledger.ownerId,
        leaseId: evidence.lease?.id,
        project: ledger.project,
        scope: policy.scope,
      })

/**
 * Is it exactly what its provider lets be taken back (leases R64, R66)? What an earlier removal of the same attempt proved gone is not missing: that one is
 * gone on with (orphans R91).
 */
export const shapeOfGroup = (
  group: Group,
  evidence: RefEvidence | null,
  topology: Topology | undefined,
): Shape<ShapeMember & { seen: SeenResource }> => {
  const members = group.members.map((seen) => ({
    kind: seen.resource.kind,
    nativeId: seen.resource.nativeId,
    attachedTo: seen.attachedTo,
    takesAlong: seen.takesAlong ?? [],
    reportOnly: seen.reportOnly,
    seen,
  }))
  // Without a topology the owner goes first, and alone: what was made with it is found by later sweeps (orphans R24, R70).
  if (topology === undefined) return { kind: 'exact', members: group.owner ? members.filter((one) => one.seen === group.owner) : members }
  const attempt = evidence?.attempts.find((one) => one.token === group.token)
  const gone = goneBefore((evidence?.removals ?? []).filter((removal) => removal.attemptId === attempt?.id))
  return shapeOf(topology, members, { entrance: 'found', gone })
}

/** orphans R91: the newest removal of what this attempt made, where a person ended it without proof. */
const closedRemoval = ({ group, evidence }: Case): RemovalEvidence | undefined => {
  const mine = evidence.attempts.find((attempt) => attempt.token === group.token)
  const closed = evidence.removals.filter((removal) => removal.attemptId === mine?.id && removal.closed != null)
  return closed.toSorted((a, b) => (a.closed?.at ?? 0) - (b.closed?.at ?? 0)).at(-1)
}

/** Why its provider lets nobody take it back in this shape. */
const whyNotInThisShape = (one: Case): { reason: Other; fact: string } | null => {
  const { group, evidence, policy } = one
  for (const { reportOnly, resource } of group.members)
    if (reportOnly !== null) return { reason: 'protected.report-only', fact: `${resource.kind} ${resource.nativeId}: ${reportOnly}` }
  if (group.outside.length > 0) return { reason: 'protected.attached-outside', fact: `attached to ${group.outside.join(', ')}` }
  const shape = shapeOfGroup(group, evidence, policy.topology)
  return shape.kind === 'exact' ? null : { reason: 'protected.report-only', fact: shape.why }
}

/** Where a person closed its removal, that is why nothing takes it back; who did, and what to end by hand, is told with it. */
const judgeShape = (one: Case): Verdict | null => {
  const { group, clock, listed } = one
  const why = whyNotInThisShape(one)
  if (why === null) return null
  const shape = fact('listing', clock.listingStartedAt, why.fact)
  const removal = closedRemoval(one)
  if (removal?.closed == null) return conclude(why.reason, [listed, shape])
  const { by, reason, at } = removal.closed
  const left = group.members.map(({ resource }) => `${resource.kind} ${resource.nativeId} in ${resource.location}`).join(', ')
  return conclude('protected.removal-closed', [
    listed,
    fact('removal', at, `removal ${removal.id} was closed by ${by}: ${reason}`),
    shape,
    fact('listing', clock.listingStartedAt, `to end by hand: ${left}`),
  ])
}

/** leases R89: of any removal of what this attempt made, whatever became of that. */
const judgeRecords = ({ group, evidence, listed }: Case): Verdict | null => {
  const mine = evidence.attempts.find((attempt) => attempt.token === group.token)
  const broken = evidence.removals.find((removal) => removal.attemptId === mine?.id && removal.unreadable != null)
  if (broken === undefined) return null
  return conclude('protected.removal-unreadable', [listed, fact('removal', evidence.readAt, `removal ${broken.id}: ${broken.unreadable}`)])
}

/** Who protects it: one member is enough for the group (leases R68). */
export const judgeProtection = (one: Case): Verdict | null => {
  const { group, clock, listed } = one
  const hold = holdOn(one)
  if (hold) return conclude('protected.hold', [listed, fact('hold', clock.now, `hold ${hold.id} on ${hold.targetType} ${hold.targetId}`)])
  const told = (member: SeenResource, text: string): Fact[] => [
    listed,
    fact('listing', clock.listingStartedAt, `${member.resource.kind} ${member.resource.nativeId}: ${text}`),
  ]
  for (const member of group.members) {
    const label = member.labels === null ? null : keepLabel(member.labels)
    if (label !== null) return conclude('protected.keep', told(member, `label ${label}=${member.labels?.[label] ?? ''}`))
  }
  // On a fleet's box nothing of a lease is written: what its holder said is in our own records alone.
  const { lease, readAt } = one.evidence
  if (lease?.keep != null)
    return conclude('protected.keep', [listed, fact('lease', readAt, `lease ${lease.id}, whose box it is, says "${lease.keep}"`)])
  return judgeRecords(one) ?? judgeShape(one)
}
