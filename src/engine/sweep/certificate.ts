/** What a sweep saw and concluded, sealed with its coverage: the ground on which its removals stand. */
import { cellKey, type Guard } from '../../model/inventory.ts'
import type { PlanDecision } from '../../model/limits.ts'
import type { Ended } from '../../model/sweep.ts'
import type { Inspection } from './run.ts'
import type { Watermarks } from './watermarks.ts'

export interface Certificate {
  scope: string | null
  startedAt: number
  endedAt: number
  mode: string
  reasons: readonly string[]
  /** `cleanAt`: up to when the cell was provably seen; of a certificate that an older version wrote it is missing. */
  cells: { location: string; kind: string; state: string; why: string | null; pages: number; resources: number; cleanAt?: number | null }[]
  guard: string
  counts: { listed: number; expected: number; seen: number; groups: number; oursInScope: number }
  verdicts: Record<string, number>
  plan: { kind: string; id: string | null; removals: string[]; waiting: number; why: string | null; whatToDo: string | null } | null
  outcome: string
  why: readonly string[]
  error: string | null
}

const planOf = (plan: PlanDecision | null): Certificate['plan'] => {
  if (plan === null || plan.kind === 'empty') return null
  if (plan.kind === 'wait')
    return { kind: 'wait', id: plan.id, removals: [], waiting: plan.entries.length, why: plan.why, whatToDo: plan.whatToDo }
  const removals = plan.entries.map((entry) => entry.target)
  return { kind: 'begin', id: plan.id, removals, waiting: plan.later.length, why: plan.why, whatToDo: null }
}

const guardText = (guard: Guard): string => {
  switch (guard.kind) {
    case 'passed':
      return 'passed'
    case 'tripped':
      return `tripped: ${guard.why}`
    case 'let-pass':
      return `let pass by ${guard.by}: ${guard.why}`
  }
}

export const certificateOf = (
  inspection: Inspection,
  mode: string,
  reasons: readonly string[],
  plan: PlanDecision | null,
  ended: Ended,
  endedAt: number,
  watermarks: Watermarks,
): Certificate => {
  const base = {
    startedAt: inspection.kind === 'inspected' ? inspection.listing.startedAt : inspection.startedAt,
    endedAt,
    mode,
    reasons,
    outcome: ended.outcome,
    why: ended.why,
  }
  const nothing = {
    scope: null,
    cells: [],
    guard: 'none',
    counts: { listed: 0, expected: 0, seen: 0, groups: 0, oursInScope: 0 },
    verdicts: {},
    plan: null,
  }
  switch (inspection.kind) {
    case 'raised':
      return { ...base, ...nothing, error: inspection.error }
    case 'stranded':
      return { ...base, ...nothing, error: `the account is now ${inspection.reached}` }
    case 'inspected': {
      const { inventory } = inspection
      return {
        ...base,
        scope: inspection.scope,
        cells: inventory.cells.map((cell) => ({
          location: cell.location,
          kind: cell.kind,
          state: cell.state.kind,
          why: cell.state.kind === 'partial' ? cell.state.why : cell.state.kind === 'denied' ? cell.state.permission : null,
          pages: cell.pages,
          resources: cell.resources,
          cleanAt: watermarks.get(cellKey(cell.location, cell.kind)) ?? null,
        })),
        guard: guardText(inventory.guard),
        counts: {
          listed: inventory.resources,
          expected: inspection.expected,
          seen: inspection.seen,
          groups: inspection.judged.length,
          oursInScope: inspection.oursInScope,
        },
        verdicts: inspection.verdicts as Record<string, number>,
        plan: planOf(plan),
        error: null,
      }
    }
  }
}
