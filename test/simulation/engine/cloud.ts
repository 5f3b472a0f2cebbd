/**
 * A cloud in memory that lies within its contract: answers get lost, come late or never; deletions are accepted and not done; listings fail in pages, repeat
 * themselves and lag; tags are copied, and names are given again. It knows the truth about everything in it, which no engine is shown.
 */
import type {
  CallContext,
  CreateOutcome,
  CreateRequest,
  FindOutcome,
  ListingItem,
  Provider,
  ReadOutcome,
  RemoveOutcome,
  ResourceIdentity,
} from '../../../src/providers/contract.ts'
import type { Chance } from './random.ts'
import { makeStrangers, type Deed } from './strangers.ts'
import { found, listed, makeThings, memberKind, ownerKind, worldScope, type Disks, type Thing } from './things.ts'

/** Named as one that shares this machine's clock, so that the margin of sweeps is 5 s. */
export const providerName = 'process'
const createDeadlineMs = 60_000
const pageSize = 2

export interface Nature {
  /** How often a call is answered otherwise than plainly, in a hundred. */
  lies: number
  visibilitySeconds: number
  disks: Disks
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
  meddle(deed: Deed): boolean
}

/** @param now ms, the time of the store */
export const lyingCloud = (chance: Chance, nature: Nature, now: () => number): LyingCloud => {
  const account = makeThings(nature.disks, now)
  const { all: things, exists, visible, living, byImmutableId, end } = account
  const meddle = makeStrangers(chance, account, now)
  let calmed = false
  /** Calls that hang, until the line is cut. */
  const hung: ((error: Error) => void)[] = []
  const hangs = (): Promise<never> => new Promise((_, reject) => hung.push(reject))
  const visibilityMs = nature.visibilitySeconds * 1000
  const lies = (): boolean => !calmed && chance.chance(nature.lies)
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const make = (request: CreateRequest, delayMs: number): Thing =>
    account.make(request, delayMs, calmed ? 0 : chance.pick(visibilityMs + 1))
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
