/**
 * The tables, as Kysely sees them. One database for all doors. Times are integers in milliseconds since the epoch, booleans are
 * 0 or 1, JSON is text: what both databases store alike. `null` means "does not apply (yet)".
 */
import type { Generated } from 'kysely'
import type { InstanceState, LeaseState, RemovalState, Role } from '../model/wire.ts'
import type { BudgetsTable, CellsTable, CircuitsTable, CleanupsTable, FindingsTable, PlansTable, SweepsTable } from './schema-sweeps.ts'
import type { CompactedTable, FleetsTable } from './schema-fleets.ts'
import type { ControllerKeysTable, ControllerLeasesTable } from './schema-prune.ts'
import type { StopCode } from '../model/stop.ts'
import type { AuditKind } from '../model/wire-audit.ts'
import type { AttemptId, InstallationId, InstanceId, LeaseId, Ref, RemovalId, ScopeId } from '../model/ids.ts'

/** Columns of a table that is also a queue. `due_at` alone carries the fetch; while a row is locked it is the lock's end. */
export interface Due {
  due_at: number | null
  /** Grows by one with every lock and is never set back (I3). */
  lock_fence: Generated<number>
  lock_owner: string | null
  lock_until: number | null
}

export interface InstallationTable {
  id: 1
  installation_id: InstallationId
  /** From which lease tokens are derived; never leaves the database. */
  secret: string
  created_at: number
  /** Counted up at each start and adoption; written into the keyed tag of what is made. */
  epoch: Generated<number>
  /** JSON of a `Place`: where it lived when a start, or a person, last found it right; null: none has looked yet. */
  place: Generated<string | null>
  /** Counted up while it runs; what stands beside an SQLite file is never newer than the file. */
  mark: Generated<number>
  adopted_at: Generated<number | null>
  /** JSON list: ids that it had before it was forked. */
  former: Generated<string>
  /** ms: what was made before belongs to a former one; 0: it was never forked. */
  held_since: Generated<number>
}
/** Keys of the keyed tag; retired ones still verify. No secret ever leaves the database. */
export interface KeysTable {
  id: string
  secret: string
  created_at: number
  retired_at: number | null
}
/** Why no removal begins, in one scope or in all (`*`), until a person says which database is the true one. */
export interface StopsTable {
  scope: string
  code: StopCode
  why: string
  /** JSON. */
  evidence: string
  /** The newest epoch that was seen on what is there; null: none. */
  epoch: number | null
  since_at: number
}
/** The clock that every statement works by (I4). */
export interface ClockTable {
  id: 1
  /** The newest time that this database ever answered on SQLite. */
  newest: number
  /** Written by tests only. */
  offset_ms: number
  frozen_ms: number | null
}
export interface ReplicasTable {
  id: string
  host: string
  machine_id: string
  boot_id: string
  pid_namespace: string
  pid: number
  pid_start: string
  version: string
  started_at: number
  alive_at: number
  /** This process's wall clock minus the database's clock, at its last word. */
  skew_ms: number
  stopped_at: number | null
}
export interface ProjectsTable {
  name: string
  created_at: number
  deleted_at: number | null
}
export interface TokensTable {
  id: string
  name: string
  role: Role
  project: string | null
  hash: string
  created_at: number
  expires_at: number | null
  revoked_at: number | null
}
export interface BackendsTable {
  project: string
  name: string
  provider: string
  config: string
  scope: ScopeId | null
  is_default: number
  created_at: number
  /** Deleted: it drains, and takes no new work (orphans R34, U7). */
  deleted_at: number | null
}
export interface ScopesTable {
  name: ScopeId
  provider: string
  description: string
  first_seen_at: number
}
export interface InstancesTable extends Due {
  id: InstanceId
  project: string
  backend: string
  provider: string
  scope: ScopeId | null
  location: string
  name: string
  ref: Ref
  state: InstanceState
  lease_id: LeaseId | null
  /** The bound attempt. */
  attempt_id: AttemptId | null
  created_at: number
  changed_at: number
  terminated_at: number | null
  gave_up_at: number | null
  /** It waits for its account's rate while it is due at this very moment. */
  waits_until: Generated<number | null>
  /** The fleet of its project that it is of; null: it was made for one lease alone. */
  fleet: Generated<string | null>
  /** ms, when it ends by itself, as its dead-man clock was armed last; null: not known. */
  dead_at: Generated<number | null>
  /** ms, when it was last seen alive while nobody had it. */
  checked_at: Generated<number | null>
  /** Its holder gave it back, and what is left of that one is being wiped: nobody may have it. */
  wiping_since: Generated<number | null>
  /** How many leases it has had. */
  served: Generated<number>
}
export interface LeasesTable extends Due {
  id: LeaseId
  slug: string
  project: string
  owner: string
  provider: string
  backend: string
  instance_id: InstanceId
  state: LeaseState
  keep: number
  ttl_seconds: number
  idle_seconds: number
  labels: string
  created_at: number
  updated_at: number
  last_touched_at: number
  expires_at: number
  /** The client's `createAttemptID`, or null. */
  request_key: string | null
  /** 1: the client chose the id by PUT, so that its create can be replayed (leases R11). */
  fixed_id: number
  request_hash: string
  cancelled_at: number | null
  released_at: number | null
  ended_at: number | null
  /** What a release decided: 1 the box goes, 0 it is retained; null before a release. */
  release_deletes: number | null
  retained_at: number | null
  retain_until: number | null
  failure_code: string | null
  failure_error: string | null
  may_exist: number
  access_warning: string | null
  /** The end of which its holder was warned that it comes near (case G9); null: of none. */
  idle_warned_for: Generated<number | null>
  /** The fleet that it was asked of. */
  fleet: Generated<string | null>
  /** Its box went back to its fleet, wiped and proved so. */
  returned_at: Generated<number | null>
}
/** What a `createAttemptID` stands for; `canceled` is the tombstone that wins over a late arrival (leases R10). */
export interface CreateRequestsTable {
  project: string
  request_key: string
  lease_id: string
  state: 'created' | 'canceled'
  request_hash: string | null
  created_at: number
}
/** Every ref ever issued; no row is ever deleted (I2, orphans R14). */
export interface LedgerTable {
  ref: Ref
  project: string
  owner_kind: 'instance'
  owner_id: string
  owner_name: string
  /** JSON: ids of what the owner belongs to (lease, fleet). */
  parents: string
  issued_at: number
  owner_closed_at: number | null
}
export interface AttemptsTable {
  id: AttemptId
  ref: Ref
  instance_id: InstanceId
  number: number
  token: string
  project: string
  backend: string
  scope: ScopeId
  location: string
  outcome: 'open' | 'bound' | 'absent' | 'abandoned'
  opened_at: number
  /** Written before the provider is called: after a crash it tells "may exist" from "was never asked for". */
  called_at: number | null
  /** The replica that called: once it is known to be dead, its call can't surface any more on this machine. */
  called_by: string | null
  deadline_at: number
  ended_at: number | null
  kind: string | null
  native_id: string | null
  immutable_id: string | null
  facts: string | null
  error: string | null
  /** The key of its keyed tag; null: none was written. */
  mac_key: Generated<string | null>
  /** Looks that found nothing, in a row, and the first of them. */
  absent_since: number | null
  absent_count: Generated<number>
}
export interface RemovalsTable extends Due {
  id: RemovalId
  version: number
  /** The attempt whose resource is taken back; it holds the recorded identity. */
  attempt_id: AttemptId
  instance_id: InstanceId
  lease_id: LeaseId | null
  project: string
  backend: string
  provider: string
  ref: Ref
  name: string
  scope: ScopeId
  location: string
  /** Why it was ordered: `released`, `expired`, `create-failed`, `create-cancelled`, … */
  cause: string
  state: RemovalState
  /** JSON list of ResourceIdentity, bound before the first deletion; null while preparing. */
  identity: string | null
  /** JSON list of immutable ids whose removal is proved, in order. */
  progress: string
  opened_at: number
  started_at: number | null
  accepted_at: number | null
  gone_at: number | null
  /** Failures in a row. */
  failures: number
  /** The first of all its failures; stays when a later try goes well. */
  first_failed_at: number | null
  error: string | null
  failed_at: number | null
  retry_at: number | null
  held_by: string | null
  /** Polls for proof since the request was accepted. */
  polls: number
  /** JSON of `RemovalEvidence`, written when it is opened; null: a version without it opened it. */
  evidence: string | null
  /** JSON list of ResourceIdentity: what the sweep that ordered it judged, before anything is bound; null: none did. */
  planned: string | null
  /** JSON of `Baseline`, written with the identity where a group has several members. */
  baseline: string | null
  /** JSON of `Stopped`: why it waits for a person; null: it does not, or its error alone says why. */
  stopped: string | null
  /** JSON list of `Acknowledged`: absences that a person answers for. */
  acknowledged: Generated<string>
  /** Quick tries in a row of the member whose turn it is (leases R87). */
  tries: Generated<number>
  /** When a sweep first began it; null: none did. */
  begun_at: number | null
  /** When it was last gone on with after it had been dropped or given up: its ground is of then, and a day's limit counts it then; null: never. */
  continued_at: number | null
  /** A person said that nothing more is to be done about it. */
  closed_at: number | null
  closed_by: string | null
  closed_reason: string | null
  /** It waits for its account's rate while it is due at this very moment. */
  waits_until: Generated<number | null>
}
export interface HoldsTable {
  id: string
  target_type: 'resource' | 'instance' | 'lease' | 'project' | 'scope'
  target_id: string
  project: string | null
  reason: string
  created_by: string
  created_at: number
  until_at: number | null
  removed_at: number | null
  removed_by: string | null
}
export interface FreezesTable {
  scope: string
  reason: string
  created_by: string
  created_at: number
}
/** The feed. `seq` is given by the publisher after the commit, so that a reader never misses a late one. */
export interface EventsTable {
  id: string
  seq: number | null
  at: number
  code: string
  level: 'info' | 'warning' | 'error'
  project: string | null
  actor: string
  message: string
  payload: string
}
export interface EventTargetsTable {
  event_id: string
  type: string
  id: string
  name: string
}
/**
 * Intents and outcomes of destructive calls, proofs of absence, and what operators did; append-only, kept for ever (I7). An outcome names its intent.
 */
