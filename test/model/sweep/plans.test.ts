import { describe, expect, it } from 'vitest'
import { planId, type PlanContext, type PlanEntry } from '../../../src/model/limits.ts'
import { approvalMs, planWith, type ApprovedPlan } from '../../../src/model/plans.ts'
import { entries, entry, hash } from './plan-entries.ts'

const now = 1_000_000
const context: PlanContext = { oursInScope: 100, begunInLastDay: 0, canaries: new Map(), hash }
const plan = (pending: readonly PlanEntry[], patch: Partial<ApprovedPlan> = {}): ApprovedPlan => ({
  id: planId(pending, hash),
  approvedAt: now,
  pending,
  ...patch,
})
const decide = (eligible: readonly PlanEntry[], approved: readonly ApprovedPlan[], counts = true, at = now) =>
  planWith(eligible, approved, () => counts, at, context)

describe('an approved plan (I8, case C6)', () => {
  it('begins whole, whatever the limits say, and nothing that is not in it', () => {
    const { granted, decision } = decide(entries(61), [plan(entries(60))])
    expect(granted[0]?.begin).toEqual(entries(60))
    // The one entry more is judged by the limits, which the sixty have used up for a canary of its kind only.
    expect(decision).toMatchObject({ kind: 'begin', entries: [entry(60)] })
    expect(decide(entries(60), []).decision.kind).toBe('wait')
  })

  it('drops what changed, went or is held since', () => {
    const eligible = [entry(0), entry(1, { fingerprint: 'changed' }), entry(2, { rule: 'orphan.gave-up' })]
    const { granted } = decide(eligible, [plan(entries(4))])
    expect(granted[0]).toMatchObject({ begin: [entry(0)], dropped: [entry(1), entry(2), entry(3)], pending: [] })
  })

  it('waits for what no inventory that counts has shown, and then drops or begins it', () => {
    const first = decide([entry(0)], [plan(entries(2))], false)
    expect(first.granted[0]).toMatchObject({ begin: [entry(0)], dropped: [], pending: [entry(1)] })
    const left = plan(first.granted[0]?.pending ?? [])
    expect(decide([entry(1)], [left]).granted[0]).toMatchObject({ begin: [entry(1)], dropped: [] })
    expect(decide([], [left]).granted[0]).toMatchObject({ begin: [], dropped: [entry(1)] })
  })

  it('is none any more after a day', () => {
    const old = plan(entries(2), { approvedAt: now - approvalMs })
    expect(decide(entries(2), [old]).granted[0]).toMatchObject({ begin: [], dropped: entries(2), pending: [] })
    expect(decide(entries(2), [{ ...old, approvedAt: now - approvalMs + 1 }]).granted[0]).toMatchObject({ begin: entries(2) })
  })

  it('begins nothing twice where two approved plans name it', () => {
    const { granted } = decide(entries(3), [plan(entries(2)), plan(entries(3))])
    expect(granted.flatMap((one) => one.begin)).toEqual(entries(3))
  })
})
