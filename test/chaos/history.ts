/** What is on record after a run of the chaos suite: what clients were told meanwhile, and what the database, the feed and the machine say at the end. */
import type { UnaskedEnd } from './replica.ts'

/** What one client asked for and was told, of one lease. Times are ISO 8601, as the coordinators answered them. */
export interface Told {
  lease: string
  /** A create was answered with the lease: it may not be forgotten any more. */
  created: boolean
  /** It was answered as active. */
  active: boolean
  /** The latest end that an answered beat, or an answered create, promised. */
  aliveUntil: string | null
  released: boolean
  cancelled: boolean
  /** Ids that its one request key was answered with. */
  ids: string[]
  /** It was answered as over. */
  over: boolean
  /** It was answered as live after that. */
  revived: string | null
  /** Its box was looked for right after it had been answered as active, and was not there. */
  boxMissing: string | null
}

export interface LeaseFact {
  id: string
  state: string
  createdAt: number
  lastTouchedAt: number
  ttlSeconds: number
  idleSeconds: number
  endedAt: number | null
  failureCode: string | null
  instance: string
}

export interface EventFact {
  id: string
  /** null: it has no number. */
  seq: number | null
  at: number
  code: string
  /** Ids of what it is about. */
  targets: string[]
}

export interface RemovalFact {
  id: string
  attempt: string
  instance: string
  lease: string | null
  state: string
  cause: string
  openedAt: number
}

export interface AttemptFact {
  id: string
  instance: string
  outcome: string
}

export interface InstanceFact {
  id: string
  state: string
  /** The attempt that made its box; null: it never had one. */
  attempt: string | null
}

export interface History {
  told: Told[]
  leases: LeaseFact[]
  instances: InstanceFact[]
  attempts: AttemptFact[]
  removals: RemovalFact[]
  /** The feed at the end, by number. */
  events: EventFact[]
  /** What a follower of the feed was told meanwhile, page after page, by one replica after the other. */
  followed: { seq: number; id: string }[]
  /** Whatever is still there of what was made, by name. */
  left: string[]
  /** What the verification of the audit's chain found; empty: it holds. */
  audit: string[]
  /** Which of the calls that providers got came from no attempt on record. */
  strangers: string[]
  ends: UnaskedEnd[]
  /** Answers that no fault explains. */
  unexpected: string[]
}
