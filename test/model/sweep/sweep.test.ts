import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterSweep,
  circuitAfterFailure,
  circuitOpenMs,
  circuitOpenUntil,
  fullSweepMs,
  gateOpen,
  nextCleanAt,
  nextDue,
  reportDueAt,
  sweepOutcome,
  type GateFacts,
  type SweepFacts,
} from '../../../src/model/sweep.ts'
import { denied, hour, inventory, margin, partial, T } from './build.ts'

const minute = 60_000
/** An idle project, listed an hour ago and clean. */
const idle: GateFacts = {
  mode: 'report',
  now: T,
  marginMs: margin,
  cleanAt: T - hour - margin,
  cleanMode: 'report',
  lastOutcome: 'clean',
  lastListingAt: T - hour,
  instanceActivityAt: T - 5 * hour,
  jobActivityAt: null,
  lastClosedAt: null,
  openOrphans: 0,
  reportDueAt: null,
  deniedKindReadable: false,
}

describe('the activity gate (orphans R40-R44)', () => {
  it('stays shut for an idle project that was clean (R41)', () => {
    expect(gateOpen(idle)).toEqual([])
  })

  it.each<[string, Partial<GateFacts>, string[]]>([
    ['never cleaned', { cleanAt: null, cleanMode: null }, ['never-cleaned']],
    ['the mode is another one (R43)', { mode: 'delete' }, ['mode-changed']],
    ['an instance was active at the watermark', { instanceActivityAt: T - hour - margin }, ['instance-activity']],
    ['an instance was active one ms before', { instanceActivityAt: T - hour - margin - 1 }, []],
    ['a job was active (R42)', { jobActivityAt: T - hour - margin }, ['job-activity']],
    ['a job was active one ms before', { jobActivityAt: T - hour - margin - 1 }, []],
    ['the last one failed (R98)', { lastOutcome: 'failed' }, ['last-not-clean']],
    ['the last one was unsettled', { lastOutcome: 'unsettled' }, ['last-not-clean']],
    ['an orphan is open and the mode is delete', { mode: 'delete', cleanMode: 'delete', openOrphans: 1 }, ['orphan-open']],
    ['an orphan is open and the mode is report', { openOrphans: 1 }, []],
    ['a report is due (R68, U6)', { reportDueAt: T }, ['report-due']],
    ['a report is due in a ms', { reportDueAt: T + 1 }, []],
    ['a denied kind can be listed now (R102)', { deniedKindReadable: true }, ['permission-appeared']],
    [
      '24 h since the last listing',
      { lastListingAt: T - fullSweepMs, cleanAt: T - fullSweepMs - margin, instanceActivityAt: null },
      ['full-sweep'],
    ],
    ['a ms less', { lastListingAt: T - fullSweepMs + 1, cleanAt: T - fullSweepMs - margin, instanceActivityAt: null }, []],
    [
      'an owner closed within 15 min + margin before the last listing',
      { lastClosedAt: T - hour - 15 * minute - margin + 1 },
      ['late-surfacing'],
    ],
    ['an owner closed exactly so long before', { lastClosedAt: T - hour - 15 * minute - margin }, []],
    ['several at once', { lastOutcome: 'failed', reportDueAt: T - 1 }, ['last-not-clean', 'report-due']],
  ])('%s', (_, patch, reasons) => {
    expect(gateOpen({ ...idle, ...patch })).toEqual(reasons)
  })

  it('off lists nothing, whatever else is true (R33, R73, R75a)', () => {
    const everything = { mode: 'off', cleanAt: null, lastOutcome: 'failed', openOrphans: 3, reportDueAt: 0, lastListingAt: null } as const
    expect(gateOpen({ ...idle, ...everything })).toEqual([])
    expect(gateOpen({ ...idle, ...everything, mode: 'report' })).not.toEqual([])
  })

  it('a stalled worker’s create that surfaces after one clean sweep is found within an interval, not after 24 h (R40)', () => {
    // Its owner was closed 20 s before the listing that ended clean; nothing else ever happens in the project.
    const closed = T - 20_000
    const clean = { ...idle, cleanAt: T - margin, lastListingAt: T, instanceActivityAt: closed, lastClosedAt: closed, now: T + 15 * minute }
    expect(gateOpen(clean)).toEqual(['late-surfacing'])
  })
})

