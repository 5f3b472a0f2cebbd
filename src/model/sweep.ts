/** When a cleanup lists, how a sweep ended, and when the next one is due (orphans R35-R44, R68, R76-R81; leases R54, R60). Times in ms. */
import { counted } from '../lib/counted.ts'
import { cellsNot, nothingListed, type Inventory } from './inventory.ts'
import type { SweepMode } from './sweep-settings.ts'
import { reasonOf, type VerdictReason } from './verdict-reasons.ts'

export type SweepOutcome = 'clean' | 'unsettled' | 'failed'
const hour = 3_600_000
const longestRetryMs = 6 * hour
export const fullSweepMs = 24 * hour
/** A stalled worker's create may surface so long after its owner or attempt was closed (orphans R40). */
export const lateSurfaceMs = 900_000

export interface GateFacts {
  mode: SweepMode
  now: number
  marginMs: number
  /** Null: never cleaned. */
  cleanAt: number | null
  cleanMode: SweepMode | null
  lastOutcome: SweepOutcome | null
  /** When the last listing began; null: none ever did. */
  lastListingAt: number | null
  /** The project's newest activity on any backend: an attempt opened or ended, an instance or lease created, changed or deleted (orphans R44). */
  instanceActivityAt: number | null
  jobActivityAt: number | null
  /** The newest end of an owner or attempt of the project. */
  lastClosedAt: number | null
  openOrphans: number
  /** The earliest time at which an open finding is to be reported again; null: none is open. */
  reportDueAt: number | null
  /** A kind that was denied at the last listing can be listed now (orphans R102). */
  deniedKindReadable: boolean
}

export type GateReason =
  | 'never-cleaned'
  | 'mode-changed'
  | 'instance-activity'
  | 'job-activity'
  | 'last-not-clean'
  | 'orphan-open'
  | 'report-due'
  | 'permission-appeared'
  | 'late-surfacing'
  | 'full-sweep'

/** orphans R40-R44: the reasons to list, all of them; none: the row is only marked as processed. `off` never lists. */
export const gateOpen = (facts: GateFacts): GateReason[] => {
  if (facts.mode === 'off') return []
  const since = (at: number | null): boolean => at !== null && facts.cleanAt !== null && at >= facts.cleanAt
  const reasons: [GateReason, boolean][] = [
    ['never-cleaned', facts.cleanAt === null],
    ['mode-changed', facts.cleanMode !== null && facts.cleanMode !== facts.mode],
    ['instance-activity', since(facts.instanceActivityAt)],
    ['job-activity', since(facts.jobActivityAt)],
    ['last-not-clean', facts.lastOutcome !== null && facts.lastOutcome !== 'clean'],
    ['orphan-open', facts.mode === 'delete' && facts.openOrphans > 0],
    ['report-due', facts.reportDueAt !== null && facts.reportDueAt <= facts.now],
    ['permission-appeared', facts.deniedKindReadable],
    [
      'late-surfacing',
      facts.lastClosedAt !== null &&
        facts.lastListingAt !== null &&
        facts.lastClosedAt > facts.lastListingAt - lateSurfaceMs - facts.marginMs,
    ],
    ['full-sweep', facts.lastListingAt === null || facts.now - facts.lastListingAt >= fullSweepMs],
  ]
  return reasons.filter(([, holds]) => holds).map(([reason]) => reason)
}

export interface SweepFacts {
  /** `raised`: nothing could be trusted; `stranded`: another account than the ledger's (orphans R100). */
  listing: 'listed' | 'raised' | 'stranded'
  /** Null unless listed. */
  inventory: Inventory | null
  /** How many groups were judged so, by reason. */
  verdicts: Readonly<Partial<Record<VerdictReason, number>>>
  deletionsFailed: number
  deletionsInProgress: number
  /** Of a dry run: what a sweep would begin to take back. */
  deletionsToBegin?: number
  /** Orphans that wait, or were dropped because they changed. */
  inQuarantine: number
  awaitingApproval: number
  awaitingLimit: number
  changed: number
  /** Denied cells that no earlier sweep has reported (orphans R102). */
  newlyDenied: number
  /** Boxes that should be there and were not shown, until a second inventory and an exact read decide (decisions 2). */
  notSeen?: number
}

export interface Ended {
  outcome: SweepOutcome
  /** Why it is not clean; empty when it is. */
  why: readonly string[]
}

