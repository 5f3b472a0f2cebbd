import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  cellKey,
  cellOf,
  cellsNot,
  completeCell,
  countsFor,
  judgeCounts,
  provesAbsence,
  sealInventory,
  type CompleteCell,
  type CoverageReport,
  type ListingReport,
} from '../../../src/model/inventory.ts'
import type { SeenResource } from '../../../src/model/evidence.ts'
import type { Coverage, ListedResource } from '../../../src/providers/contract.ts'
import { complete, denied, inventory, location, partial, plausible, T } from './build.ts'

const listing = (coverage: CoverageReport[], patch: Partial<ListingReport> = {}): ListingReport => ({
  startedAt: T,
  endedAt: T + 400,
  locations: [location],
  kinds: ['machine'],
  coverage,
  resources: new Map(),
  expectation: plausible,
  ...patch,
})
const cell = (state: CoverageReport['state'], pages = 1): CoverageReport => ({ location, kind: 'machine', state, pages })

describe('a sealed inventory', () => {
  it('takes what a provider lists as it is', () => {
    expectTypeOf<ListedResource>().toExtend<SeenResource>()
    expectTypeOf<Coverage>().toExtend<CoverageReport>()
  })

  it('gives a complete cell only for a complete one (I5)', () => {
    expect(completeCell(inventory(), location, 'machine')).toMatchObject({ location, kind: 'machine', startedAt: T, endedAt: T + 400 })
    expect(completeCell(inventory({ [`${location}/machine`]: partial }), location, 'machine')).toBeNull()
    expect(completeCell(inventory({ [`${location}/machine`]: denied }), location, 'machine')).toBeNull()
    expect(completeCell(inventory(), 'elsewhere', 'machine')).toBeNull()
    expect(completeCell(inventory(), location, 'volume')).toBeNull()
  })

  it('can not be passed off by a look-alike: the types refuse it', () => {
    // @ts-expect-error the brand is this file's own
    const forged: CompleteCell = { location, kind: 'machine', startedAt: T, endedAt: T }
    expect(forged).toBeDefined()
    // Nor does the index follow a copy of the value.
    expect(completeCell({ ...inventory() }, location, 'machine')).toBeNull()
  })

  it('calls a cell that nobody reported partial (orphans R21)', () => {
    expect(cellOf(sealInventory(listing([])), location, 'machine')?.state).toMatchObject({ kind: 'partial' })
  })

  it('calls a cell that was complete without a page partial (orphan case 10)', () => {
    expect(cellOf(sealInventory(listing([cell(complete, 0)])), location, 'machine')?.state.kind).toBe('partial')
    expect(cellOf(sealInventory(listing([cell(complete, 1)])), location, 'machine')?.state.kind).toBe('complete')
  })

  it.each([
    [[complete, partial], 'partial'],
    [[partial, complete], 'partial'],
    [[partial, denied], 'denied'],
    [[denied, complete], 'denied'],
    [[complete, complete], 'complete'],
  ] as const)('of several reports on one cell %j the worst counts', (states, expected) => {
    const sealed = sealInventory(listing(states.map((state) => cell(state))))
    expect(cellOf(sealed, location, 'machine')).toMatchObject({ state: { kind: expected }, pages: 2 })
  })

  it('counts pages and resources', () => {
    const sealed = sealInventory(listing([cell(complete, 3)], { resources: new Map([[cellKey(location, 'machine'), 250]]) }))
    expect(sealed).toMatchObject({ pages: 3, resources: 250, cells: [{ pages: 3, resources: 250 }] })
  })

  it('one region down leaves the others as they are, and says which it was (orphan case 6, orphans R78, case I7)', () => {
    const sealed = inventory({ 'sim-b/machine': denied })
    expect(completeCell(sealed, location, 'machine')).not.toBeNull()
    expect(cellsNot(sealed, 'complete')).toEqual([expect.objectContaining({ location: 'sim-b', kind: 'machine', state: denied })])
  })

  it('counts for quarantines only where nothing is partial and the owner’s kind is complete (leases R55, orphans R102)', () => {
    const counts = (states: Parameters<typeof inventory>[0]) => countsFor(inventory(states), location, 'machine')
    expect(counts({})).toBe(true)
    expect(counts({ [`${location}/disk`]: denied })).toBe(true)
    expect(counts({ 'sim-b/machine': partial })).toBe(true)
    expect(counts({ [`${location}/disk`]: partial })).toBe(false)
    expect(counts({ [`${location}/machine`]: denied })).toBe(false)
  })
})

describe('the guard on counts (decisions)', () => {
  it.each([
    ['nothing expected and nothing seen', {}, 'passed'],
    ['4 expected, none seen: too few to say', { expected: 4, seen: 0 }, 'passed'],
    ['5 expected, 4 seen: exactly 80 %', { expected: 5, seen: 4 }, 'passed'],
    ['5 expected, 3 seen', { expected: 5, seen: 3 }, 'tripped'],
    ['1000 expected, 800 seen', { expected: 1000, seen: 800 }, 'passed'],
    ['1000 expected, 799 seen', { expected: 1000, seen: 799 }, 'tripped'],
    ['1000 expected, 700 seen, 100 proved absent by exact reads', { expected: 1000, seen: 700, explained: 100 }, 'passed'],
    ['1000 expected, 700 seen, 99 proved absent', { expected: 1000, seen: 700, explained: 99 }, 'tripped'],
    ['tags unreadable on exactly 20 %', { hadTags: 1000, unreadable: 200 }, 'passed'],
    ['tags unreadable on 201 of 1000', { hadTags: 1000, unreadable: 201 }, 'tripped'],
    ['tags unreadable on 950 of 1000 (case I2)', { hadTags: 1000, unreadable: 950 }, 'tripped'],
    ['a person let it pass', { expected: 5, seen: 0, letPassBy: 'ada' }, 'let-pass'],
    ['a person let pass what needed it not', { expected: 5, seen: 5, letPassBy: 'ada' }, 'passed'],
  ] as const)('%s: %j is %s', (_, counts, expected) => {
    expect(judgeCounts({ ...plausible, ...counts }).kind).toBe(expected)
  })

  it('once tripped, proves no absence and counts for no quarantine; let pass, it does', () => {
    const tripped = inventory({}, { expectation: { expected: 10, seen: 2 } })
    expect(provesAbsence(tripped)).toBe(false)
    expect(completeCell(tripped, location, 'machine')).toBeNull()
    expect(countsFor(tripped, location, 'machine')).toBe(false)
    const passed = inventory({}, { expectation: { expected: 10, seen: 2, letPassBy: 'ada' } })
    expect(completeCell(passed, location, 'machine')).not.toBeNull()
    expect(countsFor(passed, location, 'machine')).toBe(true)
  })
})