const quiet: SweepFacts = {
  listing: 'listed',
  inventory: inventory(),
  verdicts: { 'tracked.bound': 3, 'foreign.unknown-ref': 2 },
  deletionsFailed: 0,
  deletionsInProgress: 0,
  inQuarantine: 0,
  awaitingApproval: 0,
  awaitingLimit: 0,
  changed: 0,
  newlyDenied: 0,
}
const outcome = (patch: Partial<SweepFacts>) => sweepOutcome({ ...quiet, ...patch }).outcome

describe('how a sweep ended (orphans R76-R79)', () => {
  it.each<[string, Partial<SweepFacts>, string]>([
    ['everything listed and handled (R76)', {}, 'clean'],
    ['an orphan that was reported', { verdicts: { 'orphan.owner-ended': 1 } }, 'clean'],
    ['an orphan under a hold (R77)', { verdicts: { 'protected.hold': 1, 'protected.keep': 1 } }, 'clean'],
    ['a contradiction (R77)', { verdicts: { 'contradiction.tags-only': 1 } }, 'clean'],
    ['a malformed ref (case B4)', { verdicts: { 'foreign.malformed-ref': 3 } }, 'clean'],
    ['a contradiction of U5', { verdicts: { 'contradiction.no-provisioning-data': 1 } }, 'unsettled'],
    ['a group in flight (R52)', { verdicts: { 'inFlight.pending': 1 } }, 'unsettled'],
    ['a group skipped by the margin (R64)', { verdicts: { 'settling.changed': 1 } }, 'unsettled'],
    ['a group that could not be seen (R57a)', { verdicts: { 'unseen.owner-kind': 1 } }, 'unsettled'],
    ['unreadable labels', { verdicts: { 'protected.labels-unreadable': 1 } }, 'unsettled'],
    ['a region that failed (R77, orphan case 6)', { inventory: inventory({ 'sim-b/machine': partial }) }, 'unsettled'],
    ['a denied kind that was not reported before (R102)', { inventory: inventory({ 'sim-b/ip': denied }), newlyDenied: 1 }, 'unsettled'],
    ['a denied kind that was', { inventory: inventory({ 'sim-b/ip': denied }) }, 'clean'],
    ['implausible counts', { inventory: inventory({}, { expectation: { expected: 10, seen: 1 } }) }, 'unsettled'],
    ['a deletion in progress (R71)', { deletionsInProgress: 1 }, 'unsettled'],
    ['an orphan in quarantine (R77)', { inQuarantine: 1 }, 'unsettled'],
    ['an orphan that waits for an approval', { awaitingApproval: 1 }, 'unsettled'],
    ['an orphan that waits for a limit', { awaitingLimit: 1 }, 'unsettled'],
    ['an orphan dropped because it changed', { changed: 1 }, 'unsettled'],
    ['another account (R100)', { listing: 'stranded', inventory: null, verdicts: {} }, 'unsettled'],
    ['a listing that raised (R79)', { listing: 'raised', inventory: null }, 'failed'],
    ['a deletion that failed (R72)', { deletionsFailed: 1 }, 'failed'],
    ['failed before unsettled', { deletionsFailed: 1, inQuarantine: 4, inventory: inventory({ 'sim-b/machine': partial }) }, 'failed'],
  ])('%s', (_, patch, expected) => {
    expect(outcome(patch)).toBe(expected)
    const ended = sweepOutcome({ ...quiet, ...patch })
    expect(ended.why.length > 0).toBe(expected !== 'clean')
  })

  const before = { cleanAt: T - hour, cleanMode: 'report', failures: 3 } as const
  it('clean moves the watermark to listing − margin, remembers the mode and resets the delay (R76, R80)', () => {
    expect(afterSweep(before, { outcome: 'clean', why: [] }, T, margin, 'delete')).toEqual({
      cleanAt: T - margin,
      cleanMode: 'delete',
      failures: 0,
    })
  })
  it('unsettled leaves watermark and mode, and resets the delay (R77)', () => {
    expect(afterSweep(before, { outcome: 'unsettled', why: ['x'] }, T, margin, 'delete')).toEqual({ ...before, failures: 0 })
  })
  it('failed leaves both, and counts (R79)', () => {
    expect(afterSweep(before, { outcome: 'failed', why: ['x'] }, T, margin, 'delete')).toEqual({ ...before, failures: 4 })
  })
  it('the watermark never moves back (R81)', () => {
    expect(nextCleanAt(T, T - hour, margin)).toBe(T)
    expect(nextCleanAt(T, T + margin, margin)).toBe(T)
    expect(nextCleanAt(T, T + margin + 1, margin)).toBe(T + 1)
    expect(nextCleanAt(null, T, margin)).toBe(T - margin)
  })
})

