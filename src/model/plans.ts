/**
 * Plans that a person approved: exactly what was shown is begun, whatever the limits say; what changed since is dropped from it, and nothing is ever
 * added (I8). What no inventory that counts has shown yet waits for the next one.
 */
import { planRemovals, type LimitPolicy, type PlanContext, type PlanDecision, type PlanEntry } from './limits.ts'

export const planStates = ['waiting', 'approved', 'begun', 'dropped'] as const
export type PlanState = (typeof planStates)[number]

/** An approval that nothing could be done with for so long is none any more. */
export const approvalMs = 86_400_000
/** A plan that nobody approved is forgotten then: so much changes meanwhile that nothing of it would stand. */
export const planMs = 7 * 86_400_000

export interface ApprovedPlan {
  id: string
  approvedAt: number
  /** What of it was neither begun nor dropped yet. */
  pending: readonly PlanEntry[]
}

export interface Granted<E extends PlanEntry = PlanEntry> {
  id: string
  /** Begins now. */
  begin: readonly E[]
  /** Changed, went, or is held since: not taken back by this approval. */
  dropped: readonly PlanEntry[]
  /** Not seen by an inventory that counts. */
  pending: readonly PlanEntry[]
}

const granted = <E extends PlanEntry>(
  plan: ApprovedPlan,
  eligible: ReadonlyMap<string, E>,
  counts: (entry: PlanEntry) => boolean,
  now: number,
): Granted<E> => {
  if (now - plan.approvedAt >= approvalMs) return { id: plan.id, begin: [], dropped: plan.pending, pending: [] }
  const begin: E[] = []
  const dropped: PlanEntry[] = []
  const pending: PlanEntry[] = []
  for (const entry of plan.pending) {
    const same = eligible.get(entry.target)
    if (same !== undefined && same.fingerprint === entry.fingerprint && same.rule === entry.rule) begin.push(same)
    else if (same !== undefined || counts(entry)) dropped.push(entry)
    else pending.push(entry)
  }
  return { id: plan.id, begin, dropped, pending }
}

/**
 * What begins now: of approved plans what still stands, and of the rest what the limits let pass.
 * @param counts did this inventory show where that entry is, wholly
 */
export const planWith = <E extends PlanEntry>(
  eligible: readonly E[],
  approved: readonly ApprovedPlan[],
  counts: (entry: PlanEntry) => boolean,
  now: number,
  context: PlanContext,
  policy?: LimitPolicy,
): { granted: Granted<E>[]; decision: PlanDecision<E> } => {
  const left = new Map(eligible.map((entry) => [entry.target, entry]))
  const all = approved.map((plan) => {
    const one = granted(plan, left, counts, now)
    for (const entry of one.begin) left.delete(entry.target)
    return one
  })
  const begun = all.reduce((sum, one) => sum + one.begin.length, 0)
  const rest = planRemovals([...left.values()], { ...context, begunInLastDay: context.begunInLastDay + begun }, policy)
  return { granted: all, decision: rest }
}
