import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expiresAt, hardEnd } from '../../src/model/clocks.ts'
import { decideDue, decideHeartbeat, decideRelease, isLive, type LeaseFacts, type ReleaseDecision } from '../../src/model/lease.ts'
import { leaseStates, type LeaseState } from '../../src/model/wire.ts'
import { anyNumber, leaseFacts, t0, time } from './arbitraries.ts'

const lease = (over: Partial<LeaseFacts> = {}): LeaseFacts => {
  const own = { createdAt: t0, lastTouchedAt: t0, ttlSeconds: 5400, idleSeconds: 1800, ...over }
  return {
    state: 'active',
    expiresAt: expiresAt(own),
    keep: false,
    releaseDeletes: null,
    retainUntil: null,
    idleWarnedFor: null,
    ...own,
    ...over,
  }
}
const terminal: readonly LeaseState[] = ['released', 'expired', 'failed']
const live: readonly LeaseState[] = ['provisioning', 'active']

describe('a heartbeat', () => {
  it.each([
    [-1, 'accepted'],
    [0, 'lease_expired'],
    [1, 'lease_expired'],
  ])('%d ms from the end: %s (leases R20, case G13)', (offset, answer) => {
    for (const state of live) {
      const own = lease({ state })
      const decision = decideHeartbeat(own, false, own.expiresAt + offset)
      expect(decision.kind === 'refused' ? decision.code : decision.kind).toBe(answer)
    }
  })

  it('moves the end to now + idle, never past createdAt + ttl, however long the idle time that it asks for (leases R16, R19)', () => {
    fc.assert(
      fc.property(leaseFacts, time, anyNumber, (own, now, idle) => {
        const decision = decideHeartbeat(own, false, now, idle)
        if (decision.kind === 'refused') return
        expect(decision.expiresAt).toBeLessThanOrEqual(hardEnd(own))
        expect(decision.idleSeconds).toBeGreaterThanOrEqual(1)
        expect(decision.idleSeconds).toBeLessThanOrEqual(86_400)
        if (idle == null) expect(decision.expiresAt).toBe(Math.max(own.expiresAt, Math.min(hardEnd(own), now + own.idleSeconds * 1000)))
      }),
    )
  })

  it.each([null, undefined, 0, -5, Number.NaN, Infinity, -Infinity])('an idle time of %s is ignored (leases R23, case G7)', (idle) => {
    expect(decideHeartbeat(lease(), false, t0 + 1000, idle)).toEqual({
      kind: 'accepted',
      idleSeconds: 1800,
      expiresAt: t0 + 1000 + 1_800_000,
    })
  })

  it.each([
    [0.4, 1],
    [5.9, 5],
    [86_401, 86_400],
  ])('an idle time of %d s is taken as %d s (leases R23)', (idle, seconds) => {
    const decision = decideHeartbeat(lease({ ttlSeconds: 86_400 }), false, t0, idle)
    expect(decision).toEqual({ kind: 'accepted', idleSeconds: seconds, expiresAt: t0 + seconds * 1000 })
  })

  it('a shorter idle time brings the end forward; a plain beat never takes back what a downtime gave (leases R23, decisions 1)', () => {
    const forgiven = lease({ expiresAt: t0 + 1_900_000 })
    expect(decideHeartbeat(forgiven, false, t0 + 10_000)).toMatchObject({ expiresAt: t0 + 1_900_000 })
    expect(decideHeartbeat(forgiven, false, t0 + 10_000, 60)).toMatchObject({ expiresAt: t0 + 70_000 })
  })

  it.each(terminal)('is refused on a lease that is %s, with a removal open or not (leases R21, I9)', (state) => {
    for (const open of [true, false])
      expect(decideHeartbeat(lease({ state }), open, t0)).toMatchObject({ kind: 'refused', code: 'lease_ended' })
  })

  it('a removal that is under way comes before state and expiry (leases R21)', () => {
    for (const now of [t0, t0 + 1_800_000])
      expect(decideHeartbeat(lease(), true, now)).toMatchObject({ kind: 'refused', code: 'cleanup_in_progress' })
  })
})

