/** The tables of sweeps; see `schema.ts`. */
import type { Generated } from 'kysely'
import type { BucketName } from '../model/budget.ts'
import type { AttemptId, Ref, ScopeId } from '../model/ids.ts'
import type { PlanState } from '../model/plans.ts'
import type { Due } from './schema.ts'

/** Schedules the sweeps of one backend. */
export interface CleanupsTable extends Due {
  /** `project/backend`. */
  id: string
  project: string
  backend: string
  enrolled_at: number
  /** Up to when everything was provably seen; never set back (orphans R81). */
  clean_at: number | null
  clean_mode: string | null
  /** Failed sweeps in a row. */
  failures: Generated<number>
  /** When the newest listing began. */
  listed_at: number | null
  outcome: string | null
  /** When a person asked for a sweep. */
  requested_at: number | null
  /** JSON of a `LetPass`: the implausible counts that a person lets pass, once. */
  let_pass: string | null
  /** It waits for its account's rate while it is due at this very moment. */
  waits_until: Generated<number | null>
}
/** What the listings of one backend proved of one location and kind. */
export interface CellsTable {
  project: string
  backend: string
  scope: ScopeId
  location: string
  kind: string
  state: 'complete' | 'partial' | 'denied'
  /** Why it is partial, or the permission that is missing. */
  why: string | null
  /** When the newest listing began. */
  listed_at: number
  /** Up to when it was provably seen; a denied cell keeps what it had (orphans R102). */
  clean_at: number | null
  /** Resources whose tags could be read at the last complete and plausible listing; null: there was none. */
  readable: number | null
  /** JSON list of the immutable ids whose tags could not be read then. */
  unreadable: Generated<string>
}
/** The circuit of one account: listings that failed in a row, whichever backend they were for (leases R60). */
export interface CircuitsTable {
  provider: string
  scope: ScopeId
  failures: number
  /** When the newest failure that counts was noted. */
  failed_at: number
  /** Null: closed. */
  open_until: number | null
  error: string
}
/** How many calls an account gets, of one class of operations or in all. Calls are in thousandths, rates in thousandths a second. */
export interface BudgetsTable {
  provider: string
  scope: ScopeId
  class: BucketName
  /** Null: nothing limits it. */
  rate: number | null
  tokens: number
  at: number
  blocked_until: number | null
  throttled_at: number | null
  throttles: number
  peak: number | null
}
/** What a sweep, or a person, would take back; it begins when somebody approves it by its id. */
export interface PlansTable {
  /** `pl_` and the SHA-256 of its entries. */
  id: string
  project: string
  backend: string
  provider: string
  scope: ScopeId
  /** JSON. */
  entries: string
  /** JSON: targets neither begun nor dropped yet. */
  pending: string
  /** JSON: targets that changed before they could begin. */
  dropped: string
  /** Groups of ours in the scope when it was made. */
  ours: number
  /** Which limit it is beyond; null: none, a person asked for it. */
  why: string | null
  state: PlanState
  made_by: string
  made_at: number
  /** When a sweep last came to the same. */
  seen_at: number
  approved_by: string | null
  approved_at: number | null
  approval_reason: string | null
  settled_at: number | null
}
/** One run of a cleanup with its certificate. */
export interface SweepsTable {
  id: string
  project: string
  backend: string
  scope: ScopeId | null
  mode: string
  started_at: number
  finished_at: number | null
  outcome: string | null
  certificate: string | null
}
export interface FindingsTable {
  id: string
  code: string
  state: 'open' | 'resolved'
  project: string | null
  scope: ScopeId | null
  target_type: string
  target_id: string
  target_name: string
  message: string
  evidence: string
  fingerprint: string
  first_seen_at: number
  last_seen_at: number
  times_seen: number
  reported_at: number | null
  resolved_at: number | null
  // Of findings that sweeps make:
  backend: string | null
  ref: Ref | null
  attempt_id: AttemptId | null
  /** Since when the fingerprint stands unchanged: the quarantine counts from here. */
  standing_since: number | null
  /** Complete inventories in which it stood unchanged, and the last of them. */
  complete_sightings: Generated<number>
  last_complete_at: number | null
  sweep_id: string | null
}