export interface AuditTable {
  id: string
  at: number
  kind: AuditKind
  intent_id: string | null
  removal_id: RemovalId | null
  project: string | null
  scope: ScopeId | null
  ref: Ref | null
  actor: string
  body: string
  /** Given by the sealer. */
  seq: number | null
  hash: string | null
}
/** How far the audit is chained. One row, `audit`; whoever moves it on must know its fence. */
export interface ChainTable {
  id: 'audit'
  seq: number
  hash: string
  sealed_at: number | null
  lock_fence: Generated<number>
  /** The replica that seals; another one takes over when `lock_until` has passed. */
  lock_owner: string | null
  lock_until: number | null
}

export interface Schema {
  installation: InstallationTable
  keys: KeysTable
  stops: StopsTable
  clock: ClockTable
  replicas: ReplicasTable
  projects: ProjectsTable
  tokens: TokensTable
  backends: BackendsTable
  scopes: ScopesTable
  controller_keys: ControllerKeysTable
  controller_leases: ControllerLeasesTable
  fleets: FleetsTable
  instances: InstancesTable
  leases: LeasesTable
  create_requests: CreateRequestsTable
  compacted: CompactedTable
  ledger: LedgerTable
  attempts: AttemptsTable
  cleanups: CleanupsTable
  cells: CellsTable
  circuits: CircuitsTable
  budgets: BudgetsTable
  sweeps: SweepsTable
  plans: PlansTable
  findings: FindingsTable
  removals: RemovalsTable
  holds: HoldsTable
  freezes: FreezesTable
  events: EventsTable
  event_targets: EventTargetsTable
  audit: AuditTable
  chain: ChainTable
}