describe('a release (leases R30-R33)', () => {
  const now = { kind: 'remove', endsNow: true }
  const later = { kind: 'remove', endsNow: false }
  const retain = { kind: 'retain' }
  const same = { kind: 'unchanged' }
  const conflict = { kind: 'refused', code: 'cleanup_in_progress' }
  type Row = readonly [
    states: readonly LeaseState[],
    keep: boolean,
    removal: 'none' | 'open' | 'gone',
    remove: boolean | undefined,
    expected: object,
  ]
  const table: readonly Row[] = [
    [live, false, 'none', undefined, now],
    [live, false, 'none', true, now],
    [live, false, 'none', false, retain],
    [live, true, 'none', undefined, retain],
    [live, true, 'none', true, now],
    [live, true, 'none', false, retain],
    // Its expiry has ordered a removal, which may have failed: the release ends the lease, and can no longer keep the box.
    [live, false, 'open', undefined, now],
    [live, false, 'open', true, now],
    [live, false, 'open', false, conflict],
    [live, true, 'open', undefined, same],
    [live, true, 'open', true, now],
    [live, true, 'open', false, conflict],
    [terminal, false, 'none', undefined, same],
    [terminal, false, 'none', true, same],
    [terminal, false, 'none', false, same],
    [terminal, true, 'none', undefined, same],
    [terminal, true, 'none', true, same],
    [terminal, true, 'none', false, same],
    [terminal, false, 'open', undefined, same],
    [terminal, false, 'open', true, same],
    [terminal, false, 'open', false, conflict],
    [terminal, true, 'open', undefined, same],
    [terminal, true, 'open', true, same],
    [terminal, true, 'open', false, conflict],
    [terminal, false, 'gone', undefined, same],
    [terminal, false, 'gone', true, same],
    [terminal, false, 'gone', false, same],
    [terminal, true, 'gone', undefined, same],
    [terminal, true, 'gone', true, same],
    [terminal, true, 'gone', false, same],
  ]
  it.each(table)('of one that is %j, keep %s, removal %s, delete %s: %j', (states, keep, removal, remove, expected) => {
    for (const state of states) expect(decideRelease(lease({ state, keep }), removal, remove)).toMatchObject(expected)
  })

  it.each([
    [true, later],
    [false, same],
    [undefined, same],
  ] as const)('of a retained box with delete %s: %j (leases R32)', (remove, expected) => {
    for (const keep of [true, false])
      expect(decideRelease(lease({ state: 'released', keep, releaseDeletes: false, retainUntil: t0 }), 'none', remove)).toMatchObject(
        expected,
      )
  })

  it.each(['none', 'open', 'gone'] as const)(
    'is safe to repeat: with removal %s the second answer changes nothing (leases R31)',
    (removal) => {
      for (const remove of [true, undefined]) {
        const again = decideRelease(lease({ state: 'released', releaseDeletes: true }), removal, remove)
        expect(again).toEqual(same)
      }
    },
  )
})

describe('what the due time of a lease means', () => {
  it.each([
    ['active', -360_001, { kind: 'later', at: t0 + 1_440_000 }],
    ['active', -1, { kind: 'warn-idle', at: t0 + 1_800_000, leftSeconds: 1 }],
    ['active', 0, { kind: 'expire' }],
    ['provisioning', -1, { kind: 'later', at: t0 + 1_800_000 }],
    ['provisioning', 0, { kind: 'expire-provisioning' }],
    ['released', 0, { kind: 'nothing' }],
    ['expired', 0, { kind: 'nothing' }],
    ['failed', 0, { kind: 'nothing' }],
  ] as const)('%s, %d ms from its end: %j', (state, offset, expected) => {
    const own = lease({ state })
    expect(decideDue(own, own.expiresAt + offset)).toEqual(expected)
    // keep exempts from neither clock (leases R36).
    expect(decideDue({ ...own, keep: true }, own.expiresAt + offset)).toEqual(expected)
  })

  it.each([
    [t0 - 1, false],
    [t0, true],
    [t0 + 1, true],
  ])('a retained box at %d: overdue %s, and never a removal (leases R37)', (now, overdue) => {
    expect(decideDue(lease({ state: 'released', releaseDeletes: false, retainUntil: t0 }), now)).toEqual({ kind: 'retained', overdue })
  })

  it('it is expired if and only if a heartbeat at the same time would come too late', () => {
    fc.assert(
      fc.property(leaseFacts, time, (own, now) => {
        fc.pre(isLive(own.state))
        const expires = ['expire', 'expire-provisioning'].includes(decideDue(own, now).kind)
        expect(expires).toBe(decideHeartbeat(own, false, now).kind === 'refused')
      }),
    )
  })

  it('looking again is never put off past the end', () => {
    fc.assert(
      fc.property(leaseFacts, time, (own, now) => {
        const due = decideDue(own, now)
        if (due.kind !== 'later') return
        expect(due.at).toBeLessThanOrEqual(own.expiresAt)
        expect(due.at).toBeGreaterThan(now)
      }),
    )
  })
})

