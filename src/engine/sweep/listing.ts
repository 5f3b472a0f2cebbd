/**
 * The listing of one scope, page by page. What an active instance is bound to is let go of at once, so that a scope of a million resources costs the memory
 * of its exceptions; the evidence of the rest is read after its page, in one statement. No stretch works long without yielding.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { showsBound, type SeenResource, type SweepPolicy } from '../../model/evidence.ts'
import { cellKey, type CoverageReport } from '../../model/inventory.ts'
import { isRef } from '../../model/ids.ts'
import { isPlainlyTracked } from '../../model/plainly-tracked.ts'
import type { Contradiction, ListedResource } from '../../providers/contract.ts'
import { boundEvidenceOf, evidenceOf } from '../../store/evidence.ts'
import type { EngineContext } from '../context.ts'
import { viewBound, type BoundView } from './bound.ts'
import type { SweepWork } from './load.ts'

const refsAStatement = 500

export interface Listing {
  startedAt: number
  endedAt: number
  locations: readonly string[]
  coverage: CoverageReport[]
  /** Distinct as the provider gives them, by `cellKey`. */
  resources: Map<string, number>
  /** What is not plainly tracked, to be formed into groups and judged. */
  kept: SeenResource[]
  /** Owner resources that are plainly tracked. */
  tracked: number
  /** What active instances are bound to; remembers which of it was seen, whatever its state. */
  bound: BoundView
  /** Immutable ids of what has tags that could not be read, by `cellKey`. */
  unreadable: Map<string, string[]>
  contradictions: Contradiction[]
}

const refsOf = (part: readonly ListedResource[]): string[] => {
  const refs = new Set<string>()
  for (const { tags } of part) if (tags.ref !== null && isRef(tags.ref)) refs.add(tags.ref)
  return [...refs]
}

/** What nobody can say without the ledger is looked up: after its page, so that no owner that was committed before it looks absent (orphans R49). */
const lookUp = async (context: EngineContext, listing: Listing, policy: SweepPolicy, part: readonly ListedResource[]): Promise<void> => {
  const evidence = await context.store.read((session) => boundEvidenceOf(session, refsOf(part), policy.project))
  for (const seen of part) {
    const known = seen.tags.ref === null ? undefined : evidence.get(seen.tags.ref)
    if (known && showsBound(seen, known)) listing.bound.table.markSeen(known.ref)
    if (known && isPlainlyTracked(seen, known, policy)) listing.tracked += seen.resource.kind === policy.ownerKind ? 1 : 0
    else listing.kept.push(seen)
  }
}

const sift = async (context: EngineContext, listing: Listing, policy: SweepPolicy, part: readonly ListedResource[]): Promise<void> => {
  const rest: ListedResource[] = []
  for (const seen of part) {
    const key = cellKey(seen.resource.location, seen.resource.kind)
    listing.resources.set(key, (listing.resources.get(key) ?? 0) + 1)
    if (seen.labels === null) {
      const ids = listing.unreadable.get(key)
      if (ids) ids.push(seen.resource.immutableId)
      else listing.unreadable.set(key, [seen.resource.immutableId])
    }
    if (!listing.bound.table.letsGo(seen, policy)) rest.push(seen)
    else if (seen.resource.kind === policy.ownerKind) listing.tracked++
  }
  if (rest.length > 0) await lookUp(context, listing, policy, rest)
}

/** What carries a ref that nobody here issued, or that is another project's, is none of ours (orphans R50, decisions 9). */
const ofOurRefs = async (
  context: EngineContext,
  policy: SweepPolicy,
  contradictions: readonly Contradiction[],
): Promise<Contradiction[]> => {
  const refs = [...new Set(contradictions.flatMap((one) => (one.ref !== undefined && isRef(one.ref) ? [one.ref] : [])))]
  if (refs.length === 0) return contradictions.filter((one) => one.ref === undefined)
  const readAt = await context.store.now()
  const evidence = await context.store.read((session) => evidenceOf(session, refs, readAt))
  return contradictions.filter((one) => one.ref === undefined || evidence.get(one.ref)?.ledger?.project === policy.project)
}

/** @throws what the provider throws when nothing of the listing can be trusted (orphans R22) */
export const listScope = async (
  context: EngineContext,
  work: SweepWork,
  locations: readonly string[],
  policy: SweepPolicy,
  signal: AbortSignal,
): Promise<Listing> => {
  // Before the first call: the watermark covers only what was provably seen (orphans R45).
  const startedAt = await context.store.now()
  const listing: Listing = {
    startedAt,
    endedAt: 0,
    locations,
    coverage: [],
    resources: new Map(),
    kept: [],
    bound: await viewBound(context, work, startedAt, signal),
    tracked: 0,
    unreadable: new Map(),
    contradictions: [],
  }
  for await (const item of work.provider.list(locations, work.config, { signal })) {
    signal.throwIfAborted()
    switch (item.type) {
      case 'coverage':
        listing.coverage.push(item.coverage)
        break
      case 'contradiction':
        listing.contradictions.push(item.contradiction)
        break
      case 'page':
        await listing.bound.refresh()
        for (let at = 0; at < item.resources.length; at += refsAStatement) {
          await sift(context, listing, policy, item.resources.slice(at, at + refsAStatement))
          await yieldToOthers()
        }
        break
    }
  }
  listing.contradictions = await ofOurRefs(context, policy, listing.contradictions)
  listing.endedAt = await context.store.now()
  return listing
}
