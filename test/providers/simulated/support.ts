/** A simulated account of a test's own, on a clock of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CreateRequest, Provider, ResourceIdentity } from '../../../src/providers/contract.ts'
import { type Cloud, openCloud } from '../../../src/providers/simulated/cloud.ts'
import type { FaultSpec } from '../../../src/providers/simulated/faults.ts'
import { createSimulatedProvider } from '../../../src/providers/simulated/index.ts'
import { states } from '../../../src/providers/simulated/words.ts'
import { type Listing, listAll } from '../../conformance/listing.ts'
import { context, createRequest, created } from '../../conformance/request.ts'
import type { ConformanceWorld } from '../../conformance/suite.ts'

export interface Clock {
  now: number
  /** What was slept, ms each. */
  slept: number[]
  /** Does not end before its signal, where true. */
  stuck: boolean
}

export interface Account {
  folder: string
  path: string
  clock: Clock
  provider: Provider
  config: Record<string, unknown>
  /** By hand, past the provider. */
  cloud: Cloud
  make(changes?: Partial<CreateRequest>): Promise<{ request: CreateRequest; resource: ResourceIdentity }>
  list(locations?: readonly string[]): Promise<Listing>
  fault(operation: FaultSpec['operation'], effect: FaultSpec['effect'], more?: Partial<FaultSpec>): void
  advance(seconds: number): void
  dispose(): void
}

const start = Date.parse('2030-01-01T00:00:00Z')

/** Sleeping moves the clock, and takes no time. */
export const openAccount = (config: Record<string, unknown> = {}): Account => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-simulated-'))
  const path = join(folder, 'simulated.db')
  const clock: Clock = { now: start, slept: [], stuck: false }
  const sleep = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
    clock.slept.push(milliseconds)
    signal.throwIfAborted()
    if (!clock.stuck) {
      clock.now += milliseconds
      return
    }
    await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }))
  }
  const provider = createSimulatedProvider({ dataFolder: folder, now: () => clock.now, sleep })
  const cloud = openCloud(path, () => clock.now)
  return {
    folder,
    path,
    clock,
    provider,
    config,
    cloud,
    async make(changes) {
      const request = createRequest(provider, config, changes)
      return { request, resource: created(await provider.create(request, context())) }
    },
    list: (locations) => listAll(provider, config, context().signal, locations ?? provider.locations),
    fault: (operation, effect, more = {}) =>
      void cloud.addFault({ operation, effect, count: null, lengthMs: null, page: null, location: null, kind: null, ...more }),
    advance: (seconds) => void (clock.now += seconds * 1000),
    dispose() {
      cloud.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The conformance suite's view of one. An accepted deletion is waited for by moving the clock. */
export const simulatedWorld = async (config: Record<string, unknown>): Promise<ConformanceWorld> => {
  const account = openAccount(config)
  const { cloud, provider } = account
  const machines = () => cloud.all().filter((one) => one.kind === 'machine' && one.state !== 'terminated')
  const remove: Provider['remove'] = async (resource, given, call, precondition) => {
    const outcome = await account.provider.remove(resource, given, call, precondition)
    if (outcome.kind === 'accepted') account.advance(10)
    return outcome
  }
  return {
    provider: Object.defineProperty(Object.create(provider) as Provider, 'remove', { value: remove }),
    config,
    states,
    dispose: async () => account.dispose(),
    count: async (ref) => machines().filter((one) => one.tags?.['leasehold_ref'] === ref && one.state !== 'terminating').length,
    async stranger() {
      const [made] = cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'calm-otter', tags: { Name: 'calm-otter' } }]).resources
      const id = made?.id ?? ''
      const { resource } = await account.make()
      return {
        identity: { ...resource, nativeId: id, immutableId: id },
        stands: () => cloud.get(id)?.state === 'running',
      }
    },
    lies: (resource, other) => [
      ['the name of one machine and the identity of another', { ...resource, immutableId: other.immutableId }],
      ['the identity of one machine and the name of another', { ...resource, nativeId: other.nativeId }],
      ['the request of another machine', { ...resource, facts: { ...resource.facts, clientToken: other.facts['clientToken'] ?? '' } }],
      ['another account', { ...resource, scope: 'simulated:000000000000' as ResourceIdentity['scope'] }],
      ['another kind', { ...resource, kind: 'disk' }],
      ['a kind that there is not', { ...resource, kind: 'box' }],
      ['another location', { ...resource, location: 'sim-b' }],
      ['nonsense', { ...resource, nativeId: 'none', immutableId: 'none' }],
      [
        'an id in another spelling',
        { ...resource, nativeId: resource.nativeId.toUpperCase(), immutableId: resource.nativeId.toUpperCase() },
      ],
    ],
    kill: async (resource) => void cloud.end(resource.nativeId),
    copy: async (resource) => cloud.copy(resource.nativeId).id,
    tagged: async (ref) =>
      cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'odd', tags: { leasehold_ref: ref } }]).resources[0]?.id ?? '',
    async breakListing() {
      account.fault('list', 'fail-page', { page: 1, location: 'sim-a', kind: 'machine' })
      return async () => void cloud.clearFaults()
    },
    async loseAccount() {
      for (const operation of ['get', 'list', 'delete'] as const) account.fault(operation, 'not-found', {})
      return async () => void cloud.clearFaults()
    },
    touch: async (resource) => cloud.setTags(resource.nativeId, { ...cloud.get(resource.nativeId)?.tags, touched: 'yes' }),
    leave: async (resource) => {
      cloud.leave(resource.nativeId, 'process 4711')
      cloud.leave(resource.nativeId, 'home/secret.txt')
    },
    hideTags: async (resource) => cloud.setTags(resource.nativeId, null),
  }
}
