/** What a sweep saw and concluded, sealed with its coverage: the ground on which its removals stand. */
import { cellKey, nothingListed, type Guard, type Inventory } from '../../model/inventory.ts'
import { shortPlanId } from '../../model/limits.ts'
import type { Ended } from '../../model/sweep.ts'
import type { Planned } from './plan.ts'
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

const planOf = (planned: Planned | null): Certificate['plan'] => {
  if (planned === null) return null
  const approved = planned.granted.filter((one) => one.begin.length > 0)
  const { decision } = planned
  const within = decision.kind === 'begin' ? decision.entries : []
  const removals = [...approved.flatMap((one) => one.begin), ...within].map((entry) => entry.target)
  const waiting = decision.kind === 'wait' ? decision.entries.length : decision.kind === 'begin' ? decision.later.length : 0
  const whatToDo = decision.kind === 'wait' ? decision.whatToDo : null
  const why = decision.kind === 'empty' ? null : decision.why
  if (approved.length > 0) {
    const said = `${approved.map((one) => shortPlanId(one.id)).join(', ')}: a person approved it`
    return {
      kind: 'begin',
      id: approved[0]?.id ?? null,
      removals,
      waiting,
      why: why === null ? said : `${said}; of the rest: ${why}`,
      whatToDo,
    }
  }
  if (decision.kind === 'empty') return null
  return { kind: decision.kind, id: decision.id, removals, waiting, why, whatToDo }
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

const listingError = (inventory: Inventory): string | null => {
  const why = nothingListed(inventory)
  return why === null ? null : `nothing could be listed: ${why}`
}

export const certificateOf = (
  inspection: Inspection,
  mode: string,
  reasons: readonly string[],
  plan: Planned | null,
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
        error: listingError(inventory),
      }
    }
  }
}
