import { afterEach, describe, expect, test } from 'vitest'
import { revokeToken, listTokens } from '../../src/engine/admin/index.ts'
import { createSignInFailures } from '../../src/api/sign-in-failures.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { makeBench, root, type Bench } from './support.ts'

eachStore('signing in', (open) => {
  let bench: Bench
  afterEach(() => bench.close())

  test('no token, one that is malformed, and one that nobody made are 401 with WWW-Authenticate; the right one is let in', async () => {
    bench = await makeBench(await open(), { start: false })
    const none = await bench.call('GET', '/v1/leases', undefined, { token: null })
    expect({ status: none.status, error: none.body['error'], header: none.headers['www-authenticate'] }).toEqual({
      status: 401,
      error: 'unauthorized',
      header: 'Bearer realm="leasehold"',
    })
    const wrong = [`lhx_${'A'.repeat(43)}`, `${bench.admin}x`, bench.admin.slice(0, -1), 'short', `lht_0123456789ab${'A'.repeat(43)}`]
    for (const token of wrong) {
      const { status, headers } = await bench.call('GET', '/v1/leases', undefined, { token })
      expect({ status, header: headers['www-authenticate'] }).toEqual({
        status: 401,
        header: 'Bearer realm="leasehold", error="invalid_token"',
      })
    }
    for (const authorization of [`Basic ${bench.admin}`, bench.admin, 'Bearer'])
      expect((await bench.call('GET', '/v1/leases', undefined, { token: null, headers: { authorization } })).status).toBe(401)
    for (const authorization of [`Bearer ${bench.admin}`, `bearer  ${bench.admin} `])
      expect((await bench.call('GET', '/v1/leases', undefined, { token: null, headers: { authorization } })).status).toBe(200)
  })

  test('health, readiness and the document need no token', async () => {
    bench = await makeBench(await open())
    for (const path of ['/v1/health', '/v1/ready', '/openapi.json'])
      expect((await bench.call('GET', path, undefined, { token: null })).status).toBe(200)
  })

  test('a token that was used a moment ago is refused right after its revocation here', async () => {
    bench = await makeBench(await open(), { start: false })
    const token = await bench.token('user', 'default', 'ann')
    expect((await bench.call('GET', '/v1/leases', undefined, { token })).status).toBe(200)
    const { body } = await bench.call('GET', '/v1/tokens')
    const id = body['tokens'].find((one: { name: string }) => one.name === 'ann').id as string
    expect((await bench.call('DELETE', `/v1/tokens/${id}`)).body['token'].revokedAt).not.toBeNull()
    const { status, body: answer } = await bench.call('GET', '/v1/leases', undefined, { token })
    expect({ status, message: answer['message'] }).toEqual({ status: 401, message: 'the token is revoked' })
  })

  test('a token that another replica revoked is refused once it was not used here for a while', async () => {
    bench = await makeBench(await open(), { start: false })
    const token = await bench.token('user', 'default', 'ann')
    const [ann] = (await listTokens(bench.engine.context, root)).filter((one) => one.name === 'ann')
    await revokeToken(bench.engine.context, root, ann?.id as string)
    expect((await bench.call('GET', '/v1/leases', undefined, { token })).status).toBe(401)
  })

  test('a token is good until its end and not a moment longer, used a moment ago or not', async () => {
    const store = await open()
    bench = await makeBench(store, { start: false })
    await setClock(store, await store.now())
    const { body } = await bench.call('POST', '/v1/tokens', { name: 'brief', role: 'user', expiresInSeconds: 60 })
    const token = body['secret'] as string
    await advance(store, 59_999)
    expect((await bench.call('GET', '/v1/leases', undefined, { token })).status).toBe(200)
    await advance(store, 1)
    // It was remembered for the millisecond that it had left.
    await expect.poll(async () => (await bench.call('GET', '/v1/leases', undefined, { token })).status).toBe(401)
  })

  test("a lease's own token beats and releases that lease, and does nothing else", async () => {
    bench = await makeBench(await open())
    const [mine, other] = [await bench.lease(), await bench.lease()]
    const token = mine.leaseToken
    const tried = async (method: string, path: string, body?: unknown): Promise<number> =>
      (await bench.call(method, path, body, { token })).status
    expect(await tried('POST', `/v1/leases/${mine.lease.id}/heartbeat`)).toBe(200)
    expect(await tried('POST', `/v1/leases/${mine.lease.slug}/heartbeat`)).toBe(200)
    for (const what of ['heartbeat', 'release']) {
      expect(await tried('POST', `/v1/leases/${other.lease.id}/${what}`)).toBe(404)
      expect(await tried('POST', `/v1/leases/${other.lease.slug}/${what}`)).toBe(404)
    }
    for (const [method, path, body] of [
      ['GET', '/v1/leases'],
      ['GET', `/v1/leases/${mine.lease.id}/access`],
      ['POST', '/v1/leases', {}],
      ['GET', '/v1/events'],
      ['GET', '/v1/status'],
      ['GET', '/v1/tokens'],
      ['POST', `/v1/admin/leases/${mine.lease.id}/delete`],
    ] as const)
      expect({ path, status: await tried(method, path, body) }).toEqual({ path, status: 403 })
    expect(await tried('POST', `/v1/leases/${mine.lease.id}/release`)).toBe(200)
    expect((await bench.call('GET', `/v1/leases/${other.lease.id}`)).body['lease'].state).toBe('active')
  })

  test('failed sign-ins from one address are slowed down, and valid tokens from there are not', async () => {
    bench = await makeBench(await open(), { start: false })
    const bad = { token: `lhx_${'A'.repeat(43)}` }
    const statuses: number[] = []
    for (let i = 0; i < 22; i++) statuses.push((await bench.call('GET', '/v1/leases', undefined, bad)).status)
    expect(statuses.slice(0, 20).every((status) => status === 401)).toBe(true)
    const refused = await bench.call('GET', '/v1/leases', undefined, bad)
    expect({ status: refused.status, error: refused.body['error'] }).toEqual({ status: 429, error: 'rate_limited' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    const fresh = await bench.token('user', 'default')
    for (const token of [bench.admin, fresh]) expect((await bench.call('GET', '/v1/leases', undefined, { token })).status).toBe(200)
  })
})

describe('the count of failed sign-ins', () => {
  test('20 at once pass, then 10 a minute, for each address by itself', () => {
    let now = 0
    const failures = createSignInFailures(() => now)
    for (let i = 0; i < 20; i++) expect(failures.count('a')).toBe(0)
    expect(failures.count('a')).toBe(6)
    expect(failures.count('b')).toBe(0)
    now += 6_000
    expect(failures.count('a')).toBe(0)
    expect(failures.count('a')).toBe(6)
    now += 60_000
    const passed = Array.from({ length: 15 }, () => failures.count('a')).filter((wait) => wait === 0)
    expect(passed.length).toBe(10)
  })
})
