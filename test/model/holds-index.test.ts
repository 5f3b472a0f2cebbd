import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holdAmong } from '../../src/model/holds-index.ts'
import type { HoldFacts } from '../../src/model/removal.ts'
import { countingHolds, membership, targetOf } from '../simulation/soak/scale.ts'

const types = ['resource', 'instance', 'lease', 'project', 'scope'] as const
const hold = fc.record({ id: fc.string(), targetType: fc.constantFrom(...types), targetId: fc.constantFrom('a', 'b', 'c', 'd') })
const name = fc.constantFrom('a', 'b', 'c', 'x')

describe('whether something is held', () => {
  it('is what a look at one hold after the other says, and the first of them (I10)', () => {
    const asked = fc.record({
      resourceKeys: fc.array(name, { maxLength: 4 }),
      instanceId: name,
      leaseId: fc.option(name),
      project: name,
      scope: name,
    })
    fc.assert(
      fc.property(fc.array(hold, { maxLength: 12 }), asked, (holds, on) => {
        const mine: Record<HoldFacts['targetType'], readonly (string | null)[]> = {
          resource: on.resourceKeys,
          instance: [on.instanceId],
          lease: [on.leaseId],
          project: [on.project],
          scope: [on.scope],
        }
        expect(holdAmong(holds, on)).toBe(holds.find((one) => mine[one.targetType].includes(one.targetId)))
      }),
    )
  })

  it('of thousands of resources is asked of hundreds of holds by looking at each hold once, not once for each of them (case M8)', () => {
    const { holds, looks } = countingHolds(500)
    const found = membership(holds, 5_000)
    // Every tenth is held.
    expect(found).toBe(500)
    const afterAll = looks()
    expect(afterAll).toBeLessThan(500 * 20)
    holdAmong(holds, targetOf(1))
    // The negative twin: a search through the list costs as many looks as it has holds, each time.
    holds.find((one) => one.targetId === 'nobody')
    expect(looks() - afterAll).toBeGreaterThanOrEqual(500)
  })
})
