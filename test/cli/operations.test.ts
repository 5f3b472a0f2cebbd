import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EventView } from '../../src/model/wire.ts'
import { leaseView, startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

let coordinator: FakeCoordinator
let box: Sandbox
beforeEach(async () => {
  coordinator = await startCoordinator()
  box = sandbox(coordinator.url)
})
afterEach(async () => {
  box.remove()
  await coordinator.close()
})

const only = <T>(list: T[]): T => {
  expect(list).toHaveLength(1)
  return list[0] as T
}

describe('events', () => {
  const event = (seq: number): EventView => ({
    id: `ev_${seq}`,
    seq,
    at: '2030-01-01T00:00:00.000Z',
    code: 'lease.created',
    level: 'info',
    project: 'default',
    actor: 'admin',
    message: `number ${seq}`,
    targets: [{ type: 'lease', id: 'lh_0123456789ab', name: 'brave-otter' }],
    payload: {},
  })

  it('reads page after page, in order, into one array', async () => {
    coordinator.events = Array.from({ length: 1203 }, (_, at) => event(at + 1))
    const { out } = await box.run(['events', '--target', 'brave-otter', '--json'])
    expect((JSON.parse(out) as EventView[]).map(({ seq }) => seq)).toEqual(coordinator.events.map(({ seq }) => seq))
    expect(coordinator.seen.every(({ query }) => query['target'] === 'brave-otter')).toBe(true)
    expect(JSON.parse((await box.run(['events', '--after', '1200', '--limit', '2', '--json'])).out)).toEqual([event(1201), event(1202)])
    // Without a place to go on from, a person wants the newest, in the order of time.
    expect(JSON.parse((await box.run(['events', '--limit', '2', '--json'])).out)).toEqual([event(1202), event(1203)])
    const seqs = async (limit: string): Promise<number[]> =>
      (JSON.parse((await box.run(['events', '--limit', limit, '--json'])).out) as EventView[]).map(({ seq }) => seq)
    expect(await seqs('1100')).toEqual(Array.from({ length: 1100 }, (_, at) => at + 104))
    expect(await seqs('5000')).toHaveLength(1203)
  })

  it('--follow goes on where it was over a broken connection, one object per line', async () => {
    coordinator.events = [event(1)]
    let calls = 0
    coordinator.override = () => {
      calls += 1
      if (calls === 2) coordinator.events.push(event(2), event(3))
      return calls === 2 ? 'drop' : null
    }
    const { status, out, err } = await box.run(['events', '--follow', '--limit', '3', '--json'])
    expect(status).toBe(0)
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as EventView).seq),
    ).toEqual([1, 2, 3])
    expect(err).toContain('trying on')
    expect(coordinator.seen[0]?.query['waitSeconds']).toBe('25')
  })
})

describe('admin lease-audit', () => {
  const row = (cloudStatus: string) => ({
    leaseID: 'lh_0123456789ab',
    slug: 's',
    state: 'expired',
    debt: [],
    cloudStatus,
    cloudState: null,
    message: null,
    cleanupError: null,
    cleanupRetryAt: null,
    cleanupAttempts: 0,
    cloudID: 'x',
  })
  it.each([
    ['found', 1],
    ['error', 1],
    ['missing', 0],
  ])('--fail-on-live with a row that is %s is exit %i, the rows on stdout (leases R51)', async (cloudStatus, exit) => {
    coordinator.override = () => ({ status: 200, body: { audits: [row(cloudStatus)] } })
    const { status, out } = await box.run(['admin', 'lease-audit', '--fail-on-live', '--json'])
    expect(status).toBe(exit)
    expect(JSON.parse(out)).toEqual([row(cloudStatus)])
    expect((await box.run(['admin', 'lease-audit', '--json'])).status).toBe(0)
  })
})

