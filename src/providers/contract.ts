/**
 * The contract between the engine and a provider: all that the engine knows of the outside. A provider lists, reads,
 * creates and removes; it decides nothing. Outcomes are values, not exceptions: a provider that throws is treated as
 * having answered `unknown`/`uncertain`.
 *
 * Every call takes a `CallContext`: its signal ends at the deadline, or when the worker lost its lock.
 */
import type { RateReport } from '../model/budget.ts'
import type { InstallationId, LeaseId, Ref, ScopeId } from '../model/ids.ts'
import type { Topology } from '../model/topology.ts'
import type { Access, DoctorCheck } from '../model/wire.ts'

export interface CallContext {
  signal: AbortSignal
}

/**
 * On any outcome: what the answer said of the account's rate. One that says `throttled` was refused for its rate and did nothing: the engine counts it as no
 * failure, and comes again when there is room.
 */
export interface Rated {
  rate?: RateReport
}

/** What makes a resource itself and no other. Two are the same iff scope, location, kind and `immutableId` are equal. */
export interface ResourceIdentity {
  scope: ScopeId
  location: string
  kind: string
  /** The id that people type; a name can be used again, so it never identifies alone (case B13). */
  nativeId: string
  /** Fixed at creation and never used again by the provider. */
  immutableId: string
  /** Further facts fixed at creation, for evidence: names to values. No secrets. */
  facts: Record<string, string>
}

/** The ownership facts read back from a resource: tag values, null where absent or unreadable. */
export interface OwnershipTags {
  ref: string | null
  installation: string | null
  /** The attempt's token. */
  attempt: string | null
  /** The keyed tag, as it was written; the engine proves it. Null also where the provider has no room for one. */
  mac: string | null
}

export interface CreateRequest {
  ref: Ref
  installation: InstallationId
  attemptNumber: number
  /** Makes the create idempotent: the same token never makes a second resource. */
  attemptToken: string
  /** The keyed tag `leasehold_mac`, to be written beside the other tags; null: write none. No secret: whoever sees it can copy it, and nothing else. */
  mac: string | null
  leaseId: LeaseId | null
  /** For people: slug or instance name. */
  name: string
  project: string
  location: string
  /** The labels of leases 2.3, already cleaned. */
  labels: Record<string, string>
  /** Set inside the box; may hold secrets, so it never goes where a listing, a process table or a log shows it. */
  secretEnvironment: Record<string, string>
  /** The dead-man clock: the box ends itself this long after creation, also when no coordinator is left. */
  maximumLifetimeSeconds: number
  /** The backend's configuration, validated by `parseConfig`. */
  config: Record<string, unknown>
}

export type CreateOutcome = Rated &
  (
    | { kind: 'created'; resource: ResourceIdentity; ready: boolean }
    /** Nothing was made, and the provider's answer proves it. */
    | { kind: 'rejected'; code: string; message: string }
    /** May or may not exist: every identity known so far is kept (leases R7). */
    | { kind: 'uncertain'; message: string; resource: ResourceIdentity | null }
  )

export interface FoundResource {
  resource: ResourceIdentity
  tags: OwnershipTags
  /** Does a fact fixed at creation (not the tags) name this attempt token too? The second of the two facts (I6). */
  fixedAttemptToken: string | null
  /** The provider's own word for its state, and ours from the provider's state table. */
  providerState: string
  existence: 'exists' | 'going' | 'gone'
  /** As in a listing, where a read shows them too; missing: it does not. What a sweep found is looked at once more before it is taken back. */
  labels?: Record<string, string> | null
  reportOnly?: string | null
  name?: string
  attachedTo?: string[]
  /** Native ids of what the provider deletes with it, whether anybody asks for that or not. */
  takesAlong?: string[]
  /** The provider's own word for exactly this state of it (an etag, a row's version), for `Precondition`; missing: it has none. */
  version?: string
}

/** leases R91: what a removal is bound to, beyond the identity. A provider that has no such thing ignores it. */
export interface Precondition {
  /** Of the fresh read right before the call. */
  version?: string
}

/** Something that carries our ref and yet is not what an attempt made: reported, never touched. */
export interface Contradiction {
  nativeId: string
  location: string
  why: string
  /** The ref that it carries, where it carries one: nobody is told of a ref that nobody here issued (orphans R50). */
  ref?: string
}

export type FindOutcome = Rated &
  ({ kind: 'complete'; found: FoundResource[]; contradictions: Contradiction[] } | { kind: 'incomplete'; why: string })

