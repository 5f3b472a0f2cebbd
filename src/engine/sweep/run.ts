/** One sweep of one backend: account, listing, verdicts, and then what may be written of them. A dry run is the same without the writing. */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import type { SweepPolicy } from '../../model/evidence.ts'
import type { Expectation, Inventory } from '../../model/inventory.ts'
import type { VerdictReason } from '../../model/verdict-reasons.ts'
import { usedLocations } from '../../store/attempts.ts'
import { passWaits } from '../budget/waits.ts'
import type { EngineContext } from '../context.ts'
import { explainUnseen } from './exact-reads.ts'
import { compareWithLedger, type Expected } from './expected.ts'
import { expectationOf } from './guard.ts'
import { judgeAll, seal, type Judged } from './judge-all.ts'
import { listScope, type Listing } from './listing.ts'
import { policyOf, type SweepWork } from './load.ts'
import { rememberProtection } from './remembered.ts'
import { judgeVanished, type Vanished } from './vanished.ts'

export interface Inspected {
  kind: 'inspected'
  scope: string
  /** The account in the provider's words. */
  account: string
  listing: Listing
  inventory: Inventory
  judged: Judged[]
  vanished: Vanished[]
  verdicts: Partial<Record<VerdictReason, number>>
  /** Groups of ours that exist in the scope, the tracked ones included. */
  oursInScope: number
  expected: number
  seen: number
  /** What the guard on counts was asked. */
  counts: Expectation
}
export type Inspection =
  | Inspected
  | { kind: 'raised'; startedAt: number; error: string }
  /** The account behind the backend is another one than that of its boxes: no verdict at all (orphans U16, R100). */
  | { kind: 'stranded'; startedAt: number; reached: string; openRefs: { ref: string; scope: string; name: string }[] }

/** The longest that one whole listing may take. */
const listingDeadlineMs = 30 * 60_000

const openRefsElsewhere = (
  context: EngineContext,
  work: SweepWork,
  scope: string,
): Promise<{ ref: string; scope: string; name: string }[]> =>
  context.store.read(({ db }) =>
    db
      .selectFrom('instances')
      .innerJoin('attempts', 'attempts.id', 'instances.attempt_id')
      .select(['instances.ref', 'attempts.scope', 'instances.name'])
      .where('instances.project', '=', work.backend.project)
      .where('instances.backend', '=', work.backend.name)
      .where('instances.state', '<>', 'terminated')
      .where('attempts.scope', '<>', scope as never)
      .limit(1000)
      .execute(),
  )

/** The configured locations, and every one ever used (orphans U8): narrowing the configuration hides nothing. */
const locationsOf = async (context: EngineContext, work: SweepWork): Promise<string[]> => {
  const used = await usedLocations(context.store, work.backend.project, work.backend.name)
  const configured = work.provider.locationsOf?.(work.config) ?? work.provider.locations
  return [...new Set([...configured, ...used])].toSorted()
}

const reachedScope = async (work: SweepWork, signal: AbortSignal): Promise<{ scope: string; account: string } | { error: string }> => {
  try {
    const answer = await withDeadline('reading the account', work.provider.callDeadlineSeconds * 1000, signal, (inner) =>
      work.provider.scope(work.config, { signal: inner }),
    )
    return answer.kind === 'known' ? { scope: answer.scope, account: answer.description } : { error: answer.error }
  } catch (error) {
    passWaits(error)
    return { error: errorText(error) }
  }
}

const judgeListing = async (
  context: EngineContext,
  work: SweepWork,
  scope: string,
  listing: Listing,
  policy: SweepPolicy,
  signal: AbortSignal,
) => {
  const expected = await compareWithLedger(context, work, listing)
  const reads = await explainUnseen(work, expected, signal)
  const counts = await context.store.read((session) => expectationOf(session, work, scope, listing, expected, reads))
  const inventory = seal(work, listing, counts)
  const judged = await rememberProtection(context, work, scope, inventory, await judgeAll(context, listing, inventory, policy))
  const vanished = await judgeVanished(context, work, expected, inventory, reads, signal)
  return { inventory, judged, vanished, counts, expected }
}

/** Reads and judges; writes nothing. */
export const inspect = async (context: EngineContext, work: SweepWork, signal: AbortSignal): Promise<Inspection> => {
  const startedAt = await context.store.now()
  const reached = await reachedScope(work, signal)
  if ('error' in reached) return { kind: 'raised', startedAt, error: reached.error }
  const { scope } = reached
  if (work.backend.scope !== null && work.backend.scope !== scope)
    return { kind: 'stranded', startedAt, reached: scope, openRefs: await openRefsElsewhere(context, work, scope) }
  const policy = await policyOf(context, work, scope, startedAt)
  let listing: Listing
  try {
    const locations = await locationsOf(context, work)
    listing = await withDeadline('the listing', listingDeadlineMs, signal, (inner) => listScope(context, work, locations, policy, inner))
  } catch (error) {
    passWaits(error)
    return { kind: 'raised', startedAt, error: errorText(error) }
  }
  // What can't be judged is a failed sweep like one that can't be listed: with a certificate, put off, and told of.
  let rest: Pick<Inspected, 'inventory' | 'judged' | 'vanished' | 'counts'> & { expected: Expected }
  try {
    rest = await judgeListing(context, work, scope, listing, policy, signal)
  } catch (error) {
    passWaits(error)
    return { kind: 'raised', startedAt: listing.startedAt, error: errorText(error) }
  }
  const { inventory, judged, vanished, counts, expected } = rest
  const verdicts: Inspected['verdicts'] = {}
  for (const { verdict } of judged) verdicts[verdict.reason] = (verdicts[verdict.reason] ?? 0) + 1
  const ours = judged.filter(({ verdict }) => verdict.kind !== 'foreign' && verdict.kind !== 'held').length
  return {
    kind: 'inspected',
    scope,
    account: reached.account,
    listing,
    inventory,
    judged,
    vanished,
    verdicts,
    oursInScope: listing.tracked + ours,
    expected: expected.expected,
    seen: expected.seen,
    counts,
  }
}
