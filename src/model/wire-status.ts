/** What the coordinator says of itself. */
import type { StopView } from './wire-installation.ts'
import type { FreezeView, RemovalState } from './wire.ts'

export interface CircuitView {
  provider: string
  scope: string
  /** Listings that failed in a row. */
  failures: number
  failedAt: string
  /** null: it is closed. */
  openUntil: string | null
  error: string
}
/** How many calls an account gets now; only what something limits. */
export interface BudgetView {
  provider: string
  scope: string
  /** `all`: the account as a whole, by a setting. */
  operation: 'all' | 'create' | 'read' | 'delete'
  /** null: nothing but `blockedUntil` limits it. */
  callsPerSecond: number | null
  /** Calls saved up; below 0: made on credit. */
  left: number
  /** No call before. */
  blockedUntil: string | null
  throttledAt: string | null
  /** Throttled answers since its rate was last free. */
  throttles: number
}
/** How the sweeps of a provider run here (orphans R75a). */
export interface SweepModeView {
  provider: string
  mode: 'report' | 'delete' | 'off'
  /** `default`, or the variable that says so. */
  origin: string
  intervalSeconds: number
  graceSeconds: number
  /** false: it can not be swept at all. */
  canList: boolean
  /** How many backends it has; draining ones are not counted. */
  backends: number
}
/** A removal that fails or was given up. */
export interface TroubleView {
  removalID: string
  name: string
  project: string
  backend: string
  leaseID: string | null
  state: RemovalState
  /** In a row. */
  failures: number
  error: string | null
  /** null: nothing tries it by itself. */
  retryAt: string | null
}
/** A process that works on this database. */
export interface ReplicaView {
  id: string
  host: string
  pid: number
  version: string
  startedAt: string
  /** Its last word. */
  aliveAt: string
  /** Its wall clock minus the database's clock, at its last word. */
  clockSkewMs: number
  self: boolean
  locks: number
  /** Of the pipelines that it holds rows of. */
  locksOf: { pipeline: 'provision' | 'expire' | 'remove' | 'sweep'; count: number; oldestRenewedAt: string }[]
}
export interface StatusView {
  version: string
  installation: string
  database: 'sqlite' | 'postgresql'
  now: string
  /** Wall clock minus the clock that the coordinator works by. */
  clockSkewMs: number
  expiryPaused: string | null
  freezes: FreezeView[]
  /** Where no removal begins because this database may be a copy. */
  stops: StopView[]
  /** Accounts whose listings fail: from the third failure in a row on they are left alone for a while. */
  circuits: CircuitView[]
  /** Accounts whose rate a setting or their provider limits. */
  budgets: BudgetView[]
  /** How many creates, removals and sweeps wait for them. */
  waiting: { creates: number; removals: number; sweeps: number }
  sweeps: SweepModeView[]
  /** Removals that fail or were given up, newest failure first, 20 at most. */
  troubles: TroubleView[]
  /** Open ones. */
  findingsByCode: Record<string, number>
  /** Which of these codes only a person makes better. */
  forPerson: string[]
  replicas: ReplicaView[]
  counts: { leases: Record<string, number>; instances: Record<string, number>; removals: Record<string, number>; findings: number }
}