export type ReadOutcome = Rated &
  (
    | { kind: 'present'; found: FoundResource; contradictions: Contradiction[] }
    /** An exact not-found for the immutable id; where its account or location is not found, the answer is `unknown` (leases R86). `proof` says how it is known. */
    | { kind: 'absent'; proof: string; contradictions: Contradiction[] }
    /** The name is there with another identity: not ours, not touched. */
    | { kind: 'replaced'; why: string }
    | { kind: 'unknown'; error: string }
  )

/** One resource as a listing shows it. Only what carries a ref tag, readable or malformed, is listed (orphans R27). */
export interface ListedResource extends FoundResource {
  /** For people. */
  name: string
  /** When the provider says that it was made, in ms; null where it does not say. */
  createdAt: number | null
  /** Every label or tag, as read; null: unreadable, which is not the same as none (case I2). */
  labels: Record<string, string> | null
  /** Native ids of what it is attached to (a disk to its machine). */
  attachedTo: string[]
  /** Why it may not be removed as a part of its group, in the provider's words: a cascade option, a foreign attachment. */
  reportOnly: string | null
}

/** One cell of the coverage matrix: a location and a kind. Absence is concluded from `complete` cells only (I5). */
export interface Coverage extends Rated {
  location: string
  kind: string
  state: { kind: 'complete' } | { kind: 'partial'; why: string } | { kind: 'denied'; permission: string }
  pages: number
}

export type ListingItem =
  | { type: 'page'; location: string; kind: string; resources: ListedResource[] }
  | { type: 'coverage'; coverage: Coverage }
  | { type: 'contradiction'; contradiction: Contradiction }

export type RemoveOutcome = Rated &
  (
    | { kind: 'accepted'; requestId: string | null }
    | { kind: 'gone'; requestId: string | null }
    | { kind: 'blocked'; by: string }
    | { kind: 'retryLater'; why: string; afterSeconds: number | null }
    | { kind: 'denied'; permission: string }
    /** It is not any more as the precondition says: nothing was done, and it is read again before anything else is. */
    | { kind: 'changed'; why: string }
    | { kind: 'unknown'; error: string }
  )

/** Which group: what one attempt made. */
export interface InspectRequest {
  ref: Ref
  location: string
  attemptToken: string
  /** What is known of it: the owner that the attempt recorded, or what a sweep saw. */
  known: readonly ResourceIdentity[]
}
export type InspectOutcome = Rated &
  (
    | /** Everything of the group that exists, each with labels and edges; empty: nothing does. */
      { kind: 'complete'; members: FoundResource[] }
    | { kind: 'incomplete'; why: string }
  )

/** Taking away what a holder left in a box, so that another may have it. */
export type WipeOutcome =
  | { kind: 'wiped' }
  /** It was not, or perhaps not all of it: the box is not given out again. */
  | { kind: 'failed'; why: string }

/** What of a former holder a listing shows: only `complete` and empty proves that nothing is left. */
export type LeftoverOutcome = { kind: 'complete'; left: string[]; looked: string } | { kind: 'incomplete'; why: string }

/** Who stood still may find the box with another holder: asked right before anything of it is ended, taken away or moved. */
export interface WipeContext extends CallContext {
  stands: () => boolean
}

export interface RearmContext extends WipeContext {
  /**
   * Grows with each holder of the box. What was asked for under a smaller one may not undo what was set under a greater, where the provider can keep it beside its
   * clock.
   */
  order: number
}

/** The capability to give one box to one holder after another. Without it a box that is given back goes, and another is made. */
export interface Wipe {
  /**
   * Ends what runs in the box and takes away what is kept in it, and leaves the box itself as its create made it. Must compare the immutable id itself once
   * more; safe to repeat.
   */
  clear(resource: ResourceIdentity, config: Record<string, unknown>, context: WipeContext): Promise<WipeOutcome>
  /** Everything in the box that its create did not put there, in words for people; asked after `clear`, as a read of its own. */
  leftovers(resource: ResourceIdentity, config: Record<string, unknown>, context: CallContext): Promise<LeftoverOutcome>
}

export type ScopeOutcome = Rated & ({ kind: 'known'; scope: ScopeId; description: string } | { kind: 'unknown'; error: string })