/** orphans R76-R79: failed before unsettled before clean. */
export const sweepOutcome = (facts: SweepFacts): Ended => {
  const failed: string[] = []
  if (facts.listing === 'raised' || (facts.inventory !== null && nothingListed(facts.inventory) !== null)) failed.push('the listing failed')
  if (facts.deletionsFailed > 0) failed.push(`${counted(facts.deletionsFailed, 'deletion')} failed`)
  if (failed.length > 0) return { outcome: 'failed', why: failed }
  const why: string[] = []
  const count = (number: number, one: string, many: string): void => void (number > 0 && why.push(counted(number, one, many)))
  if (facts.listing === 'stranded') why.push('the account is not the one of the ledger')
  if (facts.inventory) {
    count(
      cellsNot(facts.inventory, 'complete').filter((cell) => cell.state.kind === 'partial').length,
      'cell was not listed completely',
      'cells were not listed completely',
    )
    if (facts.inventory.guard.kind === 'tripped') why.push(`the counts are implausible: ${facts.inventory.guard.why}`)
  }
  count(facts.newlyDenied, 'kind may not be listed', 'kinds may not be listed')
  const skipped = Object.entries(facts.verdicts).filter(([reason]) => !reasonOf(reason as VerdictReason).settled)
  count(
    skipped.reduce((sum, [, number]) => sum + number, 0),
    'group was skipped',
    'groups were skipped',
  )
  count(facts.deletionsInProgress, 'deletion is in progress', 'deletions are in progress')
  count(facts.deletionsToBegin ?? 0, 'deletion would begin', 'deletions would begin')
  // Also in report mode: as clean, the gate would close before the second inventory (orphans R77).
  count(facts.inQuarantine, 'orphan is in quarantine', 'orphans are in quarantine')
  count(facts.awaitingApproval, 'orphan waits for an approval', 'orphans wait for an approval')
  count(facts.awaitingLimit, 'orphan waits for a limit', 'orphans wait for a limit')
  count(facts.changed, 'orphan changed and was dropped', 'orphans changed and were dropped')
  count(facts.notSeen ?? 0, 'box was not seen, and a second look decides', 'boxes were not seen, and a second look decides')
  return { outcome: why.length > 0 ? 'unsettled' : 'clean', why }
}

/** orphans R76, R81: what a clean sweep proves is seen ends at its listing's start − margin, and never moves back. */
export const nextCleanAt = (before: number | null, listingStartedAt: number, marginMs: number): number =>
  Math.max(before ?? Number.NEGATIVE_INFINITY, listingStartedAt - marginMs)

export interface Cleanup {
  cleanAt: number | null
  cleanMode: SweepMode | null
  /** Failed sweeps in a row. */
  failures: number
}

/** orphans R76-R81: what a sweep leaves behind on its row. */
export const afterSweep = (before: Cleanup, ended: Ended, listingStartedAt: number, marginMs: number, mode: SweepMode): Cleanup => {
  switch (ended.outcome) {
    case 'failed':
      return { ...before, failures: before.failures + 1 }
    case 'unsettled':
      return { ...before, failures: 0 }
    case 'clean':
      return { cleanAt: nextCleanAt(before.cleanAt, listingStartedAt, marginMs), cleanMode: mode, failures: 0 }
  }
}

/**
 * orphans R35, R36, U1: interval × 2^(n−1), at most the larger of 6 h and the interval. Jitter only adds.
 * @param failures failed sweeps in a row, 0 after one that did not fail
 * @param jitter from 0 to 1, of the 20 % that may be added
 * @param circuitOpenUntil while the scope's circuit is open, the later of the two counts
 */
export const nextDue = (
  now: number,
  intervalMs: number,
  failures: number,
  jitter: number,
  circuitOpenUntil: number | null = null,
): number => {
  const delay = Math.min(intervalMs * 2 ** Math.max(0, failures - 1), Math.max(longestRetryMs, intervalMs))
  const share = Number.isFinite(jitter) ? Math.min(1, Math.max(0, jitter)) : 0
  return Math.max(now + delay + Math.floor(delay * 0.2 * share), circuitOpenUntil ?? 0)
}

const circuitMinutes = [5, 15, 45, 60] as const
/** leases R60: how long a scope is left alone after so many failures in a row; 0: its circuit is closed. */
export const circuitOpenMs = (failures: number): number =>
  failures < 3 ? 0 : (circuitMinutes[Math.min(failures - 3, circuitMinutes.length - 1)] as number) * 60_000

/** One account's listings, whichever backend they were for (leases R60). No circuit: the last one went well. */
export interface Circuit {
  /** In a row. */
  failures: number
  /** When the newest of them was noted. */
  failedAt: number
  /** Null: fewer failures than open it. */
  openUntil: number | null
}

/**
 * leases R60: one more failed listing. One that began before the newest failure was noted is the same failure, seen by another backend: ten backends of an
 * account that is down for a minute do not open its circuit by themselves.
 */
export const circuitAfterFailure = (before: Circuit | null, startedAt: number, now: number): Circuit => {
  if (before !== null && startedAt < before.failedAt) return before
  const failures = (before?.failures ?? 0) + 1
  const open = circuitOpenMs(failures)
  return { failures, failedAt: now, openUntil: open === 0 ? null : now + open }
}

/** What is left of it now; null: the account may be listed. */
export const circuitOpenUntil = (circuit: Pick<Circuit, 'openUntil'> | null | undefined, now: number): number | null =>
  circuit?.openUntil != null && circuit.openUntil > now ? circuit.openUntil : null

/**
 * What an account's circuit says, in the same words wherever it is told: `status`, `doctor`, `explain`.
 * @param openUntil when it is left alone until (ISO 8601); null: it is not, or not any more
 */
export const circuitText = (circuit: { failures: number; openUntil: string | null; error: string }): string =>
  `${counted(circuit.failures, 'listing')} in a row failed: ${circuit.error}; ${
    circuit.openUntil === null
      ? 'it is listed again by the next sweep that is due'
      : `no sweep of it begins by itself until ${circuit.openUntil}`
  }`

/** orphans R68: when an open finding is to be reported again. Never reported: at once; 0: at every cleanup. */
export const reportDueAt = (finding: { firstSeenAt: number; reportedAt: number | null }, reportEveryMs: number): number =>
  finding.reportedAt === null ? finding.firstSeenAt : finding.reportedAt + reportEveryMs
