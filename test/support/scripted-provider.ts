/**
 * A provider in memory whose answers a test scripts: what a cloud does when it lies, hangs or loses an answer. Beside it every engine suite
 * that can runs on real boxes.
 */
import type {
  CallContext,
  CreateOutcome,
  CreateRequest,
  FindOutcome,
  LeftoverOutcome,
  ListedResource,
  ListingItem,
  Provider,
  ReadOutcome,
  RemoveOutcome,
  ResourceIdentity,
  WipeContext,
  WipeOutcome,
} from '../../src/providers/contract.ts'
import type { ScopeId } from '../../src/model/ids.ts'

export const testScope = 'scripted:one' as ScopeId

/** Another account where the backend's configuration says so. */
const accountOf = (config: Record<string, unknown>): ScopeId =>
  typeof config['account'] === 'string' ? (config['account'] as ScopeId) : testScope

export interface Scripted extends Provider {
  /** What exists now, by native id. */
  boxes: Map<string, ListedResource>
  /** Answers a whole listing instead of the default: every box, one page, complete. May throw. */
  onList?: ((locations: readonly string[]) => readonly ListingItem[] | Promise<readonly ListingItem[]>) | undefined
  calls: { op: 'create' | 'find' | 'read' | 'remove' | 'rearm' | 'list' | 'clear' | 'leftovers'; id: string }[]
  /** Seconds from then on, as each clock was moved. */
  rearmed: { id: string; seconds: number }[]
  /** What holders left, by native id; only `wiping` providers take it away. */
  contents: Map<string, string[]>
  /** What each create was asked for. */
  requests: CreateRequest[]
  onClear?: ((resource: ResourceIdentity, context: WipeContext) => Promise<WipeOutcome | undefined> | WipeOutcome | undefined) | undefined
  onLeftovers?: (() => LeftoverOutcome | undefined) | undefined
  /** Each may answer instead of the default; undefined: the default. */
  onCreate?: ((request: CreateRequest, context: CallContext) => Promise<CreateOutcome | undefined> | CreateOutcome | undefined) | undefined
  onFind?: ((ref: string) => Promise<FindOutcome | undefined> | FindOutcome | undefined) | undefined
  onRead?: ((resource: ResourceIdentity) => Promise<ReadOutcome | undefined> | ReadOutcome | undefined) | undefined
  onRemove?:
    | ((resource: ResourceIdentity, context: CallContext) => Promise<RemoveOutcome | undefined> | RemoveOutcome | undefined)
    | undefined
  /** Makes the resource as a create would, whatever is answered then. */
  make(request: CreateRequest): ResourceIdentity
  count(op: Scripted['calls'][number]['op']): number
}

