/** Who may what: every route, asked by every role of one project and of all (decisions, Roles). */
import { beforeAll, describe, expect, test } from 'vitest'
import { roles } from '../../src/model/wire.ts'
import { benchForAll } from './support.ts'

const bench = benchForAll()
const everybody = ['user', 'operator', 'approver', 'admin'] as const
type Who = 'user' | 'operator' | 'approver' | 'admin' | 'all-user' | 'all-operator' | 'all-approver' | 'all-admin'
const every: readonly Who[] = [...everybody, 'all-user', 'all-operator', 'all-approver', 'all-admin']
const operators: readonly Who[] = ['operator', 'admin', 'all-operator', 'all-admin']
const admins: readonly Who[] = ['admin', 'all-admin']

/** An allowed request may still be refused for what it asks; never with 401 or 403. */
const matrix: readonly [method: string, path: string, body: object | undefined, allowed: readonly Who[]][] = [
  ['GET', '/v1/leases', undefined, every],
  ['POST', '/v1/leases', { backend: 'no-such-backend' }, every],
  ['PUT', '/v1/leases/lh_0123456789ab', { backend: 'no-such-backend' }, every],
  ['GET', '/v1/leases/lh_0123456789ab', undefined, every],
  ['POST', '/v1/leases/lh_0123456789ab/heartbeat', {}, every],
  ['POST', '/v1/leases/lh_0123456789ab/release', {}, every],
  ['POST', '/v1/leases/lh_0123456789ab/cancel-create', { createAttemptID: `cat_${'0'.repeat(32)}` }, every],
  ['GET', '/v1/leases/lh_0123456789ab/access', undefined, every],
  ['GET', '/v1/instances', undefined, every],
  ['GET', '/v1/instances/in_0', undefined, every],
  ['GET', '/v1/findings', undefined, every],
  ['GET', '/v1/events', undefined, every],
  ['GET', '/v1/status', undefined, every],
  ['GET', '/v1/projects', undefined, every],
  ['GET', '/v1/backends', undefined, every],
  ['GET', '/v1/holds', undefined, every],
  ['GET', '/v1/fleets', undefined, every],
  ['POST', '/v1/fleets', { name: 'ci', size: 0, backend: 'no-such-backend' }, operators],
  ['PATCH', '/v1/fleets/no-such-fleet', { size: 1 }, operators],
  ['DELETE', '/v1/fleets/no-such-fleet', undefined, operators],
  ['GET', '/v1/freezes', undefined, every],
  ['GET', '/v1/sweeps', undefined, every],
  ['GET', '/v1/sweeps/sw_0', undefined, every],
  ['GET', '/v1/explain/lh_0123456789ab', undefined, every],
  ['GET', '/v1/receipts/lh_0123456789ab', undefined, every],
  ['POST', '/v1/sweeps', { backend: 'no-such-backend' }, operators],
  ['POST', '/v1/sweeps', { backend: 'no-such-backend', dryRun: true }, operators],
  ['GET', '/v1/plans', undefined, every],
  ['GET', '/v1/plans/pl_0123456789ab', undefined, every],
  ['POST', '/v1/plans', { backend: 'no-such-backend' }, operators],
  ['POST', '/v1/plans/pl_0123456789ab/approve', { reason: 'r' }, ['approver', 'admin', 'all-approver', 'all-admin']],
  ['GET', '/v1/removals', undefined, every],
  ['GET', '/v1/removals/rm_0', undefined, every],
  [
    'POST',
    '/v1/removals/rm_0/acknowledge-absence',
    { fingerprint: '0123456789ab', reason: 'r' },
    ['approver', 'admin', 'all-approver', 'all-admin'],
  ],
  ['POST', '/v1/removals/rm_0/close', { reason: 'r' }, ['approver', 'admin', 'all-approver', 'all-admin']],
  ['GET', '/v1/doctor', undefined, operators],
  ['GET', '/metrics', undefined, every],
  ['POST', '/v1/holds', { targetType: 'lease', targetID: 'lh_0123456789ab', reason: 'r' }, operators],
  ['DELETE', '/v1/holds/hd_0', undefined, operators],
  ['POST', '/v1/freezes', { scope: 'scripted:none', reason: 'r' }, operators],
  ['POST', '/v1/freezes', { reason: 'r' }, ['all-operator', 'all-admin']],
  ['DELETE', '/v1/freezes/*', undefined, ['all-operator', 'all-admin']],
  ['GET', '/v1/installation', undefined, operators],
  ['POST', '/v1/installation/adopt', { reason: 'r' }, ['all-admin']],
  ['POST', '/v1/installation/fork', { reason: 'r' }, ['all-admin']],
  ['POST', '/v1/installation/keys', { reason: 'r' }, ['all-admin']],
  ['GET', '/v1/admin/leases', undefined, admins],
  ['GET', '/v1/admin/lease-audit', undefined, admins],
  ['GET', '/v1/admin/audit', undefined, admins],
  ['GET', '/v1/admin/audit/verify', undefined, ['all-admin']],
  ['POST', '/v1/admin/leases/lh_0123456789ab/release', {}, admins],
  ['POST', '/v1/admin/leases/lh_0123456789ab/delete', {}, admins],
  ['GET', '/v1/tokens', undefined, admins],
  ['POST', '/v1/tokens', { name: 'x', role: 'user' }, admins],
  ['DELETE', '/v1/tokens/tk_0', undefined, admins],
  ['POST', '/v1/backends', { name: 'x', provider: 'nimbus' }, admins],
  ['DELETE', '/v1/backends/nothing', undefined, admins],
  ['POST', '/v1/projects', { name: 'default' }, ['all-admin']],
  ['DELETE', '/v1/projects/nothing', undefined, ['all-admin']],
]

