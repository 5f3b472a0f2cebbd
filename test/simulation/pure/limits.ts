/** I8 over generated days: sweeps of one scope, some with an approval, each with what happened to be eligible. */
import { allowedPerSweep, defaultLimits, planId, type Canary, type PlanContext, type PlanEntry } from '../../../src/model/limits.ts'
import { planWith, type ApprovedPlan } from '../../../src/model/plans.ts'
import { hour, T } from '../../model/sweep/build.ts'
import type { Property } from './tape.ts'

export const limitsTape = 148
export type Decide = (
  eligible: readonly PlanEntry[],
  approved: readonly ApprovedPlan[],
  now: number,
  context: PlanContext,
) => ReturnType<typeof planWith>
export const right: Decide = (eligible, approved, now, context) => planWith(eligible, approved, () => true, now, context)
/** What stood in a plan of another day: the same places, with other things in them. */
const stale = (eligible: readonly PlanEntry[]): PlanEntry[] => eligible.map((entry) => ({ ...entry, fingerprint: 'then' }))
const day = 24 * hour
const hash = (text: string): string => text
const trusted = new Map<string, Canary>([['simulated/machine/r', { stage: 2, inFlight: 0 }]])

export const i8: Property<Decide> = (tape, decide) => {
  const oursInScope = tape.of([1000, 1000, 1000, 100, 1])
  const begun: { at: number; count: number; approved: boolean }[] = []
  let at = T
  let next = 0
  for (let sweep = tape.pick(36); sweep >= 0; sweep--) {
    at += tape.of([0.25, 0.5, 1, 0.25, 0.5, 0.25, 0.5, 13]) * hour
    const eligible = Array.from({ length: tape.pick(13) }, (): PlanEntry => {
      next++
      return { target: `t${String(next).padStart(4, '0')}`, provider: 'simulated', kind: 'machine', rule: 'r', fingerprint: 'f' }
    })
    const approved = tape.chance(5)
    const begunInLastDay = begun.filter((one) => one.at > at - day).reduce((sum, one) => sum + one.count, 0)
    const context: PlanContext = {
      oursInScope,
      begunInLastDay,
      canaries: tape.chance(10) ? new Map() : trusted,
      hash,
    }
    const plans = [{ id: planId(eligible, hash), approvedAt: at, pending: approved ? eligible : stale(eligible) }]
    const { granted, decision } = decide(eligible, plans, at, context)
    const grantedNow = granted.reduce((sum, one) => sum + one.begin.length, 0)
    if (grantedNow !== (approved ? eligible.length : 0))
      throw new Error(`${grantedNow} begun by an approval of ${approved ? 'them' : 'something else'}`)
    const plan = decision.kind === 'begin' ? decision : { entries: [] }
    begun.push({ at, count: grantedNow + plan.entries.length, approved })
    if (approved || decision.kind !== 'begin') continue
    const allowed = allowedPerSweep(oursInScope, defaultLimits)
    if (eligible.length > allowed) throw new Error(`of ${eligible.length} that are more than ${allowed}, ${plan.entries.length} were begun`)
    // In any 24 h that end now: only an approval may have gone past the limit.
    const total = begunInLastDay + plan.entries.length
    if (plan.entries.length > 0 && total > defaultLimits.perDay) throw new Error(`${total} in a day`)
  }
}