export const scriptedProvider = (
  name = 'scripted',
  tuning: Partial<Pick<Provider, 'visibilitySeconds' | 'createDeadlineSeconds' | 'callDeadlineSeconds' | 'writesMac'>> = {},
): Scripted => {
  let serial = 0
  const boxes = new Map<string, ListedResource>()
  const calls: Scripted['calls'] = []
  const provider: Scripted = {
    name,
    ownerKind: 'box',
    visibilitySeconds: 0,
    createDeadlineSeconds: 60,
    callDeadlineSeconds: 30,
    ...tuning,
    locations: ['here'],
    kinds: ['box'],
    boxes,
    calls,
    rearmed: [],
    contents: new Map(),
    requests: [],
    count: (op) => calls.filter((call) => call.op === op).length,
    make(request) {
      const existing = [...boxes.values()].find((box) => box.fixedAttemptToken === request.attemptToken)
      if (existing) return existing.resource
      serial++
      const resource: ResourceIdentity = {
        scope: accountOf(request.config),
        location: request.location,
        kind: 'box',
        nativeId: `${request.ref}-${request.attemptNumber}`,
        immutableId: `${request.ref}#${serial}`,
        facts: {},
      }
      boxes.set(resource.nativeId, {
        resource,
        tags: { ref: request.ref, installation: request.installation, attempt: request.attemptToken, mac: request.mac },
        fixedAttemptToken: request.attemptToken,
        providerState: 'running',
        existence: 'exists',
        name: request.name,
        createdAt: null,
        labels: request.labels,
        attachedTo: [],
        reportOnly: null,
      })
      return resource
    },
    // Another account where the backend's configuration says so.
    scope: async (config) => ({ kind: 'known', scope: accountOf(config), description: 'a scripted account' }),
    parseConfig: (config) => (config ?? {}) as Record<string, unknown>,
    async create(request, context) {
      calls.push({ op: 'create', id: request.ref })
      provider.requests.push(request)
      return (await provider.onCreate?.(request, context)) ?? { kind: 'created', resource: provider.make(request), ready: true }
    },
    async find(ref) {
      calls.push({ op: 'find', id: ref })
      return (
        (await provider.onFind?.(ref)) ?? {
          kind: 'complete',
          found: [...boxes.values()].filter((box) => box.tags.ref === ref),
          contradictions: [],
        }
      )
    },
    async read(resource) {
      calls.push({ op: 'read', id: resource.nativeId })
      const scripted = await provider.onRead?.(resource)
      if (scripted) return scripted
      const found = boxes.get(resource.nativeId)
      if (!found) return { kind: 'absent', proof: 'not in the list', contradictions: [] }
      if (found.resource.immutableId !== resource.immutableId) return { kind: 'replaced', why: 'another immutable id' }
      return { kind: 'present', found, contradictions: [] }
    },
    async remove(resource, _config, context) {
      calls.push({ op: 'remove', id: resource.nativeId })
      const scripted = await provider.onRemove?.(resource, context)
      if (scripted) return scripted
      boxes.delete(resource.nativeId)
      return { kind: 'gone', requestId: null }
    },
    async *list(locations, config) {
      calls.push({ op: 'list', id: locations.join() })
      if (provider.onList) {
        yield* await provider.onList(locations)
        return
      }
      const mine = new Map([...boxes].filter(([, box]) => box.resource.scope === accountOf(config)))
      for (const location of locations) yield* everything(mine, location)
    },
    async rearm(resource, seconds) {
      calls.push({ op: 'rearm', id: resource.nativeId })
      provider.rearmed.push({ id: resource.nativeId, seconds })
    },
    access: (resource) => ({ kind: 'session', folder: `/nowhere/${resource.nativeId}`, machineID: 'none', bootID: 'none' }),
    doctor: async () => [],
  }
  return provider
}

/** The same with the capability to wipe: what is left in a box goes, unless the test scripts another answer. */
export const wipingProvider = (name = 'scripted'): Scripted => {
  const provider = scriptedProvider(name)
  return Object.assign(provider, {
    wipe: {
      async clear(resource: ResourceIdentity, _config: Record<string, unknown>, context: WipeContext): Promise<WipeOutcome> {
        provider.calls.push({ op: 'clear', id: resource.nativeId })
        const scripted = await provider.onClear?.(resource, context)
        if (scripted) return scripted
        if (!context.stands()) return { kind: 'failed', why: 'the lock was lost' }
        provider.contents.delete(resource.nativeId)
        return { kind: 'wiped' }
      },
      async leftovers(resource: ResourceIdentity): Promise<LeftoverOutcome> {
        provider.calls.push({ op: 'leftovers', id: resource.nativeId })
        return (
          provider.onLeftovers?.() ?? {
            kind: 'complete',
            left: provider.contents.get(resource.nativeId) ?? [],
            looked: 'all of its contents',
          }
        )
      },
    },
  } satisfies Pick<Provider, 'wipe'>)
}

/** A complete listing of one location: what there is, and that it is all. */
export function* everything(boxes: ReadonlyMap<string, ListedResource>, location: string): Generator<ListingItem> {
  yield { type: 'page', location, kind: 'box', resources: [...boxes.values()].filter((box) => box.resource.location === location) }
  yield { type: 'coverage', coverage: { location, kind: 'box', state: { kind: 'complete' }, pages: 1 } }
}

/** A promise that a test settles when it wants: a call that hangs, a kill at the worst moment. */
export const gate = <T = void>(): { promise: Promise<T>; open: (value: T) => void } => {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { promise, open: resolve }
}