describe('an end is an end (I9)', () => {
  type Step =
    | { do: 'beat'; idle: number | null }
    | { do: 'release'; remove: boolean | undefined; removal: 'none' | 'open' | 'gone' }
    | { do: 'due' }
    | { do: 'removal-accepted' }
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constant('beat' as const), idle: fc.option(fc.double()) }),
    fc.record({
      do: fc.constant('release' as const),
      remove: fc.constantFrom(true, false, undefined),
      removal: fc.constantFrom('none' as const, 'open' as const, 'gone' as const),
    }),
    fc.record({ do: fc.constant('due' as const) }),
    fc.record({ do: fc.constant('removal-accepted' as const) }),
  )
  const released = (own: LeaseFacts, decision: ReleaseDecision): LeaseFacts => {
    if (decision.kind === 'retain') return { ...own, state: 'released', releaseDeletes: false }
    if (decision.kind !== 'remove') return own
    return { ...own, state: decision.endsNow ? 'released' : own.state, releaseDeletes: true }
  }
  /** Carries a decision out, as hosts and pipelines do. */
  const take = (own: LeaseFacts, at: Step, now: number): LeaseFacts => {
    switch (at.do) {
      case 'beat': {
        const decision = decideHeartbeat(own, false, now, at.idle)
        return decision.kind === 'refused'
          ? own
          : { ...own, lastTouchedAt: now, expiresAt: decision.expiresAt, idleSeconds: decision.idleSeconds }
      }
      case 'release':
        return released(own, decideRelease(own, at.removal, at.remove))
      case 'due': {
        const due = decideDue(own, now)
        return due.kind === 'expire-provisioning' ? { ...own, state: 'failed' } : own
      }
      case 'removal-accepted':
        return decideDue(own, now).kind === 'expire' ? { ...own, state: 'expired' } : own
    }
  }

  it('no sequence of heartbeats, releases and due decisions revives a lease, or lets one that is past its end beat again', () => {
    fc.assert(
      fc.property(leaseFacts, fc.array(fc.tuple(step, fc.nat({ max: 4_000_000 })), { maxLength: 40 }), (start, steps) => {
        let own = start
        let now = own.createdAt
        let over = false
        for (const [at, later] of steps) {
          now += later
          const before = own
          own = take(own, at, now)
          if (terminal.includes(before.state)) expect(own.state).toBe(before.state)
          if (over && at.do === 'beat') expect(own).toEqual(before)
          over ||= before.expiresAt <= now || terminal.includes(own.state)
          expect(own.expiresAt).toBeLessThanOrEqual(hardEnd(own))
        }
      }),
      { numRuns: 500 },
    )
  })

  it('what has ended is not asked to end once more', () => {
    fc.assert(
      fc.property(leaseFacts, time, fc.constantFrom(true, false, undefined), (own, now, remove) => {
        fc.pre(!isLive(own.state))
        expect(['nothing', 'retained']).toContain(decideDue(own, now).kind)
        for (const removal of ['none', 'open', 'gone'] as const) {
          const decision = decideRelease(own, removal, remove)
          expect(decision).not.toMatchObject({ endsNow: true })
          expect(decision.kind).not.toBe('retain')
        }
      }),
    )
  })

  it('every state is either live or terminal', () => {
    expect([...live, ...terminal].toSorted()).toEqual([...leaseStates].toSorted())
    expect(leaseStates.filter(isLive)).toEqual(live)
  })
})
