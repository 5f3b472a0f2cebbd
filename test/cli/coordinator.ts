/** A coordinator that speaks the HTTP contract from memory, on 127.0.0.1: real requests, no store and no boxes. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Access, CleanupView, EventView, LeaseView } from '../../src/model/wire.ts'

export interface Seen {
  method: string
  path: string
  query: Record<string, string>
  body: unknown
  authorization: string | undefined
}
export type Reply = { status: number; body: unknown } | 'drop' | 'hang'
export type Route = (seen: Seen, coordinator: FakeCoordinator) => Reply | null

export interface FakeCoordinator {
  url: string
  seen: Seen[]
  leases: Map<string, LeaseView>
  events: EventView[]
  /** Asked before the routes of the contract; null: not mine. */
  override: Route
  /** What becomes of the removal of a released lease with each read: the first state is the release's own answer. */
  removal: CleanupView['state'][]
  /** The state that a create answers; `provisioning` becomes active with the first read. */
  created: 'active' | 'provisioning'
  calls: (method: string, path: RegExp) => Seen[]
  close: () => Promise<void>
}

const at = '2030-01-01T00:00:00.000Z'
export const cleanup = (state: CleanupView['state'] = 'none', changes: Partial<CleanupView> = {}): CleanupView => ({
  state,
  removalID: null,
  reason: null,
  attempts: 0,
  error: null,
  failedAt: null,
  retryAt: null,
  startedAt: null,
  claimExpiresAt: null,
  closedBy: null,
  mayBeLeft: null,
  leftTo: null,
  goneAt: null,
  stuck: false,
  heldBy: null,
  ...changes,
})

export const leaseView = (changes: Partial<LeaseView> = {}): LeaseView => ({
  id: 'lh_0123456789ab',
  slug: 'brave-otter',
  state: 'active',
  project: 'default',
  owner: 'admin',
  provider: 'process',
  backend: 'local',
  scope: 'machine:0f3a',
  location: 'local',
  instanceID: 'in_0190f3c2a1b47d4c8e5f60718293a4b5',
  ref: 'abcdefghijkl',
  cloudID: 'abcdefghijkl-1',
  cloudImmutableID: 'boot:1:2:3',
  createdAt: at,
  updatedAt: at,
  lastTouchedAt: at,
  expiresAt: '2030-01-01T00:30:00.000Z',
  ttlSeconds: 5400,
  idleTimeoutSeconds: 1800,
  keep: false,
  labels: {},
  createAttemptID: null,
  releasedAt: null,
  endedAt: null,
  retainedAt: null,
  retainUntil: null,
  releaseDeletesServer: null,
  failureCode: null,
  failureError: null,
  provisioningResourceMayExist: false,
  accessWarning: null,
  fleet: null,
  cleanup: cleanup(),
  ...changes,
})

/** Of this machine as far as a test's own door cares. */
const access: Access = { kind: 'session', folder: '/nowhere', machineID: 'm', bootID: 'b' }

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  let text = ''
  for await (const chunk of request) text += chunk
  return text === '' ? undefined : JSON.parse(text)
}

const notFound: Reply = { status: 404, body: { error: 'not_found', message: 'there is no such lease' } }

const find = (fake: FakeCoordinator, identifier: string): LeaseView | undefined =>
  fake.leases.get(identifier) ?? [...fake.leases.values()].find(({ slug, endedAt }) => slug === identifier && endedAt === null)

const create = (fake: FakeCoordinator, body: Record<string, unknown>, id: string): Reply => {
  const key = (body['createAttemptID'] as string | undefined) ?? null
  const replay = fake.leases.get(id)
  if (replay) return { status: 200, body: { lease: replay, leaseToken: 'lt_again' } }
  const lease = leaseView({
    id,
    slug: (body['slug'] as string | undefined) ?? 'brave-otter',
    state: fake.created,
    createAttemptID: key,
    keep: body['keep'] === true,
    ttlSeconds: (body['ttlSeconds'] as number | undefined) ?? 5400,
    idleTimeoutSeconds: (body['idleTimeoutSeconds'] as number | undefined) ?? 1800,
    labels: (body['labels'] as Record<string, string> | undefined) ?? {},
  })
  fake.leases.set(id, lease)
  return { status: fake.created === 'active' ? 201 : 202, body: { lease, leaseToken: 'lt_secret' } }
}

