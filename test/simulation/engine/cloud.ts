/**
 * A cloud in memory that lies within its contract: answers get lost, come late or never; deletions are accepted and not done; listings fail in pages, repeat
 * themselves and lag; tags are copied, and names are given again. It knows the truth about everything in it, which no engine is shown.
 */
import type { ScopeId } from '../../../src/model/ids.ts'
import type {
  CallContext,
  CreateOutcome,
  CreateRequest,
  FindOutcome,
  FoundResource,
  ListedResource,
  ListingItem,
  Provider,
  ReadOutcome,
  RemoveOutcome,
  ResourceIdentity,
} from '../../../src/providers/contract.ts'
import type { Chance } from './random.ts'

export const worldScope = 'lying:one' as ScopeId
/** Named as one that shares this machine's clock, so that the margin of sweeps is 5 s. */
export const providerName = 'process'
const ownerKind = 'box'
const memberKind = 'disk'
export const createDeadlineMs = 60_000
const pageSize = 2

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

export interface Nature {
  /** How often a call is answered otherwise than plainly, in a hundred. */
  lies: number
  visibilitySeconds: number
  /** Does a machine come with a disk of its own? */
  disks: 'none' | 'cascade' | 'left behind'
  /** How much later than its call a create may surface; beyond the deadline, or beyond the visibility when its caller is dead, is against the contract. */
  lateMs: number
}

export interface LyingCloud {
  provider: Provider
  things: Thing[]
  /** From now on it tells the truth at once. */
  calm(): void
  exists(thing: Thing): boolean
  byImmutableId(id: string): Thing | undefined
  /** What others do. @returns false: there is nothing to do it to */
  meddle(deed: 'copy' | 'end' | 'reuse-name' | 'hide-tags' | 'show-tags'): boolean
}

