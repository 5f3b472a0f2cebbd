import { describe, expect, it } from 'vitest'
import { crashesOf, describePlan, faultKinds, lockMs, planOf } from './schedule.ts'
import { lockMs as locksOfPipelines } from '../../src/engine/pipeline.ts'

const plans = Array.from({ length: 300 }, (_, i) => planOf(i + 1))

describe('the schedule of the chaos suite', () => {
  it('is the same again for the same seed, and another for another', () => {
    expect(planOf(7)).toEqual(planOf(7))
    expect(new Set(plans.map(describePlan)).size).toBe(plans.length)
  })

  it('has every kind of fault in every seed, one replica of the version before, and one with a clock that is five minutes wrong', () => {
    for (const plan of plans) {
      expect(new Set(plan.faults.map((fault) => fault.kind)), `seed ${plan.seed}`).toEqual(new Set(faultKinds))
      expect(plan.replicas.filter((one) => one.version === 'before')).toHaveLength(1)
      expect(plan.replicas.map((one) => Math.abs(one.clockSkewSeconds)).toSorted((a, b) => a - b)).toEqual([0, 0, 300])
      expect(plan.faults.flatMap((fault) => (fault.kind === 'restart-database' ? [fault.how] : [])).toSorted()).toEqual([
        'fast',
        'immediate',
      ])
    }
  })

  it('lets a replica stand still for longer than its locks, and does nothing else to it meanwhile', () => {
    expect(lockMs).toBe(locksOfPipelines)
    for (const { faults, seed } of plans) {
      const long = faults.flatMap((fault) => (fault.kind === 'stand-still' || fault.kind === 'half-open' ? [fault] : []))
      for (const one of long) {
        if (one.kind === 'stand-still') expect(one.forMs).toBeGreaterThan(lockMs)
        const meanwhile = faults.filter(
          (other) =>
            other !== one &&
            other.kind !== 'restart-database' &&
            other.replica === one.replica &&
            other.atMs >= one.atMs &&
            other.atMs <= one.atMs + one.forMs,
        )
        expect(meanwhile, `seed ${seed}`).toEqual([])
      }
    }
  })

  it('kills as often as case M11 wants', () => {
    const plan = crashesOf(3, 200, 1_000)
    expect(plan.faults.map((fault) => fault.kind)).toEqual(Array.from({ length: 200 }, () => 'kill'))
    expect(plan.faults.every((fault) => fault.atMs <= plan.loadMs)).toBe(true)
  })
})
