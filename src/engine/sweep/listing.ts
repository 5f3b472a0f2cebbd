/**
 * The listing of one scope, page by page. After each page its evidence is read in one statement; what an active instance is bound to is let go of at once,
 * so that a scope of a million resources costs the memory of its exceptions. No stretch works long without yielding.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { showsBound, type SeenResource, type SweepPolicy } from '../../model/evidence.ts'
import { cellKey, type CoverageReport } from '../../model/inventory.ts'
import { isRef } from '../../model/ids.ts'
import { isPlainlyTracked } from '../../model/verdict.ts'
import type { Contradiction, ListedResource } from '../../providers/contract.ts'
import { boundEvidenceOf, evidenceOf } from '../../store/evidence.ts'
import type { EngineContext } from '../context.ts'
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
  /** Refs whose bound resource was seen, whatever its state. */
  seenBound: Set<string>
  /** Resources with readable tags, and those whose tags could not be read. */
  readable: number
  unreadable: number
  contradictions: Contradiction[]
}

const sift = async (context: EngineContext, listing: Listing, policy: SweepPolicy, part: readonly ListedResource[]): Promise<void> => {
  const refs = [...new Set(part.flatMap((seen) => (seen.tags.ref !== null && isRef(seen.tags.ref) ? [seen.tags.ref] : [])))]
  const readAt = await context.store.now()
  const evidence = await context.store.read((session) => boundEvidenceOf(session, refs, policy.project, readAt))
  for (const seen of part) {
    const key = cellKey(seen.resource.location, seen.resource.kind)
    listing.resources.set(key, (listing.resources.get(key) ?? 0) + 1)
    if (seen.labels === null) listing.unreadable++
    else listing.readable++
    const known = seen.tags.ref === null ? undefined : evidence.get(seen.tags.ref)
    if (known && showsBound(seen, known)) listing.seenBound.add(known.ref)
    if (known && isPlainlyTracked(seen, known, policy)) listing.tracked += seen.resource.kind === policy.ownerKind ? 1 : 0
    else listing.kept.push(seen)
  }
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
  const listing: Listing = {
    // Before the first call: the watermark covers only what was provably seen (orphans R45).
    startedAt: await context.store.now(),
    endedAt: 0,
    locations,
    coverage: [],
    resources: new Map(),
    kept: [],
    seenBound: new Set(),
    tracked: 0,
    readable: 0,
    unreadable: 0,
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
