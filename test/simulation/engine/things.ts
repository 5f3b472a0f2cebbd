/** What there is in the lying cloud, with the truth about it that no engine is shown. */
import type { ScopeId } from '../../../src/model/ids.ts'
import type { CreateRequest, FoundResource, ListedResource, ResourceIdentity } from '../../../src/providers/contract.ts'

export const worldScope = 'lying:one' as ScopeId
export const ownerKind = 'box'
export const memberKind = 'disk'

/** One thing in the cloud, with the truth about it. */
export interface Thing {
  resource: ResourceIdentity
  /** `ours`: an attempt of ours made it; `copy`: somebody copied one of ours, tags and all; `stranger`: it has a name of ours, and nothing else. */
  maker: 'ours' | 'copy' | 'stranger'
  /** Of the attempt that truly made it; null: none of ours did. */
  token: string | null
  ref: string
  tags: { ref: string | null; installation: string | null; attempt: string | null; mac: string | null }
  readable: boolean
  labels: Record<string, string>
  name: string
  attachedTo: string[]
  /** With its machine goes what is attached to it. */
  cascades: boolean
  existsAt: number
  visibleAt: number
  /** null: nobody has ended it. */
  endsAt: number | null
  /** Whose deed its end was. */
  endedBy: 'engine' | 'stranger' | null
}

/** Does a machine come with a disk of its own, and does that go with it? */
export type Disks = 'none' | 'cascade' | 'left behind'

export interface Things {
  all: Thing[]
  exists: (thing: Thing) => boolean
  /** In listings, too. */
  visible: (thing: Thing) => boolean
  living: () => Thing[]
  byImmutableId: (id: string) => Thing | undefined
  add: (thing: Omit<Thing, 'endsAt' | 'endedBy' | 'readable'>) => Thing
  identity: (kind: string, nativeId: string, location: string) => ResourceIdentity
  /**
   * What a create makes; the same token never makes a second one.
   * @param delayMs until it exists. @param lagMs from then until a listing shows it
   */
  make: (request: CreateRequest, delayMs: number, lagMs: number) => Thing
  end: (thing: Thing, delayMs: number, by: NonNullable<Thing['endedBy']>) => void
}

export const found = (thing: Thing): FoundResource => ({
  resource: thing.resource,
  tags: thing.readable ? thing.tags : { ref: null, installation: null, attempt: null, mac: null },
  fixedAttemptToken: thing.token,
  providerState: thing.endsAt === null ? 'running' : 'terminating',
  existence: thing.endsAt === null ? 'exists' : 'going',
  labels: thing.readable ? thing.labels : null,
  reportOnly: null,
  name: thing.name,
  attachedTo: [...thing.attachedTo],
})
export const listed = (thing: Thing): ListedResource => ({
  ...found(thing),
  name: thing.name,
  createdAt: thing.existsAt,
  labels: thing.readable ? thing.labels : null,
  attachedTo: [...thing.attachedTo],
  reportOnly: null,
})

export const makeThings = (disks: Disks, now: () => number): Things => {
  const all: Thing[] = []
  let serial = 0
  const exists = (thing: Thing): boolean => thing.existsAt <= now() && (thing.endsAt === null || thing.endsAt > now())
  const living = (): Thing[] => all.filter(exists)
  const byImmutableId = (id: string): Thing | undefined => all.find((thing) => thing.resource.immutableId === id)

  const add: Things['add'] = (thing) => {
    const made: Thing = { ...thing, readable: true, endsAt: null, endedBy: null }
    all.push(made)
    return made
  }
  const identity: Things['identity'] = (kind, nativeId, location) => ({
    scope: worldScope,
    location,
    kind,
    nativeId,
    immutableId: `#${++serial}`,
    facts: {},
  })
  const make: Things['make'] = (request, delayMs, lagMs) => {
    const before = all.find((thing) => thing.token === request.attemptToken && thing.resource.kind === ownerKind)
    if (before) return before
    const existsAt = now() + delayMs
    const base = {
      maker: 'ours' as const,
      token: request.attemptToken,
      ref: request.ref,
      tags: { ref: request.ref, installation: request.installation, attempt: request.attemptToken, mac: request.mac },
      labels: request.labels,
      name: request.name,
      cascades: disks === 'cascade',
      existsAt,
      visibleAt: existsAt + lagMs,
    }
    const machine = add({
      ...base,
      resource: identity(ownerKind, `${request.ref}-${request.attemptNumber}`, request.location),
      attachedTo: [],
    })
    if (disks !== 'none')
      add({
        ...base,
        resource: identity(memberKind, `${machine.resource.nativeId}-disk`, request.location),
        attachedTo: [machine.resource.nativeId],
      })
    return machine
  }
  const end: Things['end'] = (thing, delayMs, by) => {
    thing.endsAt = now() + delayMs
    thing.endedBy = by
    for (const other of all) {
      if (other === thing || !other.attachedTo.includes(thing.resource.nativeId) || other.maker !== thing.maker) continue
      if (other.cascades && other.endsAt === null) Object.assign(other, { endsAt: thing.endsAt, endedBy: by })
      other.attachedTo = other.attachedTo.filter((id) => id !== thing.resource.nativeId)
    }
  }

  const visible = (thing: Thing): boolean => exists(thing) && thing.visibleAt <= now()
  return { all, exists, visible, living, byImmutableId, add, identity, make, end }
}
