import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  allowedPerSweep,
  canariesOf,
  canaryAfter,
  canaryKey,
  defaultLimits,
  freshCanary,
  planId,
  planRemovals,
  type Begun,
  type Canary,
  type PlanContext,
} from '../../../src/model/limits.ts'
import { entries, entry, hash } from './plan-entries.ts'

/** Trusted already, so that only the limits speak. */
const trusted = new Map<string, Canary>([[canaryKey(entry(0)), { stage: 2, inFlight: 0 }]])
const context = (patch: Partial<PlanContext> = {}): PlanContext => ({
  oursInScope: 1000,
  begunInLastDay: 0,
  canaries: trusted,
  hash,
  ...patch,
})
const begun = (count: number, patch: Partial<PlanContext> = {}): number => {
  const plan = planRemovals(entries(count), context(patch))
  return plan.kind === 'begin' ? plan.entries.length : 0
}

describe('limits of a sweep (I8, decisions)', () => {
  it.each([
    [0, 1],
    [1, 1],
    [19, 1],
    [20, 1],
    [39, 1],
    [40, 2],
    [199, 9],
    [200, 10],
    [1_000_000, 10],
  ])('of %d groups of ours one sweep may remove %d: 10, 5 %, never less than 1', (ours, allowed) => {
    expect(allowedPerSweep(ours, defaultLimits)).toBe(allowed)
    expect(begun(allowed, { oursInScope: ours })).toBe(allowed)
    expect(begun(allowed + 1, { oursInScope: ours })).toBe(0)
  })

  it('a plan beyond the limits is not begun at all, says why and what to do (case C7)', () => {
    const plan = planRemovals(entries(60), context())
    expect(plan).toMatchObject({ kind: 'wait', limit: 'sweep', allowed: 10 })
    if (plan.kind !== 'wait') return
    expect(plan.entries).toHaveLength(60)
    expect(plan.why).toContain('60')
    expect(plan.whatToDo).toContain(`leasehold approve ${plan.id.slice(0, 15)}`)
    expect(planRemovals(entries(3), context({ oursInScope: 30 }))).toMatchObject({ kind: 'wait', limit: 'share', allowed: 1 })
  })

  it.each([
    [90, 10, 10],
    [91, 10, 0],
    [91, 9, 9],
    [99, 1, 1],
    [100, 1, 0],
    [250, 1, 0],
  ])('with %d begun in the last day, of a plan of %d %d begin', (before, count, expected) => {
    expect(begun(count, { begunInLastDay: before })).toBe(expected)
  })

  it('nothing to remove is no plan', () => {
    expect(planRemovals([], context())).toEqual({ kind: 'empty' })
  })
})

describe('the id of a plan', () => {
  it('is pl_ and a SHA-256, whatever the order', () => {
    const all = entries(5)
    const id = planId(all, hash)
    expect(id).toMatch(/^pl_[0-9a-f]{64}$/)
    fc.assert(fc.property(fc.shuffledSubarray(all, { minLength: 5 }), (shuffled) => planId(shuffled, hash) === id))
  })

  it.each(['target', 'provider', 'kind', 'rule', 'fingerprint'] as const)('changes with the %s of any entry', (field) => {
    expect(planId([entry(1), entry(2, { [field]: 'other' })], hash)).not.toBe(planId(entries(3).slice(1), hash))
  })
})

