/** What the HTTP API answers of sweeps, plans and explanations; see `wire.ts`. */
import type { PlanState } from './plans.ts'

export interface SweepCellView {
  location: string
  kind: string
  state: 'complete' | 'partial' | 'denied'
  /** Why it is partial, or which permission is missing. */
  why: string | null
  pages: number
  resources: number
  /** Up to when it was provably seen; null: it never was. A denied cell keeps what it had. */
  cleanAt: string | null
}
export interface SweepPlanView {
  /** begin: within the limits; wait: beyond them, nothing is begun. */
  kind: 'begin' | 'wait'
  id: string | null
  /** What it takes back, as `provider/location/native-id`. */
  removals: string[]
  /** How many more wait. */
  waiting: number
  why: string | null
  whatToDo: string | null
}
/** One group that a plan would take back, with what proves that it may. */
export interface PlannedRemoval {
  /** `provider/location/native-id` of the group's leader. */
  target: string
  provider: string
  kind: string
  rule: string
  fingerprint: string
  name: string
  ref: string
  findingID: string | null
  firstSeenAt: string
  lastSeenAt: string
  timesSeen: number
  proof: string[]
}
export interface PlanView {
  /** `pl_` and the SHA-256 of what it takes back. */
  id: string
  project: string
  backend: string
  provider: string
  scope: string
  state: PlanState
  /** Which limit it is beyond; null: a person asked for it. */
  why: string | null
  removals: PlannedRemoval[]
  /** Targets that were neither begun nor dropped yet. */
  pending: string[]
  /** Targets that changed, or were held, before they could begin. */
  dropped: string[]
  /** Those of them that a hold stopped, and which. */
  held: { target: string; by: string }[]
  /** Of one just approved: what stops its removals for now. */
  warning?: string
  /** Groups of ours in the account when it was made. */
  oursInScope: number
  madeBy: string
  madeAt: string
  seenAt: string
  approvedBy: string | null
  approvedAt: string | null
  approvalReason: string | null
  settledAt: string | null
}
export interface HeldBackView {
  what: string
  /** null: not by time alone. */
  until: string | null
}
export interface SweepOrphanView {
  /** `provider/location/native-id` of the group's leader. */
  target: string
  name: string
  reason: string
  findingID: string | null
  /** Its removal, once one is open. */
  removalID: string | null
  eligibleAt: string | null
  heldBack: HeldBackView[]
}
/** One sweep of one backend, with its certificate. */
export interface SweepView {
  /** null: none has ended yet, or it is a dry run, of which nothing is kept. */
  id: string | null
  project: string
  backend: string
  /** null: the backend is gone. */
  provider: string | null
  scope: string | null
  mode: 'report' | 'delete' | 'off'
  /** pending: asked for, and not ended yet. */
  state: 'ended' | 'pending' | 'dry-run'
  /** Why it listed. */
  reasons: string[]
  startedAt: string | null
  endedAt: string | null
  outcome: 'clean' | 'unsettled' | 'failed' | null
  /** Why it is not clean. */
  why: string[]
  error: string | null
  /** `passed`, or why the counts are implausible. */
  guard: string | null
  /** The coverage matrix: absence is concluded from complete cells only. */
  cells: SweepCellView[]
  counts: { listed: number; expected: number; seen: number; groups: number; oursInScope: number }
  /** How many groups were judged so, by reason code; what is plainly tracked is not among them. */
  verdicts: Record<string, number>
  /** null: nothing was to be taken back, or the mode only reports. */
  plan: SweepPlanView | null
  /** The open orphans and what holds each back; null where an earlier sweep is read. */
  orphans: SweepOrphanView[] | null
}
export interface ExplanationNodeView {
  fact: string
  /** Who says so. */
  source: string
  /** Since when, or when that was known; null: it has no time of its own. */
  at: string | null
  children: ExplanationNodeView[]
}
export interface ExplanationView {
  key: string
  /** What the key turned out to name. */
  type: string
  subject: string
  project: string | null
  verdict: string
  /** The reason code of a sweep's verdict. */
  reason: string | null
  /** When this was put together, by the database's clock. */
  at: string
  tree: ExplanationNodeView
  heldBack: HeldBackView[]
  /** What would change this verdict. */
  change: string
}
