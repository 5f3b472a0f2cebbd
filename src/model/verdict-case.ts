/** What a verdict is, and what each step towards one looks at; see `verdict.ts`. */
import type { Fact, FactSource, LedgerEvidence, RefEvidence, SweepClock, SweepPolicy } from './evidence.ts'
import type { Group } from './group.ts'
import type { Inventory } from './inventory.ts'
import type { Proof } from './ownership.ts'
import type { ReasonOf, VerdictKind } from './verdict-reasons.ts'

interface VerdictOf<K extends VerdictKind> {
  kind: K
  reason: ReasonOf<K>
  facts: readonly Fact[]
  /** ms: when it may change by itself at the earliest; null: not by time alone. */
  until: number | null
}
export type OrphanVerdict = VerdictOf<'orphan'> & { proofs: readonly Proof[] }
export type Verdict = { [K in Exclude<VerdictKind, 'orphan'>]: VerdictOf<K> }[Exclude<VerdictKind, 'orphan'>] | OrphanVerdict

export type Other = Exclude<Verdict['reason'], ReasonOf<'orphan'>>
export const conclude = (reason: Other, facts: readonly Fact[], until: number | null = null): Verdict =>
  ({ kind: reason.slice(0, reason.indexOf('.')), reason, facts, until }) as Verdict

export const fact = (source: FactSource, at: number | null, text: string): Fact => ({ fact: text, source, at })

/** Everything a step of the judgement looks at. */
export interface Case {
  group: Group
  evidence: RefEvidence
  ledger: LedgerEvidence
  inventory: Inventory
  clock: SweepClock
  policy: SweepPolicy
  listed: Fact
}
