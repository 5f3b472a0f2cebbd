import { describe, expect, it } from 'vitest'
import { completeCell } from '../../../src/model/inventory.ts'
import {
  advanceAbsence,
  missing,
  type Absence,
  type AbsencePolicy,
  type BoundResource,
  type ExactRead,
} from '../../../src/model/missing.ts'
import { denied, ended, hour, instance, inventory, location, margin, partial, T } from './build.ts'

const policy: AbsencePolicy = { visibilityMs: 10_000, marginMs: margin }
const bound: BoundResource = { instance: instance(), kind: 'machine', location, nativeId: 'i-1', immutableId: 'uid-1', boundAt: T - hour }
const cellAt = (at: number, states: Parameters<typeof inventory>[0] = {}) => completeCell(inventory(states, { at }), location, 'machine')
const unseen = (before: Absence | null, at: number, states: Parameters<typeof inventory>[0] = {}) =>
  advanceAbsence(before, bound, false, cellAt(at, states), policy)
const twice = unseen(unseen(null, T), T + 10_000)

describe('a box that vanished (decisions 2)', () => {
  it('is missing after two complete inventories apart and an exact read that does not find it', () => {
    expect(twice).toEqual({ firstAt: T, lastAt: T + 10_000, count: 2 })
    expect(missing(bound, twice, null, policy)).toEqual({ kind: 'read' })
    expect(missing(bound, twice, 'absent', policy)).toMatchObject({ kind: 'missing', verdict: { reason: 'missing.proved' } })
  })

  it.each<ExactRead>(['present', 'unknown', 'replaced'])('is not when the exact read says %s (case E1)', (read) => {
    expect(missing(bound, twice, read, policy).kind).toBe('nothing')
  })

  it.each([
    ['no inventory missed it', null],
    ['only one did', unseen(null, T)],
    ['the two are too close', unseen(unseen(null, T), T + 9999)],
  ] as const)('is not, whatever a read says, when %s', (_, absence) => {
    expect(missing(bound, absence, 'absent', policy).kind).toBe('nothing')
    expect(missing(bound, absence, null, policy).kind).toBe('nothing')
  })

  it.each([
    ['partial', partial],
    ['denied', denied],
  ])('a %s cell does nothing: it neither counts nor forgets (I5, orphan case 10)', (_, state) => {
    const states = { [`${location}/machine`]: state }
    expect(unseen(null, T, states)).toBeNull()
    const once = unseen(null, T)
    expect(unseen(once, T + 10_000, states)).toEqual(once)
    expect(unseen(unseen(once, T + 5000, states), T + 10_000)).toEqual(twice)
  })

  it('an implausible inventory does nothing', () => {
    const sealed = inventory({}, { at: T, expectation: { expected: 10, seen: 0 } })
    expect(advanceAbsence(null, bound, false, completeCell(sealed, location, 'machine'), policy)).toBeNull()
  })

  it('a complete cell of another location or kind says nothing of it', () => {
    expect(advanceAbsence(null, { ...bound, location: 'sim-b' }, false, cellAt(T), policy)).toBeNull()
    expect(advanceAbsence(null, { ...bound, kind: 'disk' }, false, cellAt(T), policy)).toBeNull()
  })

  it('being seen ends it, also from an incomplete inventory', () => {
    expect(advanceAbsence(twice, bound, true, null, policy)).toBeNull()
  })

  it('the same inventory never counts twice', () => {
    const once = unseen(null, T)
    expect(unseen(once, T)).toEqual(once)
    expect(missing(bound, unseen(once, T), 'absent', { ...policy, visibilityMs: 0 }).kind).toBe('nothing')
  })

  it.each([
    [T - 10_000, null],
    [T - 10_001, { firstAt: T, lastAt: T, count: 1 }],
  ])(
    'a listing that began at T says nothing of what was bound at %d: an empty list right after a create (case J5)',
    (boundAt, expected) => {
      expect(advanceAbsence(null, { ...bound, boundAt }, false, cellAt(T), policy)).toEqual(expected)
    },
  )

  it('is no question for an instance that has ended', () => {
    expect(missing({ ...bound, instance: ended() }, twice, 'absent', policy).kind).toBe('nothing')
  })
})
