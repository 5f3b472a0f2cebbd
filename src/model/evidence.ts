/**
 * What a verdict is judged on: the words of the listing and of our own records, as plain values. The provider contract's `ListedResource` fits
 * `SeenResource`; the engine makes the rest from rows that it read in one statement (orphans R46, R47). Times in ms.
 */
import type { Own } from './own.ts'
import type { HoldFacts } from './removal.ts'
import type { Topology } from './topology.ts'
import type { InstanceState, LeaseState } from './wire.ts'

/** One resource as a listing shows it. */
export interface SeenResource {
  resource: { scope: string; location: string; kind: string; nativeId: string; immutableId: string }
  /** Null: absent or unreadable. */
  tags: { ref: string | null; installation: string | null; attempt: string | null; mac: string | null }
  fixedAttemptToken: string | null
  providerState: string
  existence: 'exists' | 'going' | 'gone'
  name: string
  createdAt: number | null
  /** Null: unreadable, which is not the same as none (case I2). */
  labels: Readonly<Record<string, string>> | null
  /** Native ids. */
  attachedTo: readonly string[]
  /** Why the provider's own rules forbid taking it back in this shape. */
  reportOnly: string | null
  /** Native ids of what the provider deletes with it. */
  takesAlong?: readonly string[]
}

export interface LedgerEvidence {
  project: string
  ownerId: string
  ownerName: string
  issuedAt: number
  ownerClosedAt: number | null
}

export interface InstanceEvidence {
  id: string
  state: InstanceState
  changedAt: number
  terminatedAt: number | null
  gaveUpAt: number | null
  boundAttemptId: string | null
}

export interface AttemptEvidence {
  id: string
  number: number
  token: string
  scope: string
  location: string
  outcome: 'open' | 'bound' | 'absent' | 'abandoned'
  openedAt: number
  deadlineAt: number
  endedAt: number | null
  /** The owner resource's identity; null while it never reached us. */
  kind: string | null
  nativeId: string | null
  immutableId: string | null
  /** The key of its keyed tag; null: none was written. */
  macKey: string | null
}

export interface LeaseEvidence {
  id: string
  state: LeaseState
  /** Released without removal: somebody still wants the box (leases R37). */
  retained: boolean
  /** What of it keeps its box from found removals, as a keep label on the box would (decisions 4); null or missing: nothing does. */
  keep?: string | null
}

/** A removal of this ref: what it bound is recorded for ever. */
export interface RemovalEvidence {
  id: string
  attemptId: string
  open: boolean
  bound: readonly { scope: string; location: string; kind: string; immutableId: string; nativeId: string }[]
  /** Immutable ids of what of it is proved gone; missing: nothing is known of that. */
  progress?: readonly string[]
  /** A person ended it without proof (orphans R91); null or missing: nobody did. `at` in ms. */
  closed?: { by: string; reason: string; at: number } | null
  /** Why its record says nothing that can be understood here (leases R89); null or missing: it does. */
  unreadable?: string | null
}

/** Everything that we know of one ref. `ledger: null`: nobody here ever issued it. */
export interface RefEvidence {
  ref: string
  /** When these rows were read: after the page that showed the ref (orphans R49). */
  readAt: number
  ledger: LedgerEvidence | null
  instance: InstanceEvidence | null
  attempts: readonly AttemptEvidence[]
  lease: LeaseEvidence | null
  removals: readonly RemovalEvidence[]
}

/** What is the same for all groups of one sweep. */
export interface SweepPolicy {
  installation: string
  project: string
  provider: string
  /** The account as the provider itself named it before the listing (orphans U16). */
  scope: string
  ownerKind: string
  /** Every kind that an attempt makes there, the owner's too. */
  kinds: readonly string[]
  /** How long around the listing a change of the owner makes a group unjudgeable (orphans R62, R63). */
  marginMs: number
  /** How long an attempt may be in flight; past twice it, it is stuck (orphans U1). */
  attemptMs: number
  /** The standing ones. */
  holds: readonly HoldFacts[]
  own: Own
  /** Which groups may be taken back as a whole; missing: the provider knows none. */
  topology?: Topology
}

export interface SweepClock {
  /** Before the first call of the listing. */
  listingStartedAt: number
  now: number
}

export type FactSource = 'listing' | 'coverage' | 'ledger' | 'instance' | 'attempt' | 'lease' | 'removal' | 'hold' | 'policy'

/** One thing that a verdict rests on, who says so, and when that was known. */
export interface Fact {
  fact: string
  source: FactSource
  at: number | null
}

const active: ReadonlySet<InstanceState> = new Set(['provisioning', 'idle', 'busy'])
export const isActive = (instance: InstanceEvidence): boolean => active.has(instance.state)

/** The attempt whose resource the instance is; undefined also when the row names one that is not there. */
export const boundAttempt = (evidence: RefEvidence): AttemptEvidence | undefined => {
  const id = evidence.instance?.boundAttemptId
  return id === null || id === undefined ? undefined : evidence.attempts.find((attempt) => attempt.id === id)
}

/** orphans U9: scope, location, kind and immutable id; a name alone is no identity (case B13). */
export const isResourceOf = (attempt: AttemptEvidence, seen: SeenResource): boolean =>
  attempt.immutableId !== null &&
  attempt.immutableId === seen.resource.immutableId &&
  attempt.scope === seen.resource.scope &&
  attempt.location === seen.resource.location &&
  attempt.kind === seen.resource.kind

/**
 * Does this show the resource that the ref's instance is bound to? The question of the guard on counts and of "missing": asked of everything listed, also of
 * what is held, on its way out, or has unreadable labels, for all of that is there.
 */
export const showsBound = (seen: SeenResource, evidence: RefEvidence): boolean => {
  const bound = boundAttempt(evidence)
  return bound !== undefined && seen.existence !== 'gone' && isResourceOf(bound, seen)
}

/** When an attempt that still looks open is stuck: after twice its deadline (orphans R53). */
export const stuckAt = (attempt: Pick<AttemptEvidence, 'openedAt' | 'deadlineAt'>): number =>
  attempt.openedAt + 2 * (attempt.deadlineAt - attempt.openedAt)