describe('the canary (decisions)', () => {
  it('goes to what was not tried yet: what was dropped as it stands takes the last place, and none where the places are fewer', () => {
    const [one, two, three] = [{ ...entry(0), dropped: true as const }, entry(1), entry(2)]
    const begun = (canary: Canary): string[] => {
      const plan = planRemovals([one, two, three], context({ canaries: new Map([[canaryKey(one), canary]]) }))
      return plan.kind === 'begin' ? plan.entries.map((entry) => entry.target) : []
    }
    expect(begun(freshCanary)).toEqual([two.target])
    expect(begun({ stage: 1, inFlight: 0 })).toEqual([two.target, three.target, one.target])
    expect(begun({ stage: 1, inFlight: 1 })).toEqual([two.target, three.target])
  })
  const stage = (canary: Canary, count = 8) => {
    const plan = planRemovals(entries(count), context({ canaries: new Map([[canaryKey(entry(0)), canary]]) }))
    return plan.kind === 'begin' ? [plan.entries.length, plan.later.length] : plan.kind
  }

  it('begins with 1, then 3, then the rest', () => {
    let canary = freshCanary
    expect(stage(canary)).toEqual([1, 7])
    canary = canaryAfter(canary, { gone: 1, failed: 0, inFlight: 0 })
    expect(stage(canary)).toEqual([3, 5])
    canary = canaryAfter(canary, { gone: 3, failed: 0, inFlight: 0 })
    expect(stage(canary)).toEqual([8, 0])
    expect(canaryAfter(canary, { gone: 8, failed: 0, inFlight: 0 })).toEqual({ stage: 2, inFlight: 0 })
  })

  it('is back to 1 after a failure', () => {
    for (const before of [0, 1, 2] as const)
      expect(stage(canaryAfter({ stage: before, inFlight: 0 }, { gone: 2, failed: 1, inFlight: 0 }))).toEqual([1, 7])
  })

  it('waits for proof: what is in flight takes its room, and an accepted request proves nothing', () => {
    const waiting = canaryAfter(freshCanary, { gone: 0, failed: 0, inFlight: 1 })
    expect(stage(waiting)).toEqual([0, 8])
    expect(canaryAfter({ stage: 1, inFlight: 3 }, { gone: 2, failed: 0, inFlight: 1 })).toEqual({ stage: 1, inFlight: 1 })
    expect(canaryAfter(freshCanary, { gone: 0, failed: 0, inFlight: 0 })).toEqual(freshCanary)
  })

  it('counts by provider, kind and rule', () => {
    const mixed = [...entries(2), entry(3, { rule: 'orphan.gave-up' }), entry(4, { kind: 'disk' }), entry(5, { provider: 'other' })]
    const plan = planRemovals(mixed, context({ canaries: new Map() }))
    expect(plan).toMatchObject({ kind: 'begin' })
    if (plan.kind === 'begin') expect(plan.entries.map((one) => one.target).toSorted()).toEqual([0, 3, 4, 5].map((i) => entry(i).target))
  })
})

describe('how far a kind of removal is trusted, by what was begun (decisions, limits)', () => {
  const of = (openedAt: number, patch: Partial<Begun> = {}): Begun => ({
    provider: 'simulated',
    kind: 'machine',
    rule: 'orphan.owner-ended',
    stopped: false,
    openedAt,
    gone: true,
    failed: false,
    ...patch,
  })
  const key = canaryKey(of(0))
  const after = (...begun: Begun[]): Canary | undefined => canariesOf(begun).get(key)

  it('one proved gone lets three begin, all three proved gone let the rest', () => {
    expect(after(of(1))).toEqual({ stage: 1, inFlight: 0 })
    expect(after(of(1), of(2), of(2), of(2))).toEqual({ stage: 2, inFlight: 0 })
  })

  it('the first of three that is proved gone does not let the rest begin while the others are under way', () => {
    expect(after(of(1), of(2), of(2, { gone: false }), of(2, { gone: false }))).toEqual({ stage: 1, inFlight: 2 })
  })

  it('a failure begins with one again, also when a later try went well', () => {
    expect(after(of(1), of(2), of(3, { gone: false, failed: true }))).toEqual({ stage: 0, inFlight: 0 })
    expect(after(of(1), of(2), of(3, { gone: true, failed: true }))).toEqual({ stage: 0, inFlight: 0 })
    expect(after(of(1), of(2), of(3, { failed: true }), of(4))).toEqual({ stage: 1, inFlight: 0 })
  })

  it('one that fails for ever holds nothing else of its kind back (orphans R72)', () => {
    const stuck = of(1, { gone: false, failed: true })
    expect(after(stuck)?.inFlight).toBe(0)
    const canaries = canariesOf([stuck])
    expect(planRemovals(entries(1), context({ canaries }))).toMatchObject({ kind: 'begin', entries: [{ target: 'simulated/sim-a/i-0' }] })
  })

  it('the order of the rows decides nothing, and each kind and rule stands for itself', () => {
    const rows = [of(3, { gone: false, failed: true }), of(1), of(2), of(4, { kind: 'disk' })]
    expect(canariesOf(rows)).toEqual(canariesOf(rows.toReversed()))
    expect(canariesOf(rows).get(canaryKey(of(0, { kind: 'disk' })))).toEqual({ stage: 1, inFlight: 0 })
  })

  it('one that waits for somebody holds no other back, and teaches nothing', () => {
    expect(after(of(1, { gone: false, stopped: true }))).toEqual({ stage: 0, inFlight: 0 })
    // The twin: one that is under way does hold the next ones back.
    expect(after(of(1, { gone: false }))).toEqual({ stage: 0, inFlight: 1 })
  })
})
