import { describe, expect, it } from 'vitest'
import { distance, nearest } from '../../src/lib/nearest.ts'

describe('the nearest word', () => {
  it.each([
    ['', '', 0],
    ['abc', '', 3],
    ['abc', 'abc', 0],
    ['abc', 'abd', 1],
    ['abc', 'ab', 1],
    ['abc', 'xabc', 1],
    ['MDOE', 'MODE', 1],
    ['kitten', 'sitting', 3],
  ])('from %j to %j it is %d changes', (a, b, far) => {
    expect(distance(a, b)).toBe(far)
    expect(distance(b, a)).toBe(far)
  })

  it('is the one with the fewest changes, and none where all are far', () => {
    expect(nearest('colour', ['color', 'colours', 'dolor'])).toBe('color')
    expect(nearest('LEASEHOLD_PROT', ['LEASEHOLD_PORT', 'LEASEHOLD_HOST'])).toBe('LEASEHOLD_PORT')
    expect(nearest('moon', ['sunlight'])).toBeNull()
    expect(nearest('moon', [])).toBeNull()
  })
})