describe('roles and routes', () => {
  const tokens = new Map<Who, string>()
  beforeAll(async () => {
    for (const role of roles) {
      tokens.set(role, await bench().token(role, 'default'))
      tokens.set(`all-${role}`, await bench().token(role, null))
    }
  })

  test.each(matrix)('%s %s %j', async (method, path, body, allowed) => {
    const found: Partial<Record<Who, number>> = {}
    for (const who of every) found[who] = (await bench().call(method, path, body, { token: tokens.get(who) as string })).status
    const refused = every.filter((who) => found[who] === 403)
    expect(refused, JSON.stringify(found)).toEqual(every.filter((who) => !allowed.includes(who)))
    expect(Object.values(found)).not.toContain(401)
    expect(Object.values(found).every((status) => status < 500)).toBe(true)
  })

  test('the matrix has every route of the document but the public ones', async () => {
    const document = bench().api.swagger() as { paths: Record<string, object> }
    const isIn = (method: string, path: string): boolean =>
      matrix.some(([asked, url]) => asked === method && new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`).test(url))
    const left = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).flatMap((method) => (isIn(method.toUpperCase(), path) ? [] : [path])),
    )
    expect(left).toEqual(['/v1/health', '/v1/ready', '/openapi.json'])
  })

  test("a lease of another project is 404 for everybody of this one, and 403 for none: ids don't leak (decisions, Roles)", async () => {
    const theirs = await bench().lease({ project: 'other' })
    for (const who of everybody) {
      const token = tokens.get(who) as string
      for (const [method, path] of [
        ['GET', ''],
        ['POST', '/heartbeat'],
        ['POST', '/release'],
        ['GET', '/access'],
      ] as const) {
        const { status, body } = await bench().call(method, `/v1/leases/${theirs.lease.id}${path}`, undefined, { token })
        expect({ who, path, status, error: body['error'] }).toEqual({ who, path, status: 404, error: 'not_found' })
        expect((await bench().call(method, `/v1/leases/${theirs.lease.slug}${path}`, undefined, { token })).status).toBe(404)
      }
      expect((await bench().call('GET', `/v1/instances/${theirs.lease.ref}`, undefined, { token })).status).toBe(404)
      const named: [string, string, object?][] = [
        ['GET', '/v1/leases?project=other'],
        ['GET', '/v1/instances?project=other'],
        ['GET', '/v1/findings?project=other'],
        ['GET', '/v1/events?project=other'],
        ['GET', '/v1/backends?project=other'],
        ['POST', '/v1/leases', { project: 'other' }],
      ]
      for (const [method, path, body] of named)
        expect({ path, status: (await bench().call(method, path, body, { token })).status }).toEqual({ path, status: 404 })
    }
    expect((await bench().call('GET', `/v1/leases/${theirs.lease.id}`)).body['lease'].state).toBe('active')
  })

  test('an admin of one project administers that one only', async () => {
    const token = tokens.get('admin') as string
    const theirs = await bench().lease({ project: 'other' })
    const asked = async (method: string, path: string, body?: object): Promise<number> =>
      (await bench().call(method, path, body, { token })).status
    expect(await asked('POST', `/v1/admin/leases/${theirs.lease.id}/delete`, {})).toBe(404)
    expect(await asked('POST', '/v1/tokens', { name: 'x', role: 'user', project: 'other' })).toBe(404)
    expect(await asked('POST', '/v1/backends', { name: 'x', project: 'other', provider: 'process' })).toBe(404)
    expect(await asked('DELETE', '/v1/backends/local?project=other')).toBe(404)
    expect((await bench().call('POST', '/v1/tokens', { name: 'x', role: 'admin' }, { token })).body['token'].project).toBe('default')
    const { body } = await bench().call('GET', '/v1/tokens', undefined, { token })
    expect(new Set(body['tokens'].map((one: { project: string }) => one.project))).toEqual(new Set(['default']))
    const seen = await bench().call('GET', '/v1/projects', undefined, { token })
    expect(seen.body['projects'].map((one: { name: string }) => one.name)).toEqual(['default'])
  })

  test('a user manages its own leases, sees those of its project, and an operator of the project manages them all', async () => {
    const user = tokens.get('user') as string
    const another = await bench().token('user', 'default', 'another')
    const { lease } = await bench().lease({}, { token: user })
    expect((await bench().call('GET', `/v1/leases/${lease.id}`, undefined, { token: another })).status).toBe(200)
    const refused = await bench().call('POST', `/v1/leases/${lease.id}/release`, {}, { token: another })
    expect({ status: refused.status, error: refused.body['error'] }).toEqual({ status: 403, error: 'forbidden' })
    expect((await bench().call('POST', `/v1/leases/${lease.id}/heartbeat`, {}, { token: tokens.get('operator') as string })).status).toBe(
      200,
    )
    expect((await bench().call('POST', `/v1/leases/${lease.id}/release`, {}, { token: user })).status).toBe(200)
  })
})
