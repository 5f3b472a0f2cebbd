/**
 * What the HTTP API answers and `--json` prints. Times are ISO 8601 UTC with milliseconds; absent, null and empty differ:
 * a field that does not apply yet is null, never left out, unless marked optional.
 */

export type * from './wire-fleets.ts'
export type * from './wire-installation.ts'
export type * from './wire-status.ts'
export type * from './wire-sweeps.ts'

/** `provisioning` is live (leases R4); the last three are terminal (I9). */
export type LeaseState = 'provisioning' | 'active' | 'released' | 'expired' | 'failed'
export const leaseStates: readonly LeaseState[] = ['provisioning', 'active', 'released', 'expired', 'failed']
export type InstanceState = 'pending' | 'provisioning' | 'idle' | 'busy' | 'terminating' | 'terminated'
/**
 * `preparing`: reserved, identity not bound yet; `gone`: absence verified; `gave-up`: no longer tried, and not gone (orphans R91); `closed`: a person said that
 * nothing more is to be done, and proved nothing.
 */
export const removalStates = ['preparing', 'removing', 'verifying', 'gone', 'gave-up', 'closed'] as const
export type RemovalState = (typeof removalStates)[number]

export interface CleanupView {
  /** none: nothing ordered; failed: the last try failed and `retryAt` is set; held: a hold or a freeze stops it; gave-up: it is no longer tried; closed: a person ended it; wiping: its box is to go back to its fleet; returned: it did, and nothing of its holder is left in it. */
  state: 'none' | RemovalState | 'failed' | 'held' | 'wiping' | 'returned'
  removalID: string | null
  reason: string | null
  attempts: number
  error: string | null
  failedAt: string | null
  retryAt: string | null
  startedAt: string | null
  claimExpiresAt: string | null
  goneAt: string | null
  /** From the third failure in a row on (leases R47). */
  stuck: boolean
  heldBy: string | null
  /** Who ended it without proof: a person, or `system` where another removal goes on; null: it was not closed. */
  closedBy: string | null
  /** Of one that was closed, by name what nobody has proved gone; empty: nobody knows what. Null: nothing of it is left, or it is not closed. */
  mayBeLeft: string[] | null
  /** The installation that a fork of this database left it to: nothing of it is to be ended on the word of this one. Null: it is this one's. */
  leftTo: string | null
}

export interface LeaseView {
  id: string
  slug: string
  state: LeaseState
  project: string
  owner: string
  provider: string
  backend: string
  scope: string | null
  location: string | null
  instanceID: string
  ref: string
  /** The provider's own id of the resource; null until an attempt is bound. */
  cloudID: string | null
  cloudImmutableID: string | null
  createdAt: string
  updatedAt: string
  lastTouchedAt: string
  expiresAt: string
  ttlSeconds: number
  idleTimeoutSeconds: number
  keep: boolean
  labels: Record<string, string>
  createAttemptID: string | null
  releasedAt: string | null
  endedAt: string | null
  retainedAt: string | null
  retainUntil: string | null
  releaseDeletesServer: boolean | null
  failureCode: string | null
  failureError: string | null
  provisioningResourceMayExist: boolean
  accessWarning: string | null
  /** The fleet that it was asked of. */
  fleet: string | null
  cleanup: CleanupView
  /** Its making, or its removal, waits for the account's rate budget until then; there only while it does. */
  waitsUntil?: string
  /** Which of the filters that were asked can not be answered for it; there only in a list that was filtered, while it says something. */
  unknown?: string[]
  // The flat names of leases 2.1, read from the same removal row; present only while they say something (leases R41).
  cleanupAttempts?: number
  cleanupError?: string
  cleanupFailedAt?: string
  cleanupRetryAt?: string
  cleanupStartedAt?: string
  cleanupClaimExpiresAt?: string
}

export interface AccessAnswer {
  access: Access
  /** Of a fleet's box, which was made before its lease: what a command is to find set besides. */
  holder?: { leaseID: string; leaseToken: string }
}

export interface LeaseAnswer {
  lease: LeaseView
  /** Only in the answer to a create (and its replay), and in the way into a fleet's box: may beat and release this lease, nothing else. */
  leaseToken?: string
  /** Caps that were applied and the like; absent when there is nothing to say. */
  warnings?: string[]
}

export interface ErrorAnswer {
  error: string
  message: string
  [detail: string]: unknown
}

