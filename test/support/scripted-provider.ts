/**
 * A provider in memory whose answers a test scripts: what a cloud does when it lies, hangs or loses an answer. Beside it every engine suite
 * that can runs on real boxes.
 */
import type {
  CallContext,
  CreateOutcome,
  CreateRequest,
  FindOutcome,
  ListedResource,
  ListingItem,
  Provider,
  ReadOutcome,
  RemoveOutcome,
  ResourceIdentity,
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
  calls: { op: 'create' | 'find' | 'read' | 'remove' | 'rearm' | 'list'; id: string }[]
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
    async rearm(resource) {
      calls.push({ op: 'rearm', id: resource.nativeId })
    },
    access: (resource) => ({ kind: 'session', folder: `/nowhere/${resource.nativeId}`, machineID: 'none', bootID: 'none' }),
    doctor: async () => [],
  }
  return provider
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
