import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRefSet } from '../../src/model/ref-set.ts'

const letters = Array.from('abcdefghijklmnopqrstuvwxyz')
const signs = Array.from('abcdefghijklmnopqrstuvwxyz0123456789')
const ref = fc
  .tuple(fc.constantFrom(...letters), fc.string({ unit: fc.constantFrom(...signs), minLength: 11, maxLength: 11 }))
  .map(([first, rest]) => first + rest)
/** Close to each other, so that halves are shared and places collide. */
const close = fc.string({ unit: fc.constantFrom('a', 'b', '0'), minLength: 12, maxLength: 12 })

describe('a set of refs', () => {
  it('holds what was added and nothing else, whatever the texts', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(ref, close, fc.string())), fc.array(fc.oneof(ref, close, fc.string())), (added, asked) => {
        const set = createRefSet()
        for (const one of added) set.add(one)
        const plain = new Set(added)
        for (const one of [...added, ...asked]) expect(set.has(one), one).toBe(plain.has(one))
      }),
      { numRuns: 500 },
    )
  })

  it('tells refs apart that differ in one character of either half', () => {
    const set = createRefSet()
    set.add('abcdefghijkl')
    for (let i = 0; i < 12; i++)
      for (const sign of signs) {
        const other = `${'abcdefghijkl'.slice(0, i)}${sign}${'abcdefghijkl'.slice(i + 1)}`
        expect(set.has(other), other).toBe(other === 'abcdefghijkl')
      }
  })

  it('keeps a hundred thousand apart while it grows', () => {
    const set = createRefSet()
    const name = (i: number): string => `r${i.toString(36).padStart(11, '0')}`
    for (let i = 0; i < 200_000; i += 2) set.add(name(i))
    let wrong = 0
    for (let i = 0; i < 200_000; i++) if (set.has(name(i)) !== (i % 2 === 0)) wrong++
    expect(wrong).toBe(0)
  })
})
