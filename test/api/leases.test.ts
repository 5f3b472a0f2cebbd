import { afterEach, expect, test } from 'vitest'
import { hex } from '../../src/lib/ids.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { gate } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { makeBench, type Bench } from './support.ts'

const respondAsync = { headers: { prefer: 'respond-async' } }

eachStore('leases over HTTP', (open) => {
  let bench: Bench
  afterEach(() => bench.close())

  test('a create answers 201 once the lease is active, with its token, and 202 at once with Prefer: respond-async', async () => {
    bench = await makeBench(await open())
    const made = await bench.call('POST', '/v1/leases', {
      slug: 'Brave Otter',
      labels: { team: 'web' },
      keep: true,
      ttlSeconds: 600,
      idleTimeoutSeconds: 60,
    })
    expect(made.status).toBe(201)
    expect(made.body['lease']).toMatchObject({
      slug: 'brave-otter',
      state: 'active',
      owner: 'admin',
      project: 'default',
      keep: true,
      ttlSeconds: 600,
      idleTimeoutSeconds: 60,
      labels: { team: 'web' },
    })
    expect(made.body['leaseToken']).toMatch(/^lht_/)
    expect(made.body).not.toHaveProperty('warnings')

    const hanging = gate()
    bench.provider.onCreate = async () => {
      await hanging.promise
      return undefined
    }
    const later = await bench.call('POST', '/v1/leases', {}, respondAsync)
    expect({ status: later.status, state: later.body['lease'].state }).toEqual({ status: 202, state: 'provisioning' })
    hanging.open()
    await until(
      async () => (await bench.call('GET', `/v1/leases/${later.body['lease'].id}`)).body['lease'].state === 'active',
      'the box is there',
    )
  })

  test('null is as good as missing, and what is above the cap is capped with a warning (leases R14, R15)', async () => {
    bench = await makeBench(await open())
    const body = {
      leaseID: null,
      createAttemptID: null,
      slug: null,
      provider: null,
      backend: null,
      project: null,
      ttlSeconds: null,
      idleTimeoutSeconds: 90_000.5,
      keep: null,
      labels: null,
    }
    const { status, body: answer } = await bench.call('POST', '/v1/leases', body)
    expect(status).toBe(201)
    expect(answer['lease']).toMatchObject({ ttlSeconds: 5400, idleTimeoutSeconds: 86_400, keep: false, labels: {} })
    expect(answer['warnings']).toEqual(['idleTimeoutSeconds 90000.5 is above the cap and was set to 86400'])
  })

  test('a create that the provider rejects is 424 create_failed, with the reason and the lease', async () => {
    bench = await makeBench(await open())
    bench.provider.onCreate = () => ({ kind: 'rejected', code: 'quota', message: 'no room left' })
    const { status, body } = await bench.call('POST', '/v1/leases', {})
    expect({ status, error: body['error'], failureCode: body['failureCode'], state: body['lease'].state }).toEqual({
      status: 424,
      error: 'create_failed',
      failureCode: 'quota',
      state: 'failed',
    })
    expect(body['message']).toContain('no room left')
  })

  test('a backend or project that is not there is bad input, with those that there are', async () => {
    bench = await makeBench(await open(), { start: false })
    for (const [input, message] of [
      [{ backend: 'moon' }, 'backend: project "default" has no backend "moon"; there is local'],
      [{ project: 'moon' }, 'project: no project "moon" is known here; there is default, other'],
    ] as const) {
      const { status, body } = await bench.call('POST', '/v1/leases', input)
      expect({ status, error: body['error'], message: body['message'] }).toEqual({ status: 400, error: 'bad_request', message })
    }
  })

  test('the same request key answers the same lease and token: 202 while provisioning, 200 when active (leases R10)', async () => {
    bench = await makeBench(await open())
    const hanging = gate()
    bench.provider.onCreate = async () => {
      await hanging.promise
      return undefined
    }
    const request = { createAttemptID: `cat_${hex(16)}`, slug: 'again' }
    const first = await bench.call('POST', '/v1/leases', request, respondAsync)
    const second = await bench.call('POST', '/v1/leases', request)
    expect([first.status, second.status]).toEqual([202, 202])
    hanging.open()
    await until(
      async () => (await bench.call('GET', `/v1/leases/${first.body['lease'].id}`)).body['lease'].state === 'active',
      'the box is there',
    )
    const third = await bench.call('POST', '/v1/leases', request)
    expect(third.status).toBe(200)
    expect(new Set([first, second, third].map((one) => one.body['lease'].id)).size).toBe(1)
    expect(new Set([first, second, third].map((one) => one.body['leaseToken'])).size).toBe(1)
    expect(bench.provider.count('create')).toBe(1)
    const drift = await bench.call('POST', '/v1/leases', { ...request, slug: 'other' })
    expect({ status: drift.status, error: drift.body['error'] }).toEqual({ status: 409, error: 'lease_id_conflict' })
    await bench.call('POST', `/v1/leases/${first.body['lease'].id}/release`, {})
    const late = await bench.call('POST', '/v1/leases', request)
    expect({ status: late.status, error: late.body['error'], state: late.body['lease'].state }).toEqual({
      status: 409,
      error: 'lease_ended',
      state: 'released',
    })
  })

  test('PUT makes a lease under its own id, answers 200 to the same again, and 409 to another or once it has ended (leases R11)', async () => {
    bench = await makeBench(await open())
    const id = `lh_${hex(6)}`
    const put = (body: object) => bench.call('PUT', `/v1/leases/${id}`, body)
    expect((await put({ slug: 'mine' })).status).toBe(201)
    const again = await put({ slug: 'mine', keep: null })
    expect({ status: again.status, id: again.body['lease'].id }).toEqual({ status: 200, id })
    for (const body of [{ slug: 'other' }, { slug: 'mine', ttlSeconds: 60 }])
      expect((await put(body)).body['error']).toBe('lease_id_conflict')
    expect((await put({ createAttemptID: `cat_${hex(16)}` })).status).toBe(400)
    await bench.call('POST', `/v1/leases/${id}/release`, {})
    const ended = await put({ slug: 'mine' })
    expect({ status: ended.status, error: ended.body['error'] }).toEqual({ status: 409, error: 'lease_id_conflict' })
    expect(bench.provider.count('create')).toBe(1)
  })

  test('a lease that is released while its create waits is 409 lease_state_changed (leases R34)', async () => {
    bench = await makeBench(await open())
    const [called, hanging] = [gate<string>(), gate()]
    bench.provider.onCreate = async (request) => {
      called.open(request.leaseId as string)
      await hanging.promise
      return undefined
    }
    const waiting = bench.call('POST', '/v1/leases', {})
    await bench.call('POST', `/v1/leases/${await called.promise}/release`, {})
    const { status, body } = await waiting
    expect({ status, error: body['error'], state: body['lease'].state }).toEqual({
      status: 409,
      error: 'lease_state_changed',
      state: 'released',
    })
    hanging.open()
  })

  test('cancel-create leaves a tombstone that a create which arrives later can not pass (leases R10)', async () => {
    bench = await makeBench(await open())
    const [id, key] = [`lh_${hex(6)}`, `cat_${hex(16)}`]
    const cancelled = await bench.call('POST', `/v1/leases/${id}/cancel-create`, { createAttemptID: key })
    expect(cancelled.body).toEqual({ canceledCreate: { version: 1, requestedLeaseID: id, createAttemptID: key, state: 'canceled' } })
    const late = await bench.call('POST', '/v1/leases', { leaseID: id, createAttemptID: key })
    expect({ status: late.status, error: late.body['error'] }).toEqual({ status: 409, error: 'create_canceled' })
    expect(bench.provider.count('create')).toBe(0)
  })

  test('a heartbeat moves the end and takes no body, an idle time of its own, or the provider that it expects', async () => {
    bench = await makeBench(await open())
    const { lease } = await bench.lease({ idleTimeoutSeconds: 600 })
    const beat = (body?: unknown) => bench.call('POST', `/v1/leases/${lease.id}/heartbeat`, body)
    const plain = (await beat()).body['lease'] as LeaseView
    expect(Date.parse(plain.lastTouchedAt)).toBeGreaterThanOrEqual(Date.parse(lease.lastTouchedAt))
    expect((await beat('')).status).toBe(200)
    for (const ignored of [0, -1, null]) expect((await beat({ idleTimeoutSeconds: ignored })).body['lease'].idleTimeoutSeconds).toBe(600)
    const shorter = (await beat({ idleTimeoutSeconds: 60, expectedProvider: 'process' })).body['lease'] as LeaseView
    expect(Date.parse(shorter.expiresAt) - Date.parse(shorter.lastTouchedAt)).toBe(60_000)
    const mismatch = await beat({ expectedProvider: 'aws' })
    expect({ status: mismatch.status, error: mismatch.body['error'] }).toEqual({ status: 409, error: 'provider_mismatch' })
    expect((await beat({ expectedProvider: 'A W S' })).status).toBe(400)
  })

  test('a release without a body keeps a kept box, with delete: true it goes, and repeating either is safe (leases R30-R32)', async () => {
    bench = await makeBench(await open())
    const { lease } = await bench.lease({ keep: true })
    const release = async (body?: object): Promise<LeaseView> =>
      (await bench.call('POST', `/v1/leases/${lease.id}/release`, body)).body['lease']
    expect(await release()).toMatchObject({ state: 'released', releaseDeletesServer: false, cleanup: { state: 'none' } })
    expect(await release({ delete: null })).toMatchObject({ state: 'released', releaseDeletesServer: false })
    expect(await release({ delete: true })).toMatchObject({ state: 'released', releaseDeletesServer: true })
    await until(async () => (await bench.call('GET', `/v1/leases/${lease.id}`)).body['lease'].cleanup.state === 'gone', 'the box is gone')
    expect(bench.provider.boxes.size).toBe(0)
    expect(await release({ delete: true })).toMatchObject({ state: 'released', cleanup: { state: 'gone' } })
    const beat = await bench.call('POST', `/v1/leases/${lease.id}/heartbeat`, {})
    expect({ status: beat.status, error: beat.body['error'] }).toEqual({ status: 409, error: 'lease_ended' })
  })

  test('lists are newest first, filtered by states in either spelling, owner, provider and project, and cut at the limit', async () => {
    bench = await makeBench(await open())
    const [first, second, third] = [
      await bench.lease({}, { token: await bench.token('user', 'default', 'ann') }),
      await bench.lease(),
      await bench.lease({ project: 'other' }),
    ]
    await bench.call('POST', `/v1/leases/${second.lease.id}/release`, {})
    const ids = async (query: string): Promise<string[]> =>
      (await bench.call('GET', `/v1/leases${query}`)).body['leases'].map((one: LeaseView) => one.id)
    expect(await ids('')).toEqual([third.lease.id, second.lease.id, first.lease.id])
    expect(await ids('?limit=1')).toEqual([third.lease.id])
    expect(await ids('?state=active')).toEqual([third.lease.id, first.lease.id])
    for (const both of ['?state=active,released', '?state=active&state=released']) expect(await ids(both)).toHaveLength(3)
    expect(await ids('?owner=ann')).toEqual([first.lease.id])
    expect(await ids('?project=other&provider=process')).toEqual([third.lease.id])
    expect(await bench.call('GET', '/v1/leases?provider=aws')).toMatchObject({
      status: 400,
      body: { error: 'bad_request', message: 'provider: no provider "aws" is known here; there is process' },
    })
    expect((await bench.call('GET', `/v1/leases/${first.lease.slug}`)).body['lease'].id).toBe(first.lease.id)
  })

  test('an administrator deletes a kept lease of somebody and is answered when its box is gone', async () => {
    bench = await makeBench(await open())
    const { lease } = await bench.lease({ keep: true }, { token: await bench.token('user', 'default', 'ann') })
    const { status, body } = await bench.call('POST', `/v1/admin/leases/${lease.id}/delete`)
    expect({ status, cleanup: body['lease'].cleanup.state, boxes: bench.provider.boxes.size }).toEqual({
      status: 200,
      cleanup: 'gone',
      boxes: 0,
    })
  })

  test('a server that closes answers those who wait with what it knows: 202', async () => {
    bench = await makeBench(await open())
    const [called, hanging] = [gate(), gate()]
    bench.provider.onCreate = async () => {
      called.open()
      await hanging.promise
      return undefined
    }
    const waiting = bench.call('POST', '/v1/leases', {})
    const polling = bench.call('GET', '/v1/events?after=999999&waitSeconds=50')
    await called.promise
    const from = performance.now()
    await bench.api.close()
    expect([(await waiting).status, (await polling).status]).toEqual([202, 200])
    expect(performance.now() - from).toBeLessThan(5_000)
    hanging.open()
  })
})
