import { expect, it } from 'vitest'
import type { StatusView } from '../../src/model/wire.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'

const now = '2026-06-01T12:00:00.000Z'
const replica: StatusView['replicas'][number] = {
  id: 're_1',
  host: 'one',
  pid: 7,
  version: '1.0.0',
  startedAt: now,
  aliveAt: now,
  self: true,
  clockSkewMs: 300_000,
  locks: 2,
  locksOf: [{ pipeline: 'remove', count: 2, oldestRenewedAt: now }],
}
const status: StatusView = {
  version: '1.0.0',
  installation: 'abcdefgh',
  database: 'postgresql',
  now,
  clockSkewMs: 300_000,
  expiryPaused: 'the clock leapt',
  freezes: [],
  stops: [],
  circuits: [],
  budgets: [
    {
      provider: 'simulated',
      scope: 'simulated:a',
      operation: 'delete',
      callsPerSecond: 2.5,
      left: 1,
      blockedUntil: '2026-06-01T12:00:30.000Z',
      throttledAt: now,
      throttles: 3,
    },
  ],
  waiting: { creates: 0, removals: 4, sweeps: 0 },
  sweeps: [],
  troubles: [],
  findingsByCode: { orphan: 2 },
  forPerson: [],
  replicas: [replica],
  counts: { leases: { active: 5 }, instances: {}, removals: {}, findings: 2 },
}
const linesOf = async (whole: boolean, made = createMetrics({ ofProcess: false })) =>
  (await made.render(status, whole)).split('\n').filter((line) => !line.startsWith('#') && line !== '')

it("shows each account's budget, what waits for it, and the skew of each replica's clock (case H8)", async () => {
  const of = '{provider="simulated",scope="simulated:a",operation="delete"}'
  expect(await linesOf(false)).toEqual(
    expect.arrayContaining([
      'leasehold_replica_clock_skew_seconds{replica="re_1",host="one"} 300',
      'leasehold_replica_locks{replica="re_1",host="one",pipeline="remove"} 2',
      `leasehold_budget_calls_per_second${of} 2.5`,
      `leasehold_budget_calls_left${of} 1`,
      `leasehold_budget_blocked_seconds${of} 30`,
      `leasehold_budget_throttles_total${of} 3`,
      'leasehold_waiting{kind="removals"} 4',
      'leasehold_findings{code="orphan"} 2',
      'leasehold_expiry_paused 1',
    ]),
  )
})

it('forgets what is not there any more, and counts on what happened', async () => {
  const made = createMetrics({ ofProcess: false })
  made.reclaimed('simulated', 'expired', 12)
  expect(await linesOf(true, made)).toContain('leasehold_leases{state="active"} 5')
  status.counts.leases = { released: 1 }
  const lines = await linesOf(true, made)
  expect(lines.filter((line) => line.startsWith('leasehold_leases'))).toEqual(['leasehold_leases{state="released"} 1'])
  expect(lines).toContain('leasehold_reclaim_seconds_bucket{le="15",provider="simulated",cause="expired"} 1')
  expect(lines).toContain('leasehold_reclaim_seconds_bucket{le="5",provider="simulated",cause="expired"} 0')
})
