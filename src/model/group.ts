/**
 * What one attempt made, as far as a listing shows it: by location, ref and attempt token, then by attachment, never by ref alone (orphans R13, R60,
 * U14). A copy with copied tags is a group of its own: a group has one owner resource at most, and may have lost it (R19).
 */
import type { SeenResource } from './evidence.ts'

export interface Group {
  location: string
  ref: string | null
  /** What the leader's tag says; whoever disagrees with it is found out when ownership is proved. */
  installation: string | null
  /** The attempt's token: what was fixed at creation, else what the tag says. */
  token: string | null
  owner: SeenResource | null
  /** All of it, the owner first, the rest by kind and id: the order in which a removal takes them. */
  members: readonly SeenResource[]
  /** Native ids outside the group that members are attached to. */
  outside: readonly string[]
  /** Members that several owner resources of the same attempt share: nobody can say whose they are. */
  shared: boolean
  /** One resource was listed twice with different words: the listing is no ground for a verdict. */
  inconsistent: boolean
}

// A NUL stands in no id and no tag: it can't be written into the environment or a label.
const key = (...parts: (string | null)[]): string => parts.join('\0')

export const identityKey = (seen: SeenResource): string =>
  key(seen.resource.scope, seen.resource.location, seen.resource.kind, seen.resource.immutableId)

/** The same text for the same facts, whatever order they came in. */
export const stableText = (seen: SeenResource): string =>
  JSON.stringify([
    seen.resource.scope,
    seen.resource.location,
    seen.resource.kind,
    seen.resource.nativeId,
    seen.resource.immutableId,
    seen.name,
    seen.createdAt,
    seen.tags.ref,
    seen.tags.installation,
    seen.tags.attempt,
    seen.fixedAttemptToken,
    seen.labels === null ? null : Object.entries(seen.labels).toSorted(([a], [b]) => compare(a, b)),
    [...seen.attachedTo].toSorted(compare),
    seen.reportOnly,
  ])

export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const tokenOf = (seen: SeenResource): string | null => seen.fixedAttemptToken ?? seen.tags.attempt

/** Not by the installation's tag: a machine that somebody took it off is still the machine of its disk. */
const bucketKey = (seen: SeenResource): string =>
  seen.tags.ref === null ? `?${identityKey(seen)}` : key(seen.resource.scope, seen.resource.location, seen.tags.ref, tokenOf(seen))

interface Listed {
  seen: SeenResource
  inconsistent: boolean
}

/** So many resources between two places to yield. */
const pace = 250

/** Each resource once. Of differing words the smaller text stays, so that the order of pages decides nothing. */
function* distinct(resources: readonly SeenResource[]): Generator<null, Map<string, Listed>> {
  const byIdentity = new Map<string, Listed>()
  for (const [i, seen] of resources.entries()) {
    if (i % pace === pace - 1) yield null
    const identity = identityKey(seen)
    const before = byIdentity.get(identity)
    if (!before) byIdentity.set(identity, { seen, inconsistent: false })
    else {
      // Existing comes before going and gone: what was shown to exist once is not dropped.
      const texts = [before.seen.existence + stableText(before.seen), seen.existence + stableText(seen)] as const
      if (texts[0] !== texts[1]) byIdentity.set(identity, { seen: texts[0] < texts[1] ? before.seen : seen, inconsistent: true })
    }
  }
  return byIdentity
}

/** Most groups of most listings: one resource, and nothing attached to it. */
const single = ({ seen, inconsistent }: Listed, ownerKind: string): Group => ({
  location: seen.resource.location,
  ref: seen.tags.ref,
  installation: seen.tags.installation,
  token: tokenOf(seen),
  owner: seen.resource.kind === ownerKind ? seen : null,
  members: [seen],
  outside: seen.attachedTo.length === 0 ? [] : [...new Set(seen.attachedTo)].toSorted(compare),
  shared: false,
  inconsistent,
})

const makeGroup = (owner: Listed | null, rest: readonly Listed[], shared: boolean): Group => {
  const sorted = rest.toSorted(
    (a, b) => compare(a.seen.resource.kind, b.seen.resource.kind) || compare(identityKey(a.seen), identityKey(b.seen)),
  )
  const members = owner ? [owner, ...sorted] : sorted
  const first = (members[0] as Listed).seen
  const inside = new Set(members.map((member) => member.seen.resource.nativeId))
  // Where a disk bears its machine's name, an edge to its own name is the machine, and only the owner resource can be that.
  const isInside = (member: Listed, id: string): boolean =>
    owner?.seen.resource.nativeId === id || (inside.has(id) && member.seen.resource.nativeId !== id)
  const outside = new Set(members.flatMap((member) => member.seen.attachedTo.filter((id) => !isInside(member, id))))
  return {
    location: first.resource.location,
    ref: first.tags.ref,
    installation: first.tags.installation,
    token: tokenOf(first),
    owner: owner?.seen ?? null,
    members: members.map((member) => member.seen),
    outside: [...outside].toSorted(compare),
    shared,
    inconsistent: members.some((member) => member.inconsistent),
  }
}

