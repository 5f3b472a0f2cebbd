/** The provider contract, on a real Engine. */
import { vi } from 'vitest'
import { hex } from '../../src/lib/ids.ts'
import type { ResourceIdentity } from '../../src/providers/contract.ts'
import { states } from '../../src/providers/docker/words.ts'
import { openBoxes } from '../providers/docker/support.ts'
import { until } from '../providers/process/support.ts'
import { withDocker } from '../support/services/docker-suite.ts'
import { type ConformanceWorld, providerConformance } from './suite.ts'

const nativeId = (container: string): string => `container:${container.slice(0, 12)}`

const setup = (config: Record<string, unknown>) => async (): Promise<ConformanceWorld> => {
  const boxes = await openBoxes(config)
  const { provider, proxy } = boxes
  const labelsOf = async (container: string): Promise<Record<string, string>> =>
    (await boxes.call<{ Config: { Labels: Record<string, string> } }>('GET', `/containers/${container}/json`)).Config.Labels
  const lieWith = (when: RegExp, status: number, message: string) => async (): Promise<() => Promise<void>> => {
    proxy.lies.push({ when, status, body: { message } })
    return async () => void proxy.lies.splice(0)
  }
  return {
    provider,
    config: boxes.config,
    states,
    dispose: () => boxes.dispose(),
    count: async (ref) => (await boxes.ofRef(ref)).containers.length,
    async stranger() {
      const { resource } = await boxes.make()
      const id = await boxes.stranger()
      let alive = true
      const watch = setInterval(() => void boxes.exists(id).then((there) => (alive = there)), 20)
      watch.unref()
      return {
        identity: { ...resource, nativeId: 'leasehold-zzzzzzzzzzzz-1', immutableId: id, facts: { container: id } },
        stands: () => alive,
      }
    },
    lies: (resource, other) => [
      ['the name of one box and the network of another', { ...resource, immutableId: other.immutableId }],
      ['the same without facts', { ...resource, immutableId: other.immutableId, facts: {} }],
      ['the container of another', { ...resource, facts: { ...resource.facts, container: other.facts['container'] as string } }],
      ['the volume of another', { ...resource, facts: { ...resource.facts, volume: other.facts['volume'] as string } }],
      ['the token of another', { ...resource, facts: { ...resource.facts, attemptToken: other.facts['attemptToken'] as string } }],
      ['its container in place of its network', { ...resource, immutableId: resource.facts['container'] as string }],
      ['another network', { ...resource, immutableId: hex(32) }],
      ['another attempt', { ...resource, nativeId: resource.nativeId.replace(/1$/, '2'), facts: {} }],
      ['another engine', { ...resource, scope: 'docker:AAAA:BBBB' as ResourceIdentity['scope'] }],
      ['another kind', { ...resource, kind: 'network' }],
      ['another location', { ...resource, location: 'local' }],
      ['nonsense', { ...resource, immutableId: 'none' }],
    ],
    kill: async (resource) => boxes.call('POST', `/containers/${resource.facts['container']}/kill`),
    copy: async (resource) => nativeId(await boxes.stranger({ Labels: await labelsOf(resource.facts['container'] as string) })),
    tagged: async (ref) => nativeId(await boxes.stranger({ Labels: { 'leasehold.ref': ref } })),
    breakListing: lieWith(/GET \S*\/networks\?/, 500, 'the store of networks is broken'),
    // What answers is no Engine any more, and does not know a path of one.
    loseAccount: lieWith(/GET \S*\/v[\d.]+\//, 404, 'page not found'),
    // A process that ends on no signal but KILL, one that has left its session, files in the volume, and something in memory.
    async leave(resource) {
      const container = resource.facts['container'] as string
      const script =
        'trap "" TERM HUP; rm -f /work/ready; touch /work/a; mkdir -p /work/deep/er; echo secret > /work/deep/.hidden; echo x > /dev/shm/left; echo y > /.leasehold/left; echo ready > /work/ready; exec sleep 555'
      await boxes.sh(container, `setsid sh -c '${script}' > /dev/null 2>&1 &`)
      await until('it is left', async () => (await boxes.sh(container, 'ls /work')).includes('ready'))
    },
  }
}

// An Engine takes its time where others work beside it.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

withDocker('docker', () => {
  providerConformance('docker', setup({}), { wipes: true })
})