describe('when the next one is due (orphans R35, R36, U1)', () => {
  const interval = 900_000
  it.each([
    [0, 900],
    [1, 900],
    [2, 1800],
    [3, 3600],
    [5, 14_400],
    [6, 21_600],
    [7, 21_600],
    [5000, 21_600],
  ])('after %d failures in a row: %d s', (failures, seconds) => {
    expect(nextDue(T, interval, failures, 0)).toBe(T + seconds * 1000)
  })

  it('an interval above 6 h is its own cap', () => {
    expect(nextDue(T, 12 * hour, 9, 0)).toBe(T + 12 * hour)
  })

  it('jitter only adds, up to 20 %', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 * hour }), fc.nat(40), fc.double(), (every, failures, jitter) => {
        const plain = nextDue(T, every, failures, 0) - T
        const delay = nextDue(T, every, failures, jitter) - T
        expect(delay).toBeGreaterThanOrEqual(Math.max(every, plain))
        expect(delay).toBeLessThanOrEqual(plain * 1.2)
      }),
    )
  })

  it('while a scope’s circuit is open, the later of the two counts (leases R60)', () => {
    expect(nextDue(T, interval, 0, 0, T + hour)).toBe(T + hour)
    expect(nextDue(T, interval, 0, 0, T + 1)).toBe(T + interval)
  })

  it.each([
    [0, 0],
    [2, 0],
    [3, 5],
    [4, 15],
    [5, 45],
    [6, 60],
    [100, 60],
  ])('after %d failures a scope is left alone for %d min (leases R60)', (failures, minutes) => {
    expect(circuitOpenMs(failures)).toBe(minutes * minute)
  })

  it('failures of one account in a row open its circuit, and those that were under way together are one (leases R60)', () => {
    const first = circuitAfterFailure(null, T, T + 10)
    expect(first).toEqual({ failures: 1, failedAt: T + 10, openUntil: null })
    // Another backend's listing, begun before that failure was noted, saw the same trouble.
    expect(circuitAfterFailure(first, T + 9, T + 20)).toBe(first)
    const second = circuitAfterFailure(first, T + 10, T + 30)
    expect(second).toMatchObject({ failures: 2, openUntil: null })
    const third = circuitAfterFailure(second, T + 30, T + 40)
    expect(third).toEqual({ failures: 3, failedAt: T + 40, openUntil: T + 40 + 5 * minute })
    expect(circuitAfterFailure(third, T + hour, T + hour).openUntil).toBe(T + hour + 15 * minute)
  })

  it('a circuit is open until its time, and not at it (leases R60)', () => {
    expect(circuitOpenUntil({ openUntil: T }, T - 1)).toBe(T)
    expect(circuitOpenUntil({ openUntil: T }, T)).toBeNull()
    expect(circuitOpenUntil({ openUntil: null }, T)).toBeNull()
    expect(circuitOpenUntil(undefined, T)).toBeNull()
  })

  it('a finding is reported when it appears, then every reportEvery; 0: at every cleanup (R68)', () => {
    expect(reportDueAt({ firstSeenAt: T, reportedAt: null }, 24 * hour)).toBe(T)
    expect(reportDueAt({ firstSeenAt: T - hour, reportedAt: T }, 24 * hour)).toBe(T + 24 * hour)
    expect(reportDueAt({ firstSeenAt: T - hour, reportedAt: T }, 0)).toBe(T)
  })
})
