import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fairShares, projectsAFetch, shareAlone } from '../../src/model/fair.ts'

const names = fc.uniqueArray(fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), minLength: 1, maxLength: 4 }), { maxLength: 40 })

describe('shares of a fetch', () => {
  it('give each project in turn a part, never more places than there are, and none to who has its part while others wait', () => {
    fc.assert(
      fc.property(
        names,
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 0, max: 400 }),
        fc.array(fc.nat(60)),
        fc.string(),
        (due, free, more, busy, after) => {
          const inWork = new Map(due.map((project, i): [string, number] => [project, busy[i] ?? 0]))
          const capacity = free + more
          const shares = fairShares(due, inWork, free, capacity, after)
          expect(shares.reduce((sum, one) => sum + one.limit, 0)).toBeLessThanOrEqual(free)
          expect(new Set(shares.map((one) => one.project)).size).toBe(shares.length)
          for (const { project, limit } of shares) {
            expect(due).toContain(project)
            expect(limit).toBeGreaterThanOrEqual(1)
            const part = due.length === 1 ? shareAlone(capacity) : Math.max(1, Math.floor(capacity / due.length))
            expect((inWork.get(project) ?? 0) + limit).toBeLessThanOrEqual(part)
          }
        },
      ),
    )
  })

  it('come to every project within as many fetches as it takes, whoever comes first in the alphabet', () => {
    fc.assert(
      fc.property(names, (due) => {
        const served = new Set<string>()
        let after = ''
        for (let fetch = 0; fetch < Math.ceil(due.length / projectsAFetch); fetch++) {
          const shares = fairShares(due, new Map(), projectsAFetch, 1_000, after)
          for (const { project } of shares) served.add(project)
          after = shares.at(-1)?.project ?? ''
        }
        expect(served).toEqual(new Set(due))
      }),
    )
  })

  it('leave a fifth of the places when a project is alone, for whoever comes next', () => {
    expect(fairShares(['a'], new Map([['a', 350]]), 150, 500, 'a')).toEqual([{ project: 'a', limit: 50 }])
    expect(fairShares(['a'], new Map([['a', 400]]), 100, 500, 'a')).toEqual([])
  })
})
