/** When a removal is tried again, and what a fresh read or an answer means for it. */
import { holdAmong } from './holds-index.ts'
import type { Stop } from './stop.ts'
import type { SweepMode } from './sweep-settings.ts'
import type { RemovalState } from './wire.ts'

const retryMs = 300_000
const steadyFailures = 12
const longestRetryMs = 3_600_000
const firstPollMs = 2_000
const longestPollMs = 30_000
/** From so many failures in a row on, the lease shows as stuck (leases R47). */
export const stuckAfter = 3
/** How often a removal that a hold or a freeze stops is looked at again. */
export const heldRecheckMs = 60_000

/**
 * leases R40, R47: exactly 300 s after each of the first 12 failures in a row, then doubling up to 3600 s.
 * @param failures in a row, this one included
 */
export const retryDelayMs = (failures: number): number =>
  failures <= steadyFailures ? retryMs : Math.min(longestRetryMs, retryMs * 2 ** (failures - steadyFailures))

/**
 * Who wants it, and so how long it is tried. `ordered`: a lease's end or holder; never given up (leases R40). `unheld`: nobody holds the instance, as in the
 * rollback of a create; given up after 15 min (orphans R88-R91). `found`: a sweep's; never given up, because whatever is left is found again (orphans R98).
 */
export type RemovalKind = 'ordered' | 'unheld' | 'found'

/** `orphan.…`: a sweep found it, and mode, quarantine, plan and limits let it pass. */
export const isFound = (cause: string): boolean => cause.startsWith('orphan.')

/** The lease of an interrupted create has failed: it is linked, and orders nothing. */
export const removalKind = (removal: { cause: string; leaseId: string | null }): RemovalKind => {
  if (isFound(removal.cause)) return 'found'
  return removal.leaseId !== null && removal.cause !== 'create-interrupted' ? 'ordered' : 'unheld'
}

/** orphans R88: counted from the end of the last try. */
const unheldRetryMs = 30_000
/** orphans R89: from the first failure, or from the first acceptance where none came before it (R90). */
const giveUpBudgetMs = 900_000

/** From when the budget counts; null: nothing has failed and nothing was accepted. */
export const budgetSince = (removal: { firstFailedAt: number | null; acceptedAt: number | null }): number | null =>
  removal.firstFailedAt === null || removal.acceptedAt === null
    ? (removal.firstFailedAt ?? removal.acceptedAt)
    : Math.min(removal.firstFailedAt, removal.acceptedAt)

/** orphans R89: would the next try come after the budget? */
export const givesUp = (since: number, now: number): boolean => now + unheldRetryMs >= since + giveUpBudgetMs

/** How long until the next try of a removal that failed just now; `failures` in a row, this one included. */
export const nextTryMs = (kind: RemovalKind, failures: number): number => (kind === 'unheld' ? unheldRetryMs : retryDelayMs(failures))

/** Until the next look whether what was given up has gone by other hands, or late: 60 s, doubling to 1 h. It is only read; nothing is called. */
export const givenUpLookMs = (looks: number): number => Math.min(3_600_000, 60_000 * 2 ** looks)

export interface GiveUpFacts {
  /** The effective mode of that provider. */
  mode: SweepMode
  /** Can sweeps see it at all (orphans R17)? */
  lists: boolean
  /** A hold, a freeze or a keep that bars found removals; null: nothing does. */
  protectedBy: string | null
  /** Ours could not be proved: a sweep will not touch it either (I6). */
  contradiction: boolean
}

/** orphans R96, R97: cleanup is promised only where it will really come. */
export const giveUpCode = (facts: GiveUpFacts): 'terminate.gave-up.cleanup-retries' | 'terminate.gave-up.manual' =>
  facts.mode === 'delete' && facts.lists && facts.protectedBy === null && !facts.contradiction
    ? 'terminate.gave-up.cleanup-retries'
    : 'terminate.gave-up.manual'

/** Is somebody still trying? One that gave up stands until its absence is proved, and bars no other removal of the same attempt. */
export const isOpenRemoval = (state: RemovalState): boolean => state !== 'gave-up' && !isOverRemoval(state)

/** Proved, or closed by a person: nothing more comes of it. */
export const isOverRemoval = (state: RemovalState): boolean => state === 'gone' || state === 'closed'