export interface InstanceView {
  id: string
  ref: string
  name: string
  state: InstanceState
  project: string
  backend: string
  provider: string
  scope: string | null
  location: string | null
  leaseID: string | null
  /** The fleet that it is of; null: it was made for one lease alone. */
  fleet: string | null
  cloudID: string | null
  cloudImmutableID: string | null
  createdAt: string
  changedAt: string
  terminatedAt: string | null
  /** When taking it back was given up; it stays `terminating` until its absence is proved (orphans R91). */
  gaveUpAt: string | null
  /** Why the newest removal of it has not succeeded; null: there is none, or nothing failed. */
  removalError: string | null
  attempts: AttemptView[]
  /** As on a lease. */
  unknown?: string[]
}

export interface AttemptView {
  id: string
  number: number
  outcome: 'open' | 'bound' | 'absent' | 'abandoned'
  openedAt: string
  endedAt: string | null
  deadlineAt: string
  error: string | null
}

export interface EventTarget {
  type: string
  id: string
  name: string
}
export interface EventView {
  id: string
  /** Position in the feed: `GET /v1/events?after=<seq>` goes on from here. */
  seq: number
  at: string
  code: string
  level: 'info' | 'warning' | 'error'
  project: string | null
  actor: string
  message: string
  targets: EventTarget[]
  payload: Record<string, unknown>
}

export type Role = 'user' | 'operator' | 'approver' | 'admin'
export const roles: readonly Role[] = ['user', 'operator', 'approver', 'admin']

export interface TokenView {
  id: string
  name: string
  role: Role
  /** null: every project. */
  project: string | null
  createdAt: string
  expiresAt: string | null
  revokedAt: string | null
}
export interface ProjectView {
  name: string
  createdAt: string
  deletedAt: string | null
  defaultBackend: string | null
}
export interface BackendView {
  name: string
  project: string
  provider: string
  scope: string | null
  isDefault: boolean
  /** Secrets are never shown: their values are `"***"`. */
  config: Record<string, unknown>
  createdAt: string
  /** Set when the backend was deleted and is being drained. */
  deletedAt: string | null
}
export interface HoldView {
  id: string
  targetType: 'resource' | 'instance' | 'lease' | 'project' | 'scope'
  targetID: string
  project: string | null
  reason: string
  createdBy: string
  createdAt: string
  /** null: until removed. */
  until: string | null
  removedAt: string | null
  /** Only in the answer to adding one on what nobody has seen yet. */
  warning?: string
}
export interface FreezeView {
  /** `*` stops every scope. */
  scope: string
  reason: string
  createdBy: string
  createdAt: string
}
/** How far an orphan is from the time at which it may be taken back. */
export interface QuarantineView {
  /** Since when the same fingerprint stands. */
  since: string
  /** Complete inventories that showed it unchanged, and when the last of them began. */
  timesSeen: number
  lastSeenAt: string
  /** From then on a complete inventory may end the quarantine. */
  eligibleAt: string
}
export interface FindingView {
  id: string
  code: string
  state: 'open' | 'resolved'
  project: string | null
  backend: string | null
  ref: string | null
  /** The reason code of the verdict that a sweep found it by. */
  reason: string | null
  quarantine: QuarantineView | null
  target: EventTarget
  message: string
  evidence: Record<string, unknown>
  firstSeenAt: string
  lastSeenAt: string
  timesSeen: number
  resolvedAt: string | null
  /** As on a lease. */
  unknown?: string[]
}
export interface AuditRow {
  leaseID: string
  slug: string
  state: LeaseState
  project: string
  owner: string
  provider: string
  cloudID: string | null
  expiresAt: string
  retainUntil: string | null
  /** Why this lease is in the list: `cleanup-error`, `cleanup-open`, `gave-up`, `may-exist`, `retained-overdue`, `removal-closed`, `state`. */
  debt: string[]
  cleanupAttempts: number
  cleanupError: string | null
  cleanupRetryAt: string | null
  cloudStatus: 'found' | 'missing' | 'error'
  cloudState: string | null
  message: string | null
}
/** How the CLI reaches into a box by itself; no byte of a command passes through the coordinator. */
export type Access =
  | {
      kind: 'namespace'
      /** The box's folder. */
      folder: string
      /** Enter by this process's PID namespace after comparing the inode: a pid alone is no identity. */
      pid: number
      pidNamespaceInode: string
      userNamespace: boolean
      machineID: string
      bootID: string
    }
  | { kind: 'session'; folder: string; machineID: string; bootID: string }
  | {
      kind: 'docker'
      /** The Engine's address. */
      host: string
      /** For `tcp://`: paths of PEM files. */
      tls?: { ca: string; cert: string; key: string }
      /** The id of the container. */
      container: string
      /** Where commands begin. */
      folder: string
      /** Whom they run as; missing: root. */
      user?: string
    }
  /** No command can run in it, and why. */
  | { kind: 'none'; why: string }
export interface DoctorCheck {
  name: string
  level: 'ok' | 'warning' | 'error'
  message: string
  /** What to do about it; null when ok. */
  remedy: string | null
}
