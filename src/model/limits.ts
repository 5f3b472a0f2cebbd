/**
 * The plan of a sweep and its limits on number and share (I8). A plan within them is begun, new kinds of deletion one at a time first (canary); one
 * beyond them is not begun at all and waits for a person who approves it by its hash (cases C3, C7 of what a bad day looks like).
 */
import { compare } from './group.ts'

export interface PlanEntry {
  /** `provider/location/native-id` of the group's leader. */
  target: string
  provider: string
  /** Of the group's leader. */
  kind: string
  /** The orphan's reason code. */
  rule: string
  fingerprint: string
  /** It was begun before and dropped, and nothing of it has changed since: it stands behind the others of its kind and rule. */
  dropped?: true
}

export interface LimitPolicy {
  perSweep: number
  sharePercent: number
  perDay: number
}
/** decisions, Defaults. */
export const defaultLimits: LimitPolicy = { perSweep: 10, sharePercent: 5, perDay: 100 }

/** How far trust in one (provider, kind, rule) has grown. */
export interface Canary {
  stage: 0 | 1 | 2
  /** Removals that were begun and are neither proved nor failed yet. */
  inFlight: number
}
export const freshCanary: Canary = { stage: 0, inFlight: 0 }
const allowances = { 0: 1, 1: 3, 2: Number.POSITIVE_INFINITY } as const

export const canaryKey = (entry: Pick<PlanEntry, 'provider' | 'kind' | 'rule'>): string => `${entry.provider}/${entry.kind}/${entry.rule}`

/** What a batch teaches: proof moves one stage on, a failure back to the first, and what is not proved yet changes nothing. */
export const canaryAfter = (before: Canary, batch: { gone: number; failed: number; inFlight: number }): Canary => {
  const inFlight = batch.inFlight
  if (batch.failed > 0) return { stage: 0, inFlight }
  const grown = batch.gone > 0 && inFlight === 0 && before.stage < 2
  return { stage: grown ? ((before.stage + 1) as 1 | 2) : before.stage, inFlight }
}

/** One removal that a sweep began, as its row tells it. */
export interface Begun extends Pick<PlanEntry, 'provider' | 'kind' | 'rule'> {
  /** ms; those of one plan began together. */
  openedAt: number
  gone: boolean
  /** It waits for somebody, or was dropped: nothing is learnt from it, and nothing waits for it. */
  stopped: boolean
  /** Did any of its tries fail, also when a later one went well? */
  failed: boolean
}

/**
 * How far each (provider, kind, rule) is trusted, from what was begun so far. One that failed is no longer in flight: it teaches caution, and holds nothing
 * else back (orphans R72).
 */
export const canariesOf = (begun: readonly Begun[]): Map<string, Canary> => {
  const canaries = new Map<string, Canary>()
  const batches = Map.groupBy(
    begun.toSorted((a, b) => a.openedAt - b.openedAt),
    (one) => `${one.openedAt} ${canaryKey(one)}`,
  )
  for (const batch of batches.values()) {
    const key = canaryKey(batch[0] as Begun)
    const before = canaries.get(key) ?? freshCanary
    const failed = batch.filter((one) => one.failed).length
    const inFlight = batch.filter((one) => !one.failed && !one.gone && !one.stopped).length
    const after = canaryAfter(before, { gone: batch.filter((one) => one.gone).length, failed, inFlight })
    canaries.set(key, { stage: after.stage, inFlight: before.inFlight + inFlight })
  }
  return canaries
}

export interface PlanContext {
  /** Groups of ours that exist in the scope, the plan's included. */
  oursInScope: number
  /** Removals that sweeps began in the scope in the last 24 h. */
  begunInLastDay: number
  canaries: ReadonlyMap<string, Canary>
  /** SHA-256 in hex. */
  hash: (text: string) => string
}

export type PlanDecision<E extends PlanEntry = PlanEntry> =
  | { kind: 'empty' }
  | { kind: 'begin'; id: string; entries: readonly E[]; later: readonly E[]; why: string | null }
  | { kind: 'wait'; id: string; entries: readonly E[]; limit: 'sweep' | 'share' | 'day'; allowed: number; why: string; whatToDo: string }

