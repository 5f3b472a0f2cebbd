import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  capSeconds,
  defaultIdleSeconds,
  defaultTtlSeconds,
  expiresAt,
  forgiveness,
  hardEnd,
  isExpired,
  normaliseSeconds,
} from '../../src/model/clocks.ts'
import { anyNumber, clocks, time } from './arbitraries.ts'

describe('the two clocks of a lease', () => {
  it('its end is the earlier of createdAt + ttl and lastTouchedAt + idle (leases R13)', () => {
    fc.assert(
      fc.property(clocks, (own) => {
        const end = expiresAt(own)
        expect([own.createdAt + own.ttlSeconds * 1000, own.lastTouchedAt + own.idleSeconds * 1000]).toContain(end)
        expect(end).toBeLessThanOrEqual(own.createdAt + own.ttlSeconds * 1000)
        expect(end).toBeLessThanOrEqual(own.lastTouchedAt + own.idleSeconds * 1000)
      }),
    )
  })

  it('no touch and no idle time moves it past createdAt + ttl (leases R16)', () => {
    fc.assert(
      fc.property(clocks, time, fc.integer({ min: 1, max: capSeconds }), (own, lastTouchedAt, idleSeconds) => {
        expect(expiresAt({ ...own, lastTouchedAt, idleSeconds })).toBeLessThanOrEqual(hardEnd(own))
      }),
    )
  })

  it('a later touch never brings the end forward', () => {
    fc.assert(
      fc.property(clocks, fc.nat(), (own, later) => {
        expect(expiresAt({ ...own, lastTouchedAt: own.lastTouchedAt + later })).toBeGreaterThanOrEqual(expiresAt(own))
      }),
    )
  })

  it('at its end it is over, one millisecond before it is not (leases R20, case G13)', () => {
    fc.assert(
      fc.property(time, (end) => {
        expect([isExpired(end, end - 1), isExpired(end, end), isExpired(end, end + 1)]).toEqual([false, true, true])
      }),
    )
  })
})

describe('seconds that a client sends', () => {
  it('are always whole, at least 1 and at most a day, whatever was sent (leases R14, R15, case G7)', () => {
    fc.assert(
      fc.property(anyNumber, (value) => {
        const { seconds } = normaliseSeconds('ttlSeconds', value, defaultTtlSeconds)
        expect(Number.isInteger(seconds)).toBe(true)
        expect(seconds).toBeGreaterThanOrEqual(1)
        expect(seconds).toBeLessThanOrEqual(capSeconds)
      }),
    )
  })

  it.each([null, undefined, 0, -0, -1, -86_400, Number.NaN, Infinity, -Infinity])(
    '%s gives the default, without a warning: null is not for ever (case G7, leases R14)',
    (value) => {
      expect(normaliseSeconds('ttlSeconds', value, defaultTtlSeconds)).toEqual({ seconds: 5400, warning: null })
      expect(normaliseSeconds('idleTimeoutSeconds', value, defaultIdleSeconds)).toEqual({ seconds: 1800, warning: null })
    },
  )

  it.each([
    [0.0001, 1],
    [0.999, 1],
    [1, 1],
    [1.999, 1],
    [60, 60],
    [89.5, 89],
    [86_399.9, 86_399],
    [86_400, 86_400],
  ])('%d becomes %d: fractions are cut, the least is 1', (value, seconds) => {
    expect(normaliseSeconds('ttlSeconds', value, defaultTtlSeconds)).toEqual({ seconds, warning: null })
  })

  it.each([86_400.5, 86_401, 1e12, Number.MAX_VALUE])('%d is capped, and a warning says so (leases D7)', (value) => {
    expect(normaliseSeconds('idleTimeoutSeconds', value, defaultIdleSeconds)).toEqual({
      seconds: 86_400,
      warning: `idleTimeoutSeconds ${value} is above the cap and was set to 86400`,
    })
  })
})

describe('downtime is not idleness (decisions 1)', () => {
  const now = Date.UTC(2026, 5, 1, 12)

  it('after an hour, deadlines that fell into it move to two minutes from now', () => {
    expect(forgiveness(now - 3_600_000, now)).toEqual({ from: now - 3_600_000, to: now + 120_000, until: now + 120_000 })
  })

  it('a deadline that comes so soon after the gap that a lost beat would have moved it is moved too, but not one beyond the gap', () => {
    expect(forgiveness(now - 30_000, now)).toEqual({ from: now - 30_000, to: now + 30_000, until: now + 120_000 })
  })

  it.each([
    ['there was never a mark', null],
    ['the mark is of now', now],
    ['the mark lies ahead', now + 1],
  ])('nothing moves when %s', (_what, mark) => {
    expect(forgiveness(mark, now)).toBeNull()
  })

  it('what had ended before the last mark is never moved, and nothing is moved to an earlier time', () => {
    fc.assert(
      fc.property(time, fc.nat({ max: 10 * 86_400_000 }), (mark, gap) => {
        const moved = forgiveness(mark, mark + gap)
        if (moved === null) {
          expect(gap).toBe(0)
          return
        }
        expect(moved.from).toBe(mark)
        expect(moved.to).toBeLessThanOrEqual(moved.until)
        expect(moved.until).toBe(mark + gap + 120_000)
      }),
    )
  })
})