/** Between two looks for proof after a removal was accepted. */
export const pollDelayMs = (polls: number): number => Math.min(longestPollMs, firstPollMs * 2 ** polls)

/** One resource, as removals compare it: all four must agree. */
export interface Identity {
  scope: string
  location: string
  kind: string
  nativeId: string
  immutableId: string
}

export const sameResource = (a: Identity, b: Identity): boolean =>
  a.scope === b.scope && a.location === b.location && a.kind === b.kind && a.nativeId === b.nativeId && a.immutableId === b.immutableId

/** What was read back, compared with what is bound. */
export interface FreshRead {
  resource: Identity
  tags: { ref: string | null; installation: string | null; attempt: string | null }
}
export interface Bound {
  resource: Identity
  ref: string
  installation: string
  attemptToken: string
}

export type Preflight =
  | { kind: 'go' }
  /** What is there is not, or not provably, what was bound: nothing is touched, a person is told (I6). */
  | { kind: 'contradiction'; why: string }

/**
 * The fresh read before a destructive call: identity and ownership must both agree. A tag that can't be read is no agreement,
 * unless the identity itself says who made it: a box whose first process has ended has no tags left to read.
 * @param tagsReadable false when the provider has nothing left to read tags from
 */
export const preflight = (bound: Bound, fresh: FreshRead, tagsReadable: boolean): Preflight => {
  if (!sameResource(bound.resource, fresh.resource))
    return {
      kind: 'contradiction',
      why: `what is there now has another identity (${fresh.resource.immutableId}) than what was made (${bound.resource.immutableId})`,
    }
  if (!tagsReadable) return { kind: 'go' }
  const wrong = (['ref', 'installation', 'attempt'] as const).filter(
    (tag) => fresh.tags[tag] !== { ref: bound.ref, installation: bound.installation, attempt: bound.attemptToken }[tag],
  )
  if (wrong.length > 0) return { kind: 'contradiction', why: `its ${wrong.join(', ')} tag no longer says that it is ours` }
  return { kind: 'go' }
}

export interface RemovalTarget {
  /** Every name that its resources have. */
  resourceKeys: readonly string[]
  instanceId: string
  leaseId: string | null
  project: string
  scope: string
  /** ms, when its attempt was opened; missing: not known. */
  madeAt?: number
}

/** `provider/location/native-id`, as people and holds name a resource. */
export const resourceKey = (provider: string, location: string, nativeId: string): string => `${provider}/${location}/${nativeId}`

export interface HoldFacts {
  id: string
  targetType: 'resource' | 'instance' | 'lease' | 'project' | 'scope'
  targetId: string
}

const stops = (one: string | Stop, target: RemovalTarget): boolean => {
  if (typeof one === 'string') return false
  if (one.madeBefore !== undefined && target.madeAt !== undefined && target.madeAt >= one.madeBefore) return false
  return one.scope === '*' || one.scope === target.scope
}

/**
 * Who or what holds a removal back: a stop because this database may not be the one that decides (decisions 6), a freeze of its scope, or a hold on it or on
 * anything that it belongs to. Null: nobody.
 * @param frozenScopes those of freezes by name, and the stops
 */
export const heldBy = (target: RemovalTarget, holds: readonly HoldFacts[], frozenScopes: readonly (string | Stop)[]): string | null => {
  const stop = frozenScopes.find((one) => stops(one, target))
  if (stop !== undefined && typeof stop !== 'string') return stop.by
  const frozen = frozenScopes.find((scope) => typeof scope === 'string' && (scope === '*' || scope === target.scope))
  if (typeof frozen === 'string') return frozen === '*' ? 'freeze' : `freeze of ${frozen}`
  const hold = holdAmong(holds, target)
  return hold ? `hold ${hold.id}` : null
}

/** What `cleanup.state` says (leases D8): one block, whatever the lease's own state is. */
export const cleanupState = (
  removal: { state: RemovalState; failedAt: number | null; heldBy: string | null } | null,
): 'none' | RemovalState | 'failed' | 'held' => {
  if (!removal) return 'none'
  if (isOverRemoval(removal.state) || removal.state === 'gave-up') return removal.state
  if (removal.heldBy !== null) return 'held'
  return removal.failedAt !== null ? 'failed' : removal.state
}