const inOrder = <E extends PlanEntry>(entries: readonly E[]): E[] =>
  entries.toSorted((a, b) => compare(a.target, b.target) || compare(a.fingerprint, b.fingerprint))

/** The id stands for exactly these targets, in whatever order they were found. */
export const planId = (entries: readonly PlanEntry[], hash: (text: string) => string): string =>
  `pl_${hash(JSON.stringify(inOrder(entries).map((one) => [one.target, one.provider, one.kind, one.rule, one.fingerprint])))}`

/** As people type it: enough of the hash to name one. */
export const shortPlanId = (id: string): string => id.slice(0, 15)

/** Of more than this nobody can say that they have looked through it: it can't be approved, and is not written down. */
export const mostApprovable = 2000

/** Never less than 1, or a small scope could never be cleaned at all. */
export const allowedPerSweep = (oursInScope: number, policy: LimitPolicy): number =>
  Math.max(1, Math.min(policy.perSweep, Math.floor((oursInScope * policy.sharePercent) / 100)))

const beyond = (
  count: number,
  context: PlanContext,
  policy: LimitPolicy,
): { limit: 'sweep' | 'share' | 'day'; allowed: number; why: string } | null => {
  const allowed = allowedPerSweep(context.oursInScope, policy)
  if (count > allowed) {
    if (count > Math.max(1, policy.perSweep))
      return { limit: 'sweep', allowed, why: `it removes ${count} groups; one sweep may remove ${allowed}` }
    return {
      limit: 'share',
      allowed,
      why: `it removes ${count} of ${context.oursInScope} groups; one sweep may remove ${policy.sharePercent} %, here ${allowed}`,
    }
  }
  const left = Math.max(0, policy.perDay - context.begunInLastDay)
  if (count > left)
    return {
      limit: 'day',
      allowed: left,
      why: `it removes ${count} groups; ${context.begunInLastDay} of ${policy.perDay} removals a day were begun in the last 24 h`,
    }
  return null
}

/**
 * What of a plan within the limits begins now: by (provider, kind, rule) first 1, then 3, then the rest. What was dropped last time, and would be again, takes
 * no place from one that was not tried yet.
 */
const staged = <E extends PlanEntry>(entries: readonly E[], canaries: ReadonlyMap<string, Canary>): { now: E[]; later: E[] } => {
  const left = new Map<string, number>()
  const now: E[] = []
  const later: E[] = []
  for (const entry of entries.toSorted((a, b) => Number(a.dropped ?? false) - Number(b.dropped ?? false))) {
    const key = canaryKey(entry)
    const canary = canaries.get(key) ?? freshCanary
    const room = left.get(key) ?? allowances[canary.stage] - canary.inFlight
    if (room >= 1) now.push(entry)
    else later.push(entry)
    left.set(key, room >= 1 ? room - 1 : room)
  }
  return { now, later }
}

const tooMany = 'that is more than a person can look through: find out why so much is orphaned, and hold what must stay'
const lookAndApprove = (id: string): string =>
  `look through it with "leasehold plans ${shortPlanId(id)}", then "leasehold approve ${shortPlanId(id)}" begins it`

/** @param eligible orphans whose quarantine has ended, in `delete` mode */
export const planRemovals = <E extends PlanEntry>(
  eligible: readonly E[],
  context: PlanContext,
  policy: LimitPolicy = defaultLimits,
): PlanDecision<E> => {
  if (eligible.length === 0) return { kind: 'empty' }
  const entries = inOrder(eligible)
  const id = planId(entries, context.hash)
  const limit = beyond(entries.length, context, policy)
  if (limit) {
    const wait = limit.limit === 'day' ? ', or wait until fewer were begun in the last 24 h' : ''
    return {
      kind: 'wait',
      id,
      entries,
      ...limit,
      whatToDo: entries.length > mostApprovable ? `${tooMany}${wait}` : `${lookAndApprove(id)}${wait}`,
    }
  }
  const { now, later } = staged(entries, context.canaries)
  const why = later.length === 0 ? null : `${later.length} wait until the first of their kind and rule are proved gone`
  return { kind: 'begin', id, entries: now, later, why }
}