const leaseRoute = (fake: FakeCoordinator, seen: Seen, identifier: string, action: string): Reply | null => {
  const lease = find(fake, identifier)
  if (seen.method === 'PUT') return create(fake, seen.body as Record<string, unknown>, identifier)
  if (action === 'cancel-create') {
    if (!lease) return { status: 200, body: { canceledCreate: { state: 'canceled' } } }
    Object.assign(lease, { state: 'released', endedAt: at, cleanup: cleanup('gone') })
    return { status: 200, body: { canceledCreate: { state: 'canceled' }, lease } }
  }
  if (!lease) return notFound
  if (action === '' && seen.method === 'GET') {
    if (lease.state === 'provisioning') lease.state = 'active'
    const answer = { ...lease }
    if (lease.endedAt !== null) lease.cleanup = cleanup(fake.removal.shift() ?? lease.cleanup.state)
    return { status: 200, body: { lease: answer } }
  }
  if (action === 'access') return { status: 200, body: { access } }
  if (action === 'heartbeat') {
    if (lease.endedAt !== null) return { status: 409, body: { error: 'lease_ended', message: 'the lease has ended' } }
    const idle = (seen.body as { idleTimeoutSeconds?: number }).idleTimeoutSeconds
    if (idle !== undefined) lease.idleTimeoutSeconds = idle
    return { status: 200, body: { lease } }
  }
  if (action === 'release') {
    Object.assign(lease, { state: 'released', releasedAt: at, endedAt: at, cleanup: cleanup(fake.removal.shift() ?? 'gone') })
    return { status: 200, body: { lease } }
  }
  return null
}

const contract = (fake: FakeCoordinator, seen: Seen): Reply => {
  const [, identifier = '', action = ''] = /^\/v1\/leases\/([^/]+)(?:\/([a-z-]+))?$/.exec(seen.path) ?? []
  if (identifier !== '') return leaseRoute(fake, seen, decodeURIComponent(identifier), action) ?? notFound
  if (seen.path === '/v1/leases' && seen.method === 'POST') {
    const body = seen.body as Record<string, unknown>
    return create(fake, body, (body['leaseID'] as string | undefined) ?? 'lh_ffffffffffff')
  }
  if (seen.path === '/v1/leases') return { status: 200, body: { leases: [...fake.leases.values()] } }
  if (seen.path === '/v1/events') {
    const limit = Number(seen.query['limit'] ?? 100)
    const before = seen.query['before']
    if (before !== undefined) {
      const until = before === 'newest' ? Number.POSITIVE_INFINITY : Number(before)
      return {
        status: 200,
        body: { events: fake.events.filter(({ seq }) => seq < until).slice(-limit), next: fake.events.at(-1)?.seq ?? 0 },
      }
    }
    const events = fake.events.filter(({ seq }) => seq > Number(seen.query['after'] ?? 0)).slice(0, limit)
    return { status: 200, body: { events, next: events.at(-1)?.seq ?? Number(seen.query['after'] ?? 0) } }
  }
  return notFound
}

export const startCoordinator = async (): Promise<FakeCoordinator> => {
  const server: Server = createServer((request, response) => void answer(request, response))
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://x')
    const seen: Seen = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body: await bodyOf(request),
      authorization: request.headers.authorization,
    }
    fake.seen.push(seen)
    const reply = fake.override(seen, fake) ?? contract(fake, seen)
    if (reply === 'drop') request.socket.destroy()
    if (typeof reply === 'string') return
    response
      .writeHead(reply.status, { 'content-type': 'application/json' })
      .end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body))
  }
  const fake: FakeCoordinator = {
    url: '',
    seen: [],
    leases: new Map(),
    events: [],
    override: () => null,
    removal: [],
    created: 'active',
    calls: (method, path) => fake.seen.filter((seen) => seen.method === method && path.test(seen.path)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return fake
}
