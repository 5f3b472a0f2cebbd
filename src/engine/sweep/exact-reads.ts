/** Exact reads of what the ledger expects and a listing did not show: only they turn "not listed" into "not there". */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { isUntagged } from '../../model/internal-member.ts'
import { readsNeeded } from '../../model/inventory.ts'
import type { ExactRead } from '../../model/missing.ts'
import type { Ref, ScopeId } from '../../model/ids.ts'
import type { ResourceIdentity } from '../../providers/contract.ts'
import type { Expected, Unseen } from './expected.ts'
import type { SweepWork } from './load.ts'

const atOnce = 8
const mostReads = 2000
/** A provider that hangs is not asked for ever: what was read until then counts. */
const budgetMs = 120_000

export type ExactReads = ReadonlyMap<string, Exclude<ExactRead, null>>

const identityOf = (unseen: Unseen): ResourceIdentity => ({
  scope: unseen.scope as ScopeId,
  location: unseen.location,
  kind: unseen.kind,
  nativeId: unseen.nativeId,
  immutableId: unseen.immutableId,
  facts: unseen.facts,
})

export const readExactly = async (work: SweepWork, unseen: Unseen, signal: AbortSignal): Promise<Exclude<ExactRead, null>> => {
  const identity = identityOf(unseen)
  try {
    const read = await withDeadline('an exact read', work.provider.callDeadlineSeconds * 1000, signal, (inner) =>
      work.provider.read(identity, work.config, { signal: inner }),
    )
    return read.kind
  } catch {
    return 'unknown'
  }
}

/** What of a group is still there. */
export interface LeftOf {
  /** Carries our tags: sweeps go on with it. */
  tagged: string[]
  /** Carries none: no listing shows it, and no living owner says whose it is, so nothing takes it back (leases R85). */
  untagged: string[]
}

/** What an owner that is gone left: whoever is told that it is missing is told of that too. */
export const leftBy = async (work: SweepWork, unseen: Unseen, signal: AbortSignal): Promise<LeftOf | { unknown: string }> => {
  const { provider, config } = work
  const inspect = provider.inspect?.bind(provider)
  if (inspect === undefined) return { tagged: [], untagged: [] }
  const group = { ref: unseen.ref as Ref, location: unseen.location, attemptToken: unseen.attemptToken, known: [identityOf(unseen)] }
  try {
    const read = await withDeadline('a look at what it left', provider.callDeadlineSeconds * 1000, signal, (inner) =>
      inspect(group, config, { signal: inner }),
    )
    if (read.kind === 'incomplete') return { unknown: read.why }
    const order = provider.topology?.(config).order ?? []
    const left = read.members
      .filter((one) => one.fixedAttemptToken === unseen.attemptToken && one.existence !== 'gone')
      .toSorted((a, b) => order.indexOf(a.resource.kind) - order.indexOf(b.resource.kind))
    const names = (some: typeof left): string[] => some.map(({ resource }) => `${resource.kind} ${resource.nativeId}`)
    return { tagged: names(left.filter((one) => !isUntagged(one))), untagged: names(left.filter(isUntagged)) }
  } catch (error) {
    return { unknown: errorText(error) }
  }
}

/**
 * Where so much is missing that the counts are implausible, the provider is asked for each by itself: what it proves absent explains its own absence
 * (decisions, guard on counts). Ends as soon as enough is explained, or can't be any more.
 * @returns by instance; empty where the counts are plausible as they are
 */
export const explainUnseen = async (work: SweepWork, expected: Expected, signal: AbortSignal): Promise<ExactReads> => {
  const reads = new Map<string, Exclude<ExactRead, null>>()
  const needed = readsNeeded(expected)
  const asked = expected.unseen.slice(0, mostReads)
  const end = performance.now() + budgetMs
  let next = 0
  let absent = 0
  let unexplained = 0
  const worker = async (): Promise<void> => {
    while (next < asked.length && absent < needed && asked.length - unexplained >= needed && performance.now() < end && !signal.aborted) {
      const unseen = asked[next++] as Unseen
      const read = await readExactly(work, unseen, signal)
      reads.set(unseen.instance.id, read)
      if (read === 'absent') absent++
      else unexplained++
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, asked.length) }, worker))
  return reads
}
