import { describe, expect, test } from 'vitest'
import { benchForAll } from './support.ts'

describe('the API refuses bad input', () => {
  const bench = benchForAll({ start: false })

  test.each([
    ['an unknown field, naming it and what it may have meant', { ttlseconds: 5 }, 'unknown field "ttlseconds"; did you mean "ttlSeconds"?'],
    ['an unknown field, naming those that are known', { lifetime: 5 }, /^unknown field "lifetime"; known are leaseID, slug, /],
    [
      'a text where a number belongs (leases R14)',
      { ttlSeconds: '5' },
      'ttlSeconds: must be a number of seconds, or null for the default, not "5"',
    ],
    ['a number where a flag belongs', { keep: 1 }, 'keep: must be true or false or null, not 1'],
    ['a label that is no text', { labels: { team: 5 } }, 'labels.team: must be text, not 5'],
    ['a reserved label (orphans U19)', { labels: { leasehold_ref: 'x' } }, /"leasehold_ref" is reserved/],
    ['an id of another form', { leaseID: 'LH_0123456789ab' }, 'leaseID: must be lh_ and 12 lower-case hex digits, not "LH_0123456789ab"'],
    [
      'a request key of another form (leases R10)',
      { createAttemptID: 'cat_1' },
      'createAttemptID: must be cat_ and 32 lower-case hex digits, not "cat_1"',
    ],
    ['an empty slug', { slug: '' }, 'slug: must not be empty'],
    ['a body that is a list', [], 'the body must be a JSON object, not a list'],
    ['a body that is a number', '5', 'the body must be a JSON object, not 5'],
    ['a body that is not JSON', '{"slug": ', 'the body is not valid JSON'],
    ['a body with a prototype in it', '{"__proto__": {"keep": true}}', 'the body is not valid JSON'],
  ])('%s', async (_name, body, message) => {
    const { status, body: answer } = await bench().call('POST', '/v1/leases', body)
    expect(status).toBe(400)
    expect(answer['error']).toBe('bad_request')
    expect(answer['message']).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
  })

  test('a body that is just within bounds is read, and a larger one is 413 payload_too_large', async () => {
    const padding = (bytes: number): string => `{"slug":"x"${' '.repeat(bytes - 12)}}`
    expect((await bench().call('POST', '/v1/leases', padding(256 * 1024), { headers: { prefer: 'respond-async' } })).status).toBe(202)
    const { status, body } = await bench().call('POST', '/v1/leases', padding(256 * 1024 + 1))
    expect({ status, error: body['error'] }).toEqual({ status: 413, error: 'payload_too_large' })
  })

  test('a body that is not JSON by its type is 415 unsupported_media_type', async () => {
    const { status, body } = await bench().call('POST', '/v1/leases', 'slug=x', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect({ status, error: body['error'] }).toEqual({ status: 415, error: 'unsupported_media_type' })
  })

  test('a number beyond all counting is the default, as a number of 0 or less is (leases R14)', async () => {
    for (const ttl of ['1e999', '0', '-5', 'null']) {
      const { status, body } = await bench().call('POST', '/v1/leases', `{"ttlSeconds":${ttl}}`, { headers: { prefer: 'respond-async' } })
      expect({ status, ttl: body['lease'].ttlSeconds }).toEqual({ status: 202, ttl: 5400 })
    }
  })

  test.each([
    ['GET', '/v1/leases?limit=501', 'limit: must be a whole number from 1 to 500, not 501'],
    ['GET', '/v1/leases?limit=0', 'limit: must be a whole number from 1 to 500, not 0'],
    ['GET', '/v1/leases?limit=ten', 'limit: must be a whole number from 1 to 500, not "ten"'],
    ['GET', '/v1/leases?limit=1&limit=2', 'limit: came more than once; it must be a whole number from 1 to 500'],
    ['GET', '/v1/leases?state=gone', 'state: must be one of provisioning, active, released, expired, failed, not "gone"'],
    ['GET', '/v1/leases?State=active', 'unknown query parameter "State"; did you mean "state"?'],
    ['GET', '/v1/instances?state=active', /^state: must be one of pending, /],
    ['GET', '/v1/events?after=-1', 'after: must be the number of an event, or "newest", not "-1"'],
    ['GET', '/v1/events?waitSeconds=51', 'waitSeconds: must be a whole number from 0 to 50, not 51'],
    ['GET', '/v1/status?verbose=1', 'unknown query parameter "verbose"; none is taken here'],
    ['PUT', '/v1/leases/mine', 'id: must be lh_ and 12 lower-case hex digits, not "mine"'],
    ['DELETE', '/v1/tokens/tk_1', 'this route takes no body'],
  ])('%s %s says what would be right', async (method, path, message) => {
    const { status, body } = await bench().call(method, path, method === 'GET' ? undefined : {})
    expect({ status, error: body['error'] }).toEqual({ status: 400, error: 'bad_request' })
    expect(body['message']).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
  })

  test.each([
    ['/v1/tokens', {}, 'the field "name" is missing; it must be text'],
    ['/v1/tokens', { name: 'ci', role: 'root' }, 'role: must be one of user, operator, approver, admin, not "root"'],
    ['/v1/tokens', { name: 'system', role: 'user' }, /^name: "system" can't be one/],
    [
      '/v1/tokens',
      { name: 'ci', role: 'user', expiresInSeconds: 0 },
      'expiresInSeconds: must be a whole number from 1 to 316224000, not 0',
    ],
    ['/v1/projects', { name: 'Web' }, 'name: must be a-z, 0-9 and -, at most 39, a letter first, not "Web"'],
    ['/v1/backends', { name: 'b', provider: 'nimbus' }, 'provider: "nimbus" is none that this coordinator has; it has process'],
    [
      '/v1/holds',
      { targetType: 'resource', targetID: 'x', reason: 'because' },
      'targetID: "x" names no resource; write provider/location/native-id',
    ],
    ['/v1/holds', { targetType: 'lease', targetID: 'x', reason: ' ' }, 'reason: say why, for those who find it held'],
    ['/v1/freezes', {}, 'the field "reason" is missing; it must be text'],
  ])('POST %s %j', async (path, body, message) => {
    const { status, body: answer } = await bench().call('POST', path, body)
    expect({ status, error: answer['error'] }).toEqual({ status: 400, error: 'bad_request' })
    expect(answer['message']).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
  })

  test.each([
    ['GET', '/v1/leases/lh_0123456789ab'],
    ['GET', '/v1/leases/no-such-slug'],
    ['POST', '/v1/leases/lh_0123456789ab/heartbeat'],
    ['POST', '/v1/leases/lh_0123456789ab/release'],
    ['GET', '/v1/leases/lh_0123456789ab/access'],
    ['GET', '/v1/instances/in_0'],
    ['POST', '/v1/admin/leases/lh_0123456789ab/release'],
    ['POST', '/v1/admin/leases/lh_0123456789ab/delete'],
    ['DELETE', '/v1/tokens/tk_0'],
    ['DELETE', '/v1/projects/nobody'],
    ['DELETE', '/v1/backends/nothing'],
    ['DELETE', '/v1/holds/hd_0'],
    ['DELETE', '/v1/freezes/nowhere:1'],
  ])('%s %s is 404 not_found', async (method, path) => {
    const { status, body } = await bench().call(method, path)
    expect({ status, error: body['error'] }).toEqual({ status: 404, error: 'not_found' })
  })

  test('an unknown route is 404 route_not_found, with and without a token, with and without a body', async () => {
    for (const token of [bench().admin, null])
      for (const [method, path] of [
        ['GET', '/v1/lease'],
        ['POST', '/v1/leases/x/y'],
        ['PATCH', '/v1/leases'],
        ['GET', '/'],
        ['GET', '/v1/Leases'],
      ] as const) {
        const { status, body } = await bench().call(method, path, method === 'POST' ? '{broken' : undefined, { token })
        expect({ status, error: body['error'] }).toEqual({ status: 404, error: 'route_not_found' })
      }
  })

  test('every answer, an error too, carries an id of its own, is not stored by anybody, and has the security headers', async () => {
    const replies = [
      await bench().call('GET', '/v1/health'),
      await bench().call('GET', '/v1/leases', undefined, { token: null }),
      await bench().call('GET', '/nowhere'),
      await bench().call('POST', '/v1/leases', '{'),
    ]
    expect(replies.map((reply) => reply.status)).toEqual([200, 401, 404, 400])
    for (const { headers } of replies)
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      })
    const ids = replies.map((reply) => reply.headers['x-request-id'])
    expect(ids.every((id) => /^rq_[0-9a-f]{20}$/.test(String(id)))).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
