import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { burstOf, createShare, isLimited, learn, refilled, reserve, type Budget, type RateReport } from '../../src/model/budget.ts'

const t0 = 1_780_000_000_000
const throttled = (retryAfterMs: number | null = null): RateReport => ({
  throttled: true,
  retryAfterMs,
  limit: null,
  remaining: null,
  resetMs: null,
})
const headers = (limit: number, remaining: number, resetMs: number): RateReport => ({
  throttled: false,
  retryAfterMs: null,
  limit,
  remaining,
  resetMs,
})

/** As many calls as are granted from `from` on, asked for one by one every 10 ms. */
const spend = (given: Budget, operation: 'create' | 'read' | 'delete', limit: number | null, from: number, ms: number) => {
  let budget = given
  let granted = 0
  for (let at = from; at < from + ms; at += 10) {
    const answer = reserve(budget, operation, 1, limit, at)
    budget = answer.budget
    granted += answer.granted
  }
  return { budget, granted }
}

describe('a budget', () => {
  it('that nothing limits grants whatever is asked for, and stays so', () => {
    expect(isLimited({}, 'delete', null, t0)).toBe(false)
    expect(reserve({}, 'delete', 10_000, null, t0)).toMatchObject({ granted: 10_000, until: null })
  })

  it('with a setting grants that rate over time, and says when the next call has room', () => {
    const { budget, granted } = spend({}, 'create', 10, t0, 60_000)
    expect(granted).toBeGreaterThanOrEqual(600)
    expect(granted).toBeLessThanOrEqual(600 + burstOf(10))
    const refused = reserve(budget, 'create', 1, 10, t0 + 60_000)
    const until = refused.granted === 0 ? refused.until : reserve(refused.budget, 'create', 100, 10, t0 + 60_000).until
    const next = until ?? reserve(reserve(budget, 'create', 100, 10, t0 + 60_000).budget, 'create', 1, 10, t0 + 60_000).until
    expect(next).toBeGreaterThan(t0 + 60_000)
    expect(next).toBeLessThanOrEqual(t0 + 60_000 + 110)
  })

  it('keeps a share for creates that deletes and reads can not use up', () => {
    const afterDeletes = spend({}, 'delete', 10, t0, 30_000).budget
    const { budget } = spend(afterDeletes, 'read', 10, t0 + 30_000, 30_000)
    const at = t0 + 59_995
    expect(reserve(budget, 'delete', 1, 10, at).granted).toBe(0)
    expect(reserve(budget, 'create', 100, 10, at).granted).toBeGreaterThanOrEqual(Math.floor(burstOf(10) * createShare))
    // The twin: creates may use up all of it.
    const byCreates = spend({}, 'create', 10, t0, 60_000).budget
    expect(reserve(byCreates, 'create', 1, 10, at).granted).toBe(0)
  })

  it('halves the rate when it is throttled, and gives it back bit by bit until nothing limits it', () => {
    const once = learn({}, 'delete', throttled(), 40, t0)
    expect(once.delete).toMatchObject({ rate: 20, peak: 40, throttles: 1, blockedUntil: t0 + 1000 })
    const twice = learn(once, 'delete', throttled(), 40, t0 + 5_000)
    expect(twice.delete?.rate).toBeCloseTo(10.5)
    expect(twice.delete?.blockedUntil).toBe(t0 + 7_000)
    const bucket = twice.delete
    if (!bucket) throw new Error('no bucket')
    const rates = [10, 30, 60, 120].map((seconds) => refilled(bucket, t0 + 5_000 + seconds * 1000).rate)
    for (const [i, rate] of rates.entries()) expect(rate).toBeGreaterThan(i === 0 ? 10.5 : (rates[i - 1] ?? 0))
    expect(refilled(bucket, t0 + 600_000).rate).toBeNull()
    expect(isLimited(twice, 'delete', null, t0 + 600_000)).toBe(false)
    // Another class is none the worse for it.
    expect(isLimited(twice, 'create', null, t0 + 5_000)).toBe(false)
  })

  it('counts the answers to calls that were under way together as one', () => {
    let budget: Budget = {}
    for (let i = 0; i < 50; i++) budget = learn(budget, 'read', throttled(), 64, t0 + i)
    expect(budget.read?.throttles).toBe(1)
    expect(budget.read?.rate).toBeCloseTo(32, 0)
  })

  it('leaves the account alone for as long as its provider says, whatever was saved up', () => {
    const budget = learn({}, 'create', throttled(90_000), 12, t0)
    expect(reserve(budget, 'create', 1, null, t0 + 89_999)).toMatchObject({ granted: 0, until: t0 + 90_000 })
    const after = reserve(budget, 'create', 1, null, t0 + 90_000)
    expect(after.granted).toBe(1)
  })

  it('goes by what headers tell: nothing left waits for the window, little left lasts until its end, much left changes nothing', () => {
    expect(learn({}, 'read', headers(100, 0, 30_000), 5, t0).read?.blockedUntil).toBe(t0 + 30_000)
    expect(learn({}, 'read', headers(100, 20, 40_000), 5, t0).read?.rate).toBe(0.5)
    const none: Budget = {}
    expect(learn(none, 'read', headers(100, 80, 40_000), 5, t0)).toBe(none)
  })

  it('what was granted and not called comes back, and what was called on credit is paid first', () => {
    const { budget } = spend({}, 'create', 10, t0, 60_000)
    const at = t0 + 60_000
    expect(reserve(budget, 'create', 5, 10, at, 6).granted).toBeGreaterThanOrEqual(5)
    const indebted = reserve(budget, 'create', 1, 10, at, -15)
    expect(indebted.granted).toBe(0)
    expect(indebted.until).toBeGreaterThan(at + 1_400)
  })

  it('never grants more than rate and burst allow, in whatever order classes ask', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            operation: fc.constantFrom('create' as const, 'read' as const, 'delete' as const),
            most: fc.integer({ min: 1, max: 50 }),
            afterMs: fc.integer({ min: 0, max: 500 }),
          }),
          { maxLength: 200 },
        ),
        fc.integer({ min: 1, max: 50 }),
        (asked, limit) => {
          let budget: Budget = {}
          let now = t0
          let granted = 0
          for (const { operation, most, afterMs } of asked) {
            now += afterMs
            const answer = reserve(budget, operation, most, limit, now)
            budget = answer.budget
            granted += answer.granted
            expect(answer.until === null).toBe(answer.granted > 0)
            expect(granted).toBeLessThanOrEqual(burstOf(limit) + ((now - t0) / 1000) * limit + 1e-6)
          }
        },
      ),
    )
  })
})
