/**
 * decisions 2: a box that vanished. A bound ref is called missing only when two complete inventories, `visibilitySeconds` apart, did not show it and an
 * exact read did not find it. Whatever is partial, denied, implausible or lagging does nothing (I5, case J5).
 */
import { isActive, type Fact, type InstanceEvidence } from './evidence.ts'
import type { CompleteCell } from './inventory.ts'
import type { Verdict } from './verdict-case.ts'

export interface BoundResource {
  instance: InstanceEvidence
  kind: string
  location: string
  nativeId: string
  immutableId: string
  /** ms; when the attempt was bound, or later. */
  boundAt: number
}

/** Complete inventories in a row that did not show it. */
export interface Absence {
  firstAt: number
  lastAt: number
  count: number
}

export interface AbsencePolicy {
  visibilityMs: number
  marginMs: number
}

/** What an exact read by the recorded identity answered; null: none was made since the last listing. */
export type ExactRead = 'present' | 'absent' | 'replaced' | 'unknown' | null

/**
 * One more inventory. Seen ends the absence, from whatever cell; not seen counts only by a complete cell of that location and kind, and only when the
 * resource had long been visible before the listing began.
 * @param cell null: that cell proves no absence
 */
export const advanceAbsence = (
  before: Absence | null,
  bound: BoundResource,
  seen: boolean,
  cell: CompleteCell | null,
  policy: AbsencePolicy,
): Absence | null => {
  if (seen) return null
  if (cell === null || cell.location !== bound.location || cell.kind !== bound.kind) return before
  if (cell.startedAt <= bound.boundAt + Math.max(policy.visibilityMs, policy.marginMs)) return before
  if (before === null) return { firstAt: cell.startedAt, lastAt: cell.startedAt, count: 1 }
  if (cell.startedAt <= before.lastAt) return before
  return { firstAt: before.firstAt, lastAt: cell.startedAt, count: before.count + 1 }
}

export type MissingDecision =
  | { kind: 'nothing'; why: string }
  /** Both inventories are there: ask the provider for exactly this resource. */
  | { kind: 'read' }
  | { kind: 'missing'; verdict: Verdict & { kind: 'missing' } }

export const missing = (bound: BoundResource, absence: Absence | null, read: ExactRead, policy: AbsencePolicy): MissingDecision => {
  if (!isActive(bound.instance)) return { kind: 'nothing', why: `its instance is ${bound.instance.state}` }
  if (absence === null) return { kind: 'nothing', why: 'it was seen, or no complete inventory has missed it yet' }
  if (absence.count < 2 || absence.lastAt - absence.firstAt < policy.visibilityMs)
    return { kind: 'nothing', why: 'two complete inventories far enough apart must have missed it' }
  switch (read) {
    case null:
      return { kind: 'read' }
    case 'present':
      return { kind: 'nothing', why: 'an exact read found it: the listing lags' }
    case 'unknown':
      return { kind: 'nothing', why: 'the exact read had no answer' }
    case 'replaced':
      return { kind: 'nothing', why: 'something else bears its name: a person decides' }
    case 'absent': {
      const facts: Fact[] = [
        {
          fact: `instance ${bound.instance.id} is ${bound.instance.state}, bound to ${bound.kind} ${bound.nativeId} (${bound.immutableId})`,
          source: 'instance',
          at: bound.boundAt,
        },
        { fact: `a complete inventory of ${bound.kind} in ${bound.location} did not show it`, source: 'listing', at: absence.firstAt },
        { fact: 'another one did not either', source: 'listing', at: absence.lastAt },
        { fact: 'an exact read by its recorded identity did not find it', source: 'listing', at: absence.lastAt },
      ]
      return { kind: 'missing', verdict: { kind: 'missing', reason: 'missing.proved', facts, until: null } }
    }
  }
}
