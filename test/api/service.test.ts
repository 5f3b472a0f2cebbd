import { afterEach, describe, expect, test } from 'vitest'
import { isDatabaseUnavailable } from '../../src/api/database-errors.ts'
import { eachStore } from '../support/stores.ts'
import { makeBench, type Bench } from './support.ts'

eachStore('the service itself', (open) => {
  let bench: Bench
  afterEach(() => bench.close())

  test('it is healthy at once, ready only while the database answers and the pipelines run', async () => {
    const store = await open()
    bench = await makeBench(store, { start: false })
    const ready = () => bench.call('GET', '/v1/ready', undefined, { token: null })
    expect((await bench.call('GET', '/v1/health', undefined, { token: null })).body).toEqual({ status: 'ok' })
    expect(await ready()).toMatchObject({ status: 503, body: { error: 'not_ready' } })
    await bench.engine.start()
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ready' } })
    store.read = async () => {
      throw Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })
    }
    expect(await ready()).toMatchObject({ status: 503, body: { error: 'database_unavailable' } })
    const leases = await bench.call('GET', '/v1/instances')
    expect({ status: leases.status, error: leases.body['error'], retry: leases.headers['retry-after'] }).toEqual({
      status: 503,
      error: 'database_unavailable',
      retry: '2',
    })
    expect((await bench.call('GET', '/v1/health')).status).toBe(200)
    Reflect.deleteProperty(store, 'read')
    expect((await ready()).status).toBe(200)
  })

  test('its status names this replica, counts by state, and shows what concerns the asker only', async () => {
    bench = await makeBench(await open())
    await bench.lease()
    await bench.lease({ project: 'other' })
    await bench.call('POST', '/v1/freezes', { scope: 'scripted:two', reason: 'moving' })
    const { status } = (await bench.call('GET', '/v1/status')).body
    expect(status).toMatchObject({
      version: 'test',
      expiryPaused: null,
      counts: { leases: { active: 2 }, instances: { busy: 2 }, findings: 0 },
      freezes: [{ scope: 'scripted:two' }],
    })
    expect(status.replicas.map((one: { self: boolean; pid: number }) => [one.self, one.pid])).toEqual([[true, process.pid]])
    const mine = (await bench.call('GET', '/v1/status', undefined, { token: await bench.token('user', 'default') })).body['status']
    expect(mine).toMatchObject({ counts: { leases: { active: 1 } }, freezes: [] })
  })
})

describe('errors of a database that is not there', () => {
  const withCode = (code: string, more: object = {}): Error => Object.assign(new Error('x'), { code, ...more })
  test.each([
    ['a refused connection', withCode('ECONNREFUSED')],
    ['a server that shuts down', withCode('57P01', { severity: 'FATAL' })],
    ['too many connections', withCode('53300', { severity: 'FATAL' })],
    ['a lock that is not let go', withCode('55P03', { severity: 'ERROR' })],
    ['a pool that waits in vain', new Error('timeout exceeded when trying to connect')],
    ['a connection that breaks', new Error('Connection terminated unexpectedly')],
    ['a busy file', withCode('ERR_SQLITE_ERROR', { errcode: 5 })],
    ['a full disk', withCode('ERR_SQLITE_ERROR', { errcode: 13 })],
    ['a read error with its extended code', withCode('ERR_SQLITE_ERROR', { errcode: 266 })],
  ])('%s is one', (_name, error) => expect(isDatabaseUnavailable(error)).toBe(true))

  test.each([
    ['a violated constraint', withCode('ERR_SQLITE_ERROR', { errcode: 1555 })],
    ['a wrong statement', withCode('ERR_SQLITE_ERROR', { errcode: 1 })],
    ['a violated key', withCode('23505', { severity: 'ERROR' })],
    ['a fault of ours', new TypeError('x is not a function')],
    ['what is no error', 'ECONNREFUSED'],
  ])('%s is none', (_name, error) => expect(isDatabaseUnavailable(error)).toBe(false))
})