describe('the other commands', () => {
  it.each([
    [['admin', 'release', 'lh_0123456789ab', '--delete'], 'POST', '/v1/admin/leases/lh_0123456789ab/release', { delete: true }],
    [['admin', 'delete', 'lh_0123456789ab', '--force'], 'POST', '/v1/admin/leases/lh_0123456789ab/delete', {}],
    [
      ['token', 'create', 'ci', '--role', 'operator', '--project', 'web', '--expires', '30d'],
      'POST',
      '/v1/tokens',
      { name: 'ci', role: 'operator', project: 'web', expiresInSeconds: 2_592_000 },
    ],
    [['token', 'revoke', 'tk_1'], 'DELETE', '/v1/tokens/tk_1', undefined],
    [['project', 'create', 'web'], 'POST', '/v1/projects', { name: 'web' }],
    [['project', 'delete', 'web'], 'DELETE', '/v1/projects/web', undefined],
    [
      ['backend', 'add', 'lab', '--provider', 'process', '--project', 'web', '--set', 'graceSeconds=10', '--set', 'mode=auto', '--default'],
      'POST',
      '/v1/backends',
      { name: 'lab', provider: 'process', project: 'web', config: { graceSeconds: 10, mode: 'auto' }, isDefault: true },
    ],
    [['backend', 'remove', 'lab', '--project', 'web'], 'DELETE', '/v1/backends/lab', undefined],
    [
      ['hold', 'add', 'lh_0123456789ab', '--reason', 'r', '--for', '2h'],
      'POST',
      '/v1/holds',
      { targetType: 'lease', targetID: 'lh_0123456789ab', reason: 'r', durationSeconds: 7200 },
    ],
    [
      ['hold', 'add', 'machine:x', '--type', 'scope', '--reason', 'r'],
      'POST',
      '/v1/holds',
      { targetType: 'scope', targetID: 'machine:x', reason: 'r' },
    ],
    [['hold', 'remove', 'hd_1'], 'DELETE', '/v1/holds/hd_1', undefined],
    [['freeze', '--reason', 'r'], 'POST', '/v1/freezes', { reason: 'r' }],
    [['freeze', '--scope', 'machine:x', '--reason', 'r'], 'POST', '/v1/freezes', { scope: 'machine:x', reason: 'r' }],
    [['unfreeze'], 'DELETE', '/v1/freezes/*', undefined],
    [['unfreeze', '--scope', 'machine:x'], 'DELETE', '/v1/freezes/machine%3Ax', undefined],
  ] as const)('%j sends %s %s', async (argv, method, path, body) => {
    const object = { ...leaseView(), name: 'n', targetType: 'lease', targetID: 't', until: null, project: 'p' }
    coordinator.override = () => ({
      status: 200,
      body: { lease: object, token: object, secret: 's3', project: object, backend: object, hold: object, freeze: object },
    })
    const { status, out, err } = await box.run([...argv, '--json'])
    expect([status, err]).toEqual([0, ''])
    expect(only(coordinator.seen)).toMatchObject({ method, path, body })
    expect(JSON.parse(out)).toEqual(argv[0] === 'token' && argv[1] === 'create' ? { ...object, secret: 's3' } : object)
  })

  it.each([
    [['instances', '--state', 'busy'], '/v1/instances', 'instances', { state: 'busy' }],
    [['findings', '--state', 'open'], '/v1/findings', 'findings', { state: 'open' }],
    [['token', 'list'], '/v1/tokens', 'tokens', {}],
    [['project', 'list'], '/v1/projects', 'projects', {}],
    [['backend', 'list', '--project', 'web'], '/v1/backends', 'backends', { project: 'web' }],
    [['hold', 'list'], '/v1/holds', 'holds', {}],
    [['freeze', '--list'], '/v1/freezes', 'freezes', {}],
  ] as const)('%j prints one array', async (argv, path, name, query) => {
    coordinator.override = () => ({ status: 200, body: { [name]: [{ id: 'x' }] } })
    const { status, out } = await box.run([...argv, '--json'])
    expect([status, JSON.parse(out)]).toEqual([0, [{ id: 'x' }]])
    expect(only(coordinator.seen)).toMatchObject({ method: 'GET', path, query })
  })

  it('a token for people is the secret alone on stdout, so that a script can take it', async () => {
    coordinator.override = () => ({ status: 201, body: { token: { id: 'tk_1', name: 'ci', role: 'user', project: null }, secret: 's3' } })
    expect(await box.run(['token', 'create', 'ci'])).toEqual({
      status: 0,
      out: 's3\n',
      err: 'leasehold: token ci (tk_1), role user, every project; its secret is not shown again\n',
    })
  })
})