/** Internals of one bucket, each with what it hangs together with, seen as an undirected graph that ends at owner resources. */
const components = (internals: readonly Listed[]): Listed[][] => {
  const left = new Set(internals)
  const byId = new Map<string, Listed[]>()
  const attached = new Map<string, Listed[]>()
  const push = (map: Map<string, Listed[]>, id: string, one: Listed): void => void (map.get(id)?.push(one) ?? map.set(id, [one]))
  for (const one of internals) {
    push(byId, one.seen.resource.nativeId, one)
    for (const id of one.seen.attachedTo) push(attached, id, one)
  }
  const found: Listed[][] = []
  for (const start of internals) {
    if (!left.delete(start)) continue
    const component = [start]
    for (const one of component) {
      const next = [...one.seen.attachedTo.flatMap((id) => byId.get(id) ?? []), ...(attached.get(one.seen.resource.nativeId) ?? [])]
      for (const neighbour of next) if (left.delete(neighbour)) component.push(neighbour)
    }
    found.push(component)
  }
  return found
}

const groupsOf = (bucket: readonly Listed[], ownerKind: string): Group[] => {
  if (bucket.length === 1) return [single(bucket[0] as Listed, ownerKind)]
  const owners = bucket.filter((one) => one.seen.resource.kind === ownerKind)
  const joined = new Map(owners.map((owner): [Listed, Listed[]] => [owner, []]))
  const groups: Group[] = []
  /** Without an owner that could hold them together: what was fixed at their creation says that one attempt made them all (leases R64). */
  const orphaned: Listed[] = []
  for (const component of components(bucket.filter((one) => one.seen.resource.kind !== ownerKind))) {
    const ids = new Set(component.map((one) => one.seen.resource.nativeId))
    const edges = new Set(component.flatMap((one) => one.seen.attachedTo))
    const touching = owners.filter((owner) => edges.has(owner.seen.resource.nativeId) || owner.seen.attachedTo.some((id) => ids.has(id)))
    if (touching.length === 1) joined.get(touching[0] as Listed)?.push(...component)
    else if (touching.length > 1) groups.push(makeGroup(null, component, true))
    else {
      // Unattached: its own fixed token names the attempt, and only one owner resource bears the same.
      const named = owners.filter((owner) => owner.seen.fixedAttemptToken !== null)
      const same = component.every((one) => one.seen.fixedAttemptToken !== null) && named.length === 1
      if (same) joined.get(named[0] as Listed)?.push(...component)
      else if (owners.length === 0 && component.every((one) => one.seen.fixedAttemptToken !== null)) orphaned.push(...component)
      else groups.push(makeGroup(null, component, false))
    }
  }
  if (orphaned.length > 0) groups.push(makeGroup(null, orphaned, false))
  for (const [owner, rest] of joined) groups.push(makeGroup(owner, rest, false))
  return groups
}

/**
 * Every group of a listing, one at a time, so that whoever takes them may yield in between; null: nothing yet, and a place to yield all the same. What the
 * provider calls gone does not exist and belongs to none (case F3). The groups do not depend on the order of the listing; which comes first does.
 */
export function* eachGroup(resources: readonly SeenResource[], ownerKind: string): Generator<Group | null> {
  const buckets = new Map<string, Listed[]>()
  let i = 0
  for (const one of (yield* distinct(resources)).values()) {
    if (i++ % pace === pace - 1) yield null
    if (one.seen.existence === 'gone') continue
    const place = bucketKey(one.seen)
    const bucket = buckets.get(place)
    if (bucket) bucket.push(one)
    else buckets.set(place, [one])
  }
  for (const bucket of buckets.values()) yield* groupsOf(bucket, ownerKind)
}

/** All of them at once, in an order that the listing's does not decide. */
export const formGroups = (resources: readonly SeenResource[], ownerKind: string): Group[] =>
  [...eachGroup(resources, ownerKind)]
    .filter((group) => group !== null)
    .map((group): [string, Group] => [identityKey(leader(group)), group])
    .toSorted(([a], [b]) => compare(a, b))
    .map(([, group]) => group)

/** The resource by which people name the group. */
export const leader = (group: Group): SeenResource => group.members[0] as SeenResource
