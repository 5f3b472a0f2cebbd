import { afterEach, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { eachStore } from '../support/stores.ts'
import { makeBench, type Bench } from './support.ts'

eachStore('the metrics', (open) => {
  let bench: Bench
  afterEach(() => bench.close())

  const scrape = async (token: string | null = bench.admin) => {
    const headers = token === null ? {} : { authorization: `Bearer ${token}` }
    const { statusCode, headers: got, body } = await bench.api.inject({ method: 'GET', url: '/metrics', headers })
    return { status: statusCode, type: got['content-type'], lines: body.split('\n').filter((line) => !line.startsWith('#')) }
  }

  test('show the state of all replicas, what was called, and how long it took from being given up to proved gone (case E3)', async () => {
    bench = await makeBench(await open())
    const kept = await bench.lease()
    const { lease } = await bench.lease()
    await bench.call('POST', `/v1/leases/${lease.id}/release`)
    const { type, lines } = await until(async () => {
      const told = await scrape()
      return told.lines.some((line) => /^leasehold_reclaim_seconds_count\{.*\} 1$/.test(line)) ? told : undefined
    }, 'the release is proved')
    expect(kept.lease.state).toBe('active')
    expect(type).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^leasehold_info\{version="test",.*\} 1$/),
        'leasehold_leases{state="active"} 1',
        'leasehold_leases{state="released"} 1',
        'leasehold_reclaim_seconds_count{provider="process",cause="released"} 1',
        'leasehold_provider_call_seconds_count{provider="process",operation="create",outcome="created"} 2',
        'leasehold_expiry_paused 0',
        expect.stringMatching(/^leasehold_replica_clock_skew_seconds\{replica="re_[^"]+",host="[^"]+"\} -?[\d.e-]+$/),
      ]),
    )
  })

  test('are for those who sign in; a project sees its own, and nothing of what the process did for others', async () => {
    bench = await makeBench(await open())
    const mine = await bench.lease()
    await bench.lease({ project: 'other' })
    expect((await scrape(null)).status).toBe(401)
    expect((await scrape(mine.leaseToken)).status).toBe(403)
    const { status, lines } = await scrape(await bench.token('user', 'default'))
    expect(status).toBe(200)
    expect(lines).toContain('leasehold_leases{state="active"} 1')
    expect(lines.filter((line) => line.startsWith('leasehold_provider_call'))).toEqual([])
    expect((await scrape()).lines).toContain('leasehold_leases{state="active"} 2')
  })
})