/** @param now ms, the time of the store */
export const lyingCloud = (chance: Chance, nature: Nature, now: () => number): LyingCloud => {
  const things: Thing[] = []
  let serial = 0
  let calmed = false
  /** Calls that hang, until the line is cut. */
  const hung: ((error: Error) => void)[] = []
  const hangs = (): Promise<never> => new Promise((_, reject) => hung.push(reject))
  const visibilityMs = nature.visibilitySeconds * 1000
  const lies = (): boolean => !calmed && chance.chance(nature.lies)
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const exists = (thing: Thing): boolean => thing.existsAt <= now() && (thing.endsAt === null || thing.endsAt > now())
  const living = (): Thing[] => things.filter(exists)
  const byImmutableId = (id: string): Thing | undefined => things.find((thing) => thing.resource.immutableId === id)

  const add = (thing: Omit<Thing, 'endsAt' | 'endedBy' | 'readable'>): Thing => {
    const made: Thing = { ...thing, readable: true, endsAt: null, endedBy: null }
    things.push(made)
    return made
  }
  const identity = (kind: string, nativeId: string, location: string): ResourceIdentity => ({
    scope: worldScope,
    location,
    kind,
    nativeId,
    immutableId: `#${++serial}`,
    facts: {},
  })
  const make = (request: CreateRequest, delayMs: number): Thing => {
    const before = things.find((thing) => thing.token === request.attemptToken && thing.resource.kind === ownerKind)
    if (before) return before
    const existsAt = now() + delayMs
    const base = {
      maker: 'ours' as const,
      token: request.attemptToken,
      ref: request.ref,
      tags: { ref: request.ref, installation: request.installation, attempt: request.attemptToken, mac: request.mac },
      labels: request.labels,
      name: request.name,
      cascades: nature.disks === 'cascade',
      existsAt,
      visibleAt: existsAt + (calmed ? 0 : chance.pick(visibilityMs + 1)),
    }
    const machine = add({
      ...base,
      resource: identity(ownerKind, `${request.ref}-${request.attemptNumber}`, request.location),
      attachedTo: [],
    })
    if (nature.disks !== 'none')
      add({
        ...base,
        resource: identity(memberKind, `${machine.resource.nativeId}-disk`, request.location),
        attachedTo: [machine.resource.nativeId],
      })
    return machine
  }
  const end = (thing: Thing, delayMs: number, by: NonNullable<Thing['endedBy']>): void => {
    thing.endsAt = now() + delayMs
    thing.endedBy = by
    for (const other of things) {
      if (other === thing || !other.attachedTo.includes(thing.resource.nativeId) || other.maker !== thing.maker) continue
      if (other.cascades && other.endsAt === null) Object.assign(other, { endsAt: thing.endsAt, endedBy: by })
      other.attachedTo = other.attachedTo.filter((id) => id !== thing.resource.nativeId)
    }
  }

  const found = (thing: Thing): FoundResource => ({
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
  const listed = (thing: Thing): ListedResource => ({
    ...found(thing),
    name: thing.name,
    createdAt: thing.existsAt,
    labels: thing.readable ? thing.labels : null,
    attachedTo: [...thing.attachedTo],
    reportOnly: null,
  })
  const visible = (thing: Thing): boolean => exists(thing) && thing.visibleAt <= now()

  const created = (machine: Thing): CreateOutcome => ({ kind: 'created', resource: machine.resource, ready: true })
  const create = async (request: CreateRequest): Promise<CreateOutcome> => {
    if (!lies()) return created(make(request, 0))
    const how = chance.weighted({
      refused: 3,
      'lost before': 3,
      'lost after': 4,
      'lost after, with its name': 2,
      'thrown after': 2,
      'not ready': 2,
      slow: 2,
      'hangs before': 1,
      'hangs after': 3,
      'surfaces late': 3,
    })
    switch (how) {
      case 'refused':
        return { kind: 'rejected', code: 'quota', message: 'no room' }
      case 'lost before':
        return { kind: 'uncertain', message: 'the answer was lost', resource: null }
      case 'lost after':
        make(request, 0)
        return { kind: 'uncertain', message: 'the answer was lost', resource: null }
      case 'lost after, with its name':
        return { kind: 'uncertain', message: 'the answer was lost', resource: make(request, 0).resource }
      case 'thrown after':
        make(request, 0)
        throw new Error('socket hang up')
      case 'not ready':
        return { kind: 'created', resource: make(request, 0).resource, ready: false }
      case 'slow': {
        const machine = make(request, 0)
        await pause(chance.pick(createDeadlineMs + 30_000))
        return created(machine)
      }
      case 'hangs before':
        return hangs()
      case 'hangs after':
        make(request, 0)
        return hangs()
      case 'surfaces late':
        make(request, chance.pick(nature.lateMs + 1))
        return chance.chance(50) ? hangs() : { kind: 'uncertain', message: 'the answer was lost', resource: null }
    }
  }
  const find = async (ref: string): Promise<FindOutcome> => {
    if (lies()) {
      const how = chance.weighted({ incomplete: 4, throws: 2, hangs: 1 })
      if (how === 'incomplete') return { kind: 'incomplete', why: 'a page failed' }
      if (how === 'throws') throw new Error('socket hang up')
      return hangs()
    }
    // Whose tags can't be read may be anybody's: that is not the same as none.
    if (things.some((thing) => !thing.readable && thing.resource.kind === ownerKind && visible(thing)))
      return { kind: 'incomplete', why: 'the tags of a box can not be read' }
    const mine = things.filter((thing) => thing.tags.ref === ref && thing.readable && thing.resource.kind === ownerKind && visible(thing))
    return { kind: 'complete', found: mine.map(found), contradictions: [] }
  }
  const read = async (resource: ResourceIdentity): Promise<ReadOutcome> => {
    if (lies()) {
      const how = chance.weighted({ unknown: 4, throws: 2, slow: 2, hangs: 1 })
      if (how === 'unknown') return { kind: 'unknown', error: 'internal error' }
      if (how === 'throws') throw new Error('socket hang up')
      if (how === 'hangs') return hangs()
      await pause(chance.pick(25_000))
    }
    const same = living().find((thing) => thing.resource.nativeId === resource.nativeId && thing.resource.location === resource.location)
    if (same === undefined) return { kind: 'absent', proof: `the cloud answers "not found" for ${resource.nativeId}`, contradictions: [] }
    if (same.resource.immutableId !== resource.immutableId) return { kind: 'replaced', why: 'another immutable id' }
    return { kind: 'present', found: found(same), contradictions: [] }
  }
  const remove = async (resource: ResourceIdentity): Promise<RemoveOutcome> => {
    const same = living().find((thing) => thing.resource.immutableId === resource.immutableId)
    if (same === undefined) return { kind: 'gone', requestId: null }
    if (!lies()) {
      end(same, 0, 'engine')
      return chance.chance(50) ? { kind: 'gone', requestId: null } : { kind: 'accepted', requestId: 'req' }
    }
    const how = chance.weighted({
      'takes its time': 4,
      'accepted, not done': 3,
      'error before': 3,
      'error after': 3,
      'thrown after': 2,
      denied: 1,
      later: 2,
      blocked: 1,
      slow: 2,
      'hangs before': 1,
      'hangs after': 2,
    })
    switch (how) {
      case 'takes its time':
        end(same, chance.pick(20_000), 'engine')
        return { kind: 'accepted', requestId: 'req' }
      case 'accepted, not done':
        return { kind: 'accepted', requestId: 'req' }
      case 'error before':
        return { kind: 'unknown', error: 'internal error' }
      case 'error after':
        end(same, 0, 'engine')
        return { kind: 'unknown', error: 'internal error' }
      case 'thrown after':
        end(same, 0, 'engine')
        throw new Error('socket hang up')
      case 'denied':
        return { kind: 'denied', permission: 'box:delete' }
      case 'later':
        return { kind: 'retryLater', why: 'too many requests', afterSeconds: null }
      case 'blocked':
        return { kind: 'blocked', by: 'a lock' }
      case 'slow':
        end(same, 0, 'engine')
        await pause(chance.pick(40_000))
        return { kind: 'gone', requestId: null }
      case 'hangs before':
        return hangs()
      case 'hangs after':
        end(same, 0, 'engine')
        return hangs()
    }
  }
  const listCell = async function* (location: string, kind: string): AsyncGenerator<ListingItem> {
    const state = (kindOfState: 'complete' | 'partial' | 'denied', pages: number): ListingItem => ({
      type: 'coverage',
      coverage: {
        location,
        kind,
        pages,
        state:
          kindOfState === 'complete'
            ? { kind: 'complete' }
            : kindOfState === 'partial'
              ? { kind: 'partial', why: 'a page failed' }
              : { kind: 'denied', permission: `${kind}:list` },
      },
    })
    // Without a ref, readable or not, it is none of ours to list (orphans R27).
    const all = things.filter(
      (thing) =>
        thing.resource.kind === kind &&
        thing.resource.location === location &&
        visible(thing) &&
        !(thing.readable && thing.tags.ref === null),
    )
    const pages: Thing[][] = []
    for (let at = 0; at < all.length; at += pageSize) pages.push(all.slice(at, at + pageSize))
    const how = lies() ? chance.weighted({ partial: 4, denied: 1, repeats: 2, slow: 2, hangs: 1, throws: 1 }) : 'plain'
    if (how === 'denied') return yield state('denied', 0)
    if (how === 'throws') throw new Error('socket hang up')
    if (how === 'hangs') await hangs()
    if (how === 'slow') await pause(chance.pick(20_000))
    const fails = how === 'partial' ? chance.pick(pages.length + 1) : pages.length
    for (const page of pages.slice(0, fails)) yield { type: 'page', location, kind, resources: page.map(listed) }
    if (how === 'repeats' && pages[0]) yield { type: 'page', location, kind, resources: pages[0].map(listed) }
    yield state(how === 'partial' ? 'partial' : 'complete', Math.max(1, fails))
  }

  const some = (which: (thing: Thing) => boolean): Thing | undefined => {
    const fitting = things.filter(which)
    return fitting.length === 0 ? undefined : chance.of(fitting)
  }
  const meddle: LyingCloud['meddle'] = (deed) => {
    switch (deed) {
      case 'copy': {
        const original = some((thing) => thing.maker === 'ours' && thing.readable)
        if (!original) return false
        const { kind, nativeId, location } = original.resource
        const at = now()
        add({
          ...original,
          maker: 'copy',
          token: null,
          resource: identity(kind, `${nativeId}-copy-${serial}`, location),
          attachedTo: [],
          existsAt: at,
          visibleAt: at,
        })
        return true
      }
      case 'end': {
        const one = some((thing) => exists(thing) && thing.endsAt === null)
        if (one) end(one, 0, 'stranger')
        return one !== undefined
      }
      case 'reuse-name': {
        const gone = some((thing) => thing.endsAt !== null && thing.endsAt <= now())
        const taken = gone && living().some((thing) => thing.resource.nativeId === gone.resource.nativeId)
        if (!gone || taken) return false
        const { kind, nativeId, location } = gone.resource
        const at = now()
        // With or without the tags of what had the name before.
        const tags = chance.chance(50) ? gone.tags : { ref: null, installation: null, attempt: null, mac: null }
        add({
          ...gone,
          maker: 'stranger',
          token: null,
          tags,
          resource: identity(kind, nativeId, location),
          attachedTo: [],
          existsAt: at,
          visibleAt: at,
        })
        return true
      }
      case 'hide-tags':
      case 'show-tags': {
        const one = some((thing) => exists(thing) && thing.readable === (deed === 'hide-tags'))
        if (one) one.readable = deed === 'show-tags'
        return one !== undefined
      }
    }
  }

  const provider: Provider = {
    name: providerName,
    ownerKind,
    visibilitySeconds: nature.visibilitySeconds,
    createDeadlineSeconds: createDeadlineMs / 1000,
    callDeadlineSeconds: 30,
    locations: ['here'],
    kinds: [ownerKind, memberKind],
    scope: async () => {
      if (lies() && chance.chance(20)) return { kind: 'unknown', error: 'internal error' }
      return { kind: 'known', scope: worldScope, description: 'a lying account' }
    },
    parseConfig: (config) => (config ?? {}) as Record<string, unknown>,
    create: (request) => create(request),
    find: (ref) => find(ref),
    read: (resource) => read(resource),
    remove: (resource) => remove(resource),
    async *list(locations: readonly string[], _config: Record<string, unknown>, { signal }: CallContext) {
      for (const location of locations)
        for (const kind of [ownerKind, memberKind]) {
          signal.throwIfAborted()
          yield* listCell(location, kind)
        }
    },
    async rearm() {},
    access: (resource) => ({ kind: 'session', folder: `/nowhere/${resource.nativeId}`, machineID: 'none', bootID: 'none' }),
    doctor: async () => [],
  }
  return {
    provider,
    things,
    calm() {
      calmed = true
      for (const thing of things) thing.readable = true
      for (const cut of hung.splice(0)) cut(new Error('connection reset'))
    },
    exists,
    byImmutableId,
    meddle,
  }
}
