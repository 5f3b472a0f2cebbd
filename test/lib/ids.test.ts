import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hex, letterFirst, secret, uuidv7Hex } from '../../src/lib/ids.ts'

describe('makers of ids', () => {
  it('a ref is 12 of [a-z0-9], a letter first, and never the same twice in 5,000 (case K1, K2, K3, orphans R1)', () => {
    const made = Array.from({ length: 5_000 }, () => letterFirst(12))
    for (const ref of made) expect(ref).toMatch(/^[a-z][a-z0-9]{11}$/)
    expect(new Set(made).size).toBe(made.length)
  })

  it('every letter and every digit comes up', () => {
    const seen = new Set(Array.from({ length: 2_000 }, () => letterFirst(12)).join(''))
    expect([...seen].toSorted().join('')).toBe('0123456789abcdefghijklmnopqrstuvwxyz')
  })

  it('uuidv7Hex is a UUID of version 7 and its variant, with the time in front', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (ms) => {
        const id = uuidv7Hex(ms)
        expect(id).toMatch(/^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
        expect(Number.parseInt(id.slice(0, 12), 16)).toBe(ms)
      }),
    )
  })

  it('within one millisecond the ids go up in the order of the calls', () => {
    const made = Array.from({ length: 10_000 }, () => uuidv7Hex(1_780_000_000_000))
    expect(made).toEqual(made.toSorted())
    expect(new Set(made).size).toBe(made.length)
  })

  it('and also while other transactions, of other milliseconds, make theirs in between', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1_780_000_000_000, max: 1_780_000_000_003 }), { minLength: 2, maxLength: 60 }), (times) => {
        const made = Map.groupBy(
          times.map((ms) => ({ ms, id: uuidv7Hex(ms) })),
          (one) => one.ms,
        )
        for (const ofOneMs of made.values()) {
          const ids = ofOneMs.map((one) => one.id)
          expect(ids).toEqual(ids.toSorted())
        }
      }),
    )
  })

  it('a later millisecond comes after an earlier one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 47 }), fc.integer({ min: 1, max: 2 ** 46 }), (ms, later) => {
        expect(uuidv7Hex(ms) < uuidv7Hex(ms + later)).toBe(true)
      }),
    )
  })

  it('a secret has its prefix and 32 random bytes', () => {
    expect(secret('lhx_')).toMatch(/^lhx_[A-Za-z0-9_-]{43}$/)
    expect(secret('lhx_')).not.toBe(secret('lhx_'))
    expect(hex(6)).toMatch(/^[0-9a-f]{12}$/)
  })
})