export interface Provider {
  readonly name: string
  /** The kind of the owner resource, e.g. `box`. */
  readonly ownerKind: string
  /** How long a resource may stay invisible to listings after its creation (decisions, Defaults). */
  readonly visibilitySeconds: number
  /** How long one create call may take; an attempt is in flight for as long. */
  readonly createDeadlineSeconds: number
  /** Deadline of every other call. */
  readonly callDeadlineSeconds: number
  /** Has it room for a keyed tag of up to 63 characters (a-z, 0-9, -) on all that a create makes? Missing: it has none, and is given none. */
  readonly writesMac?: true
  readonly locations: readonly string[]
  /** The locations of one backend, where its configuration names them; default: `locations`. */
  locationsOf?(config: Record<string, unknown>): readonly string[]

  /** Reads back which account this is: before anything is created or judged in it. */
  scope(config: Record<string, unknown>, context: CallContext): Promise<ScopeOutcome>
  /** Throws `ConfigError` for a configuration that can't work; returns it normalised. */
  parseConfig(config: unknown): Record<string, unknown>
  create(request: CreateRequest, context: CallContext): Promise<CreateOutcome>
  /** Everything of this provider that carries the ref, whatever attempt made it, and what contradicts it. */
  find(ref: Ref, config: Record<string, unknown>, context: CallContext): Promise<FindOutcome>
  /** An exact, fresh read by recorded identity. */
  read(resource: ResourceIdentity, config: Record<string, unknown>, context: CallContext): Promise<ReadOutcome>
  /**
   * Asks for the removal of exactly this resource; the engine has read it just before and written its intent.
   * Must compare the immutable id itself once more. An already absent resource is `gone` (orphans R25); where its account or location can't be found nothing
   * is known of it, and the answer is `unknown` (leases R86). What gives a `version` must refuse with `changed` where that is another by now, in the very
   * step that deletes (leases R91).
   */
  remove(
    resource: ResourceIdentity,
    config: Record<string, unknown>,
    context: CallContext,
    precondition?: Precondition,
  ): Promise<RemoveOutcome>
  /**
   * Which group of this backend may be taken back as a whole, and in what order: data, judged by the engine (leases R66, R78). One of whose kinds are
   * several needs `inspect`. Missing: what the attempt recorded goes, or what a sweep saw, one by one.
   */
  topology?(config: Record<string, unknown>): Topology
  /**
   * The whole group, read afresh: exact reads of what is known, and everything of the same attempt that hangs together with it (leases R77). What can't be
   * read is `incomplete`, never left out.
   */
  inspect?(group: InspectRequest, config: Record<string, unknown>, context: CallContext): Promise<InspectOutcome>
  /** The kinds that a listing covers, the owner's first. */
  readonly kinds: readonly string[]
  /**
   * Every resource with a ref tag in these locations, page by page, and one `coverage` for each location and kind, also for those that failed: the others
   * are listed all the same (orphans R21). Throws only when nothing can be trusted at all; an error is never an empty list (orphans R22).
   */
  list?(locations: readonly string[], config: Record<string, unknown>, context: CallContext): AsyncIterable<ListingItem>
  /**
   * May this kind be listed there now? A cheap question, asked once an interval and only where it was denied (orphans R102). Default: the location is listed
   * until that kind has its turn. Throws when there is no answer.
   */
  mayList?(location: string, kind: string, config: Record<string, unknown>, context: CallContext): Promise<boolean>
  /**
   * Moves the dead-man clock: the box may live this long from now on. Throws, and moves nothing, once its signal has ended or nobody `stands` behind it any more:
   * late, it would give the box of the next holder the clock of the last.
   */
  rearm?(resource: ResourceIdentity, lifetimeSeconds: number, config: Record<string, unknown>, context: RearmContext): Promise<void>
  /** Missing: what a lease had is never given to another. */
  readonly wipe?: Wipe
  /**
   * How a person takes it back by hand: a console's address or a command, to be read after "Terminate it manually:" (orphans R97). No secrets. Default: its
   * kind, id, location and account.
   */
  manualRemoval?(resource: ResourceIdentity, config: Record<string, unknown>): string
  access(resource: ResourceIdentity, config: Record<string, unknown>): Access
  /**
   * Sees to it that a living box can still be entered (a key that ran out, an address that changed), after a beat and at most once a minute (leases R25).
   * What is wrong with it is a warning on the lease, never the beat's failure; null: nothing is.
   */
  refreshAccess?(resource: ResourceIdentity, config: Record<string, unknown>, context: CallContext): Promise<{ warning: string | null }>
  doctor(config: Record<string, unknown>, context: CallContext): Promise<DoctorCheck[]>
}

export class ConfigError extends Error {
  readonly code = 'backend_config_invalid'
}
