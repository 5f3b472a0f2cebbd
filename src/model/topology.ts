/**
 * Which group may be taken back as a whole, and in what order: data of the provider, judged here. The engine knows kinds and edges, no clouds (leases R64,
 * R66, R77, R78; cases L1, L5).
 */

export interface Topology {
  /** Kinds in the order in which a group goes, the owner's first. What stands on something goes after it, whatever this says. */
  order: readonly string[]
  /** Of each of these kinds a whole group has exactly one; the owner may have gone before. Empty: whatever an attempt made is whole. */
  companions: readonly string[]
  /** Which kind may stand on which; missing: any, inside the group. */
  edges?: readonly (readonly [member: string, target: string])[]
  /** Kinds that a provider makes inside an owner and may leave without tags (a system disk). What it says of one is judged by `whyNotInternal` (leases R85). */
  internal?: readonly string[]
}

/** Of a provider whose removal of a whole group is one idempotent call. */
export const oneMember = (kind: string): Topology => ({ order: [kind], companions: [], edges: [] })

export interface ShapeMember {
  kind: string
  nativeId: string
  /** Native ids of what it stands on. */
  attachedTo: readonly string[]
  /** Native ids of what is deleted with it. */
  takesAlong: readonly string[]
  reportOnly: string | null
}

export interface ShapeQuestion {
  /** `found`: a sweep's, for which the provider's own word "report only" counts too; `ended`: what its holder or clock gave up. */
  entrance: 'found' | 'ended'
  /** What is known to be gone: proved by a removal of the same attempt, or acknowledged by a person. `nativeId` null: only the kind is known. */
  gone: readonly { kind: string; nativeId: string | null }[]
}

export type Shape<M extends ShapeMember = ShapeMember> =
  | { kind: 'exact'; members: M[] }
  /** Companions that are not there: `missing` has their kinds. */
  | { kind: 'incomplete'; why: string; missing: string[] }
  | { kind: 'refused'; why: string }
  /** They stand on each other: nothing can go first. */
  | { kind: 'blocked'; why: string; by: string[] }

const named = (member: ShapeMember): string => `${member.kind} ${member.nativeId}`

const targetsOf = <M extends Pick<ShapeMember, 'nativeId' | 'attachedTo'>>(member: M, members: readonly M[]): M[] =>
  members.filter((other) => other !== member && member.attachedTo.includes(other.nativeId))

/** What stands on nothing that is left goes next; of several the one whose kind comes first. @returns those that stand on each other as `ring` */
export const inOrder = <M extends Pick<ShapeMember, 'kind' | 'nativeId' | 'attachedTo'>>(
  topology: Topology,
  members: readonly M[],
): { sorted: M[]; ring: M[] } => {
  const rank = (member: M): number => topology.order.indexOf(member.kind)
  let left = members.toSorted((a, b) => rank(a) - rank(b) || (a.nativeId < b.nativeId ? -1 : 1))
  const sorted: M[] = []
  for (;;) {
    const next = left.find((member) => targetsOf(member, left).length === 0)
    if (next === undefined) break
    sorted.push(next)
    left = left.filter((member) => member !== next)
  }
  // What only stands on the ring is none of it.
  const isTarget = (member: M): boolean => left.some((other) => other !== member && other.attachedTo.includes(member.nativeId))
  while (left.some((member) => !isTarget(member))) left = left.filter(isTarget)
  return { sorted, ring: left }
}

/** Why a member keeps the whole group from going; null: it does not. */
const against = (topology: Topology, member: ShapeMember, members: readonly ShapeMember[], question: ShapeQuestion): string | null => {
  const owner = topology.order[0]
  const ids = new Set(members.map((one) => one.nativeId))
  const gone = new Set(question.gone.flatMap((one) => one.nativeId ?? []))
  if (!topology.order.includes(member.kind)) return `${named(member)} is of a kind that no group has`
  const along = member.takesAlong.find((id) => !ids.has(id) && !gone.has(id))
  if (along !== undefined) return `deleting ${named(member)} deletes ${along}, which is not of its group (cascade option)`
  if (question.entrance === 'found' && member.reportOnly !== null) return `${named(member)}: ${member.reportOnly}`
  // What its holder gave up goes from under whatever somebody put it on; its companions are not taken from under somebody else.
  const outside = member.attachedTo.find((id) => !ids.has(id) && !gone.has(id))
  if (outside !== undefined && (question.entrance === 'found' || member.kind !== owner))
    return `${named(member)} is attached to ${outside}, which is not of its group`
  if (topology.edges === undefined) return null
  const allowed = topology.edges
  const odd = targetsOf(member, members).find((target) => !allowed.some(([from, to]) => from === member.kind && to === target.kind))
  return odd === undefined ? null : `${named(member)} is attached to ${named(odd)}, as no group of this provider is`
}

/**
 * Is this exactly what may be taken back, and in what order? Anything else is reported (leases R66, R77).
 * @param members all that exist of the group
 */
export const shapeOf = <M extends ShapeMember>(topology: Topology, members: readonly M[], question: ShapeQuestion): Shape<M> => {
  for (const member of members) {
    const why = against(topology, member, members, question)
    if (why !== null) return { kind: 'refused', why }
  }
  for (const kind of topology.companions.length === 0 ? [] : topology.order) {
    const [first, second] = members.filter((member) => member.kind === kind)
    if (first && second) return { kind: 'refused', why: `it has a second ${kind}: ${named(first)} and ${named(second)}` }
  }
  const { sorted, ring } = inOrder(topology, members)
  if (ring.length > 0) {
    const by = ring.map(named)
    return { kind: 'blocked', why: `blocked by each other: ${by.join(', ')}`, by }
  }
  const missing = topology.companions.filter(
    (kind) => !members.some((member) => member.kind === kind) && !question.gone.some((one) => one.kind === kind),
  )
  if (missing.length > 0) return { kind: 'incomplete', why: `its group is incomplete: there is no ${missing.join(', no ')} of it`, missing }
  return { kind: 'exact', members: sorted }
}
