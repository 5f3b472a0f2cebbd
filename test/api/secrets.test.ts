/** Canaries: a secret leaves in the answer to its making and nowhere else. */
import { afterEach, expect, test } from 'vitest'
import type { Log } from '../../src/engine/context.ts'
import { eachStore } from '../support/stores.ts'
import { listKeys } from '../../src/store/keys.ts'
import { makeBench, type Bench } from './support.ts'

eachStore('secrets', (open) => {
  let bench: Bench
  afterEach(() => bench.close())

  test('no token, lease token, backend secret, installation secret or key of the keyed tag is in any other answer, event or line of the log', async () => {
    const lines: unknown[] = []
    const keep = (fields: object, message: string): void => void lines.push({ ...fields, message })
    const log: Log = { debug: keep, info: keep, warn: keep, error: keep }
    const store = await open()
    bench = await makeBench(store, { log })
    const token = await bench.token('admin', null, 'canary')
    const { lease, leaseToken } = await bench.lease({ createAttemptID: `cat_${'a'.repeat(32)}` })
    const config = {
      apiToken: 'canary-one',
      nested: { Password: 'canary-two', list: [{ secretAccessKey: 'canary-three' }] },
      region: 'here',
    }
    await bench.call('POST', '/v1/backends', { name: 'cloud', provider: 'process', config })
    await bench.call('POST', '/v1/installation/keys', { reason: 'a canary' })
    const made = await bench.call('POST', '/v1/tokens', { name: 'fresh', role: 'user' })
    const secrets = [
      bench.admin,
      token,
      leaseToken,
      made.body['secret'] as string,
      bench.engine.context.installation.secret,
      ...(await store.read(listKeys)).map((key) => key.secret),
      'canary-one',
      'canary-two',
      'canary-three',
    ]
    expect(await store.read(listKeys)).toHaveLength(2)
    expect(secrets.every((secret) => typeof secret === 'string' && secret.length >= 10)).toBe(true)

    bench.provider.onRead = () => {
      throw new Error(`401 for Authorization: Bearer ${leaseToken}`)
    }
    const answers: unknown[] = []
    const gets = [
      'leases',
      `leases/${lease.id}`,
      `leases/${lease.id}/access`,
      'instances',
      `instances/${lease.ref}`,
      'events?limit=500',
      'findings',
      'tokens',
      'projects',
      'backends',
      'holds',
      'freezes',
      'installation',
      'admin/audit',
      'admin/audit/verify',
      `receipts/${lease.id}`,
      `explain/${lease.id}`,
      'status',
      'doctor',
    ]
    for (const path of [...gets, 'admin/lease-audit?state=active', 'admin/leases']) answers.push(await bench.call('GET', `/v1/${path}`))
    answers.push(await bench.call('POST', `/v1/leases/${lease.id}/heartbeat`, {}, { token: leaseToken }))
    answers.push(await bench.call('POST', '/v1/leases', { slug: leaseToken, keep: token }))
    answers.push(await bench.call('GET', '/v1/leases', undefined, { token: `${token}x` }))
    answers.push(await bench.call('DELETE', '/v1/backends/cloud'))
    answers.push(await bench.call('POST', `/v1/leases/${lease.id}/release`, {}, { token: leaseToken }))
    answers.push(await bench.call('POST', '/v1/installation/adopt', { reason: 'a canary' }))
    answers.push(await bench.call('POST', '/v1/installation/fork', { reason: 'a canary' }))
    // A failure that nobody foresaw, with secrets in its text.
    const { createHash } = await import('node:crypto')
    const broken = async (): Promise<never> => {
      throw new Error(`select failed for ${token} of postgres://me:canary-two@db/x`)
    }
    store.read = broken
    const failed = await bench.call('GET', '/v1/instances', undefined, { token: bench.admin })
    Reflect.deleteProperty(store, 'read')
    expect({ status: failed.status, error: failed.body['error'] }).toEqual({ status: 500, error: 'internal' })
    expect(failed.body['message']).toContain(String(failed.headers['x-request-id']))
    answers.push(failed)

    const written = JSON.stringify(answers)
    const logged = JSON.stringify(lines)
    expect(logged).toContain('a request failed')
    for (const secret of secrets) {
      expect(written).not.toContain(secret)
      expect(logged).not.toContain(secret)
      expect(written).not.toContain(createHash('sha256').update(secret).digest('hex'))
    }
    // The masks are there, and what is no secret is shown: the canaries were looked for in the right place.
    expect(written).toContain('"config":{"apiToken":"***","nested":{"Password":"***","list":[{"secretAccessKey":"***"}]},"region":"here"}')
  })
})
