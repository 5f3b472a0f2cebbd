/** A provider on the run's Engine, ways to look at that Engine without the provider, and a broom for what a test leaves. */
import { type EngineClient, createEngineClient } from '../../../src/lib/docker/client.ts'
import { parseAddress } from '../../../src/lib/docker/address.ts'
import { runExec } from '../../../src/lib/docker/exec.ts'
import type { CreateRequest, Provider, ResourceIdentity } from '../../../src/providers/contract.ts'
import { createDockerProvider } from '../../../src/providers/docker/index.ts'
import { context, createRequest, created } from '../../conformance/request.ts'
import { type DockerProxy, madeBy, startDockerProxy } from '../../support/docker-proxy.ts'
import type { DockerEngine } from '../../support/services/docker.ts'
import { dockerEngine } from '../../support/services/docker-suite.ts'

export interface Parts {
  containers: string[]
  networks: string[]
  /** Their names. */
  volumes: string[]
}

/** The Engine by hand, past every provider. */
export interface Hand {
  client: EngineClient
  call<T = unknown>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T>
  /** Ids of what has these labels; none: everything. */
  parts(...labels: string[]): Promise<Parts>
  exists(container: string): Promise<boolean>
  /** A container of nobody's, running; its id. */
  stranger(body?: Record<string, unknown>, name?: string): Promise<string>
  /** What a command in a container says. */
  sh(container: string, script: string): Promise<string>
  /** Paths of all that it made. */
  made: string[]
  close(): void
}

const patience = (): AbortSignal => AbortSignal.timeout(50_000)

export const byHand = (engine: DockerEngine): Hand => {
  const client = createEngineClient(parseAddress(engine.host, null))
  const made: string[] = []
  const call = async <T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> => {
    const [before = '', query = ''] = path.split('?')
    const answer = await client.call<T>({
      method,
      path: before,
      query: Object.fromEntries(new URLSearchParams(query)),
      body,
      signal: patience(),
    })
    if (method === 'POST') made.push(...madeBy(`POST ${before}`, JSON.stringify(answer.body)))
    return answer.body
  }
  return {
    client,
    made,
    call,
    async parts(...labels) {
      const filters = encodeURIComponent(JSON.stringify({ label: labels }))
      const [containers, networks, volumes] = await Promise.all([
        call<{ Id: string }[]>('GET', `/containers/json?all=1&filters=${filters}`),
        call<{ Id: string }[]>('GET', `/networks?filters=${filters}`),
        call<{ Volumes: { Name: string }[] | null }>('GET', `/volumes?filters=${filters}`),
      ])
      return {
        containers: containers.map((one) => one.Id),
        networks: networks.map((one) => one.Id),
        volumes: (volumes.Volumes ?? []).map((one) => one.Name),
      }
    },
    exists: async (container) =>
      (await call<{ Id: string; State: string }[]>('GET', '/containers/json?all=1')).some(
        (one) => one.Id === container && one.State === 'running',
      ),
    async stranger(body = {}, name) {
      const whole = { Image: engine.image, Entrypoint: ['/bin/sleep', '600'], HostConfig: { NetworkMode: 'none' }, ...body }
      const { Id: id } = await call<{ Id: string }>('POST', `/containers/create${name === undefined ? '' : `?name=${name}`}`, whole)
      await call('POST', `/containers/${id}/start`)
      return id
    },
    sh: async (container, script) => (await runExec(client, container, { command: ['/bin/sh', '-c', script] }, patience())).stdout.trim(),
    close: () => client.close(),
  }
}

/** Removes what was made, at these paths: other files use the same Engine. */
export const sweepUp = async (hand: Hand, paths: readonly string[]): Promise<void> => {
  for (const kind of ['containers', 'networks', 'volumes'])
    await Promise.all(
      paths
        .filter((path) => path.startsWith(`/${kind}/`))
        .map((path) => hand.call('DELETE', `${path}${kind === 'containers' ? '?force=1&v=1' : ''}`).catch(() => undefined)),
    )
}

export const pathsOf = ({ containers, networks, volumes }: Parts): string[] => [
  ...containers.map((id) => `/containers/${id}`),
  ...networks.map((id) => `/networks/${id}`),
  ...volumes.map((name) => `/volumes/${name}`),
]

export interface Boxes extends Hand {
  engine: DockerEngine
  provider: Provider
  /** Through the proxy. */
  config: Record<string, unknown>
  proxy: DockerProxy
  make(changes?: Partial<CreateRequest>): Promise<{ request: CreateRequest; resource: ResourceIdentity; container: string }>
  ofRef(ref: string): Promise<Parts>
  dispose(): Promise<void>
}

export const openBoxes = async (config: Record<string, unknown> = {}): Promise<Boxes> => {
  const engine = await dockerEngine()
  const proxy = await startDockerProxy(engine.host)
  const hand = byHand(engine)
  const provider = createDockerProvider()
  const own = { host: proxy.host, image: engine.image, graceSeconds: 1, ...config }
  return {
    ...hand,
    engine,
    provider,
    config: own,
    proxy,
    async make(changes) {
      const request = createRequest(provider, own, changes)
      const resource = created(await provider.create(request, context()))
      return { request, resource, container: resource.facts['container'] as string }
    },
    ofRef: (ref) => hand.parts(`leasehold.ref=${ref}`),
    async dispose() {
      await proxy.close()
      await sweepUp(hand, [...hand.made, ...proxy.made])
      hand.close()
    },
  }
}
