/** The quarantine and the absence of a bound resource over generated histories, against a plain reading of the whole history. */
import { completeCell, sealInventory, type CompleteCell, type Inventory } from '../../../src/model/inventory.ts'
import { advanceAbsence, missing, type Absence, type BoundResource, type ExactRead } from '../../../src/model/missing.ts'
import { advance, isEligible, type Quarantine, type Sighting } from '../../../src/model/quarantine.ts'
import { hour, instance, location, margin, plausible, T } from '../../model/sweep/build.ts'
import type { Property } from './tape.ts'

export const quarantineTape = 48
export interface Decide {
  advance: typeof advance
  isEligible: typeof isEligible
}
const minute = 60_000

/** The last stretch of complete inventories that all show the same orphan. */
const stretchOf = (history: readonly Sighting[]): Sighting[] => {
  const complete = history.filter((one) => one.complete)
  const last = complete.at(-1)
  if (last?.kind !== 'orphan') return []
  const breakAt = complete.findLastIndex((one) => one.kind !== 'orphan' || one.fingerprint !== last.fingerprint)
  return complete.slice(breakAt + 1)
}

export const quarantineHolds: Property<Decide> = (tape, decide) => {
  const grace = tape.of([15, 5, 0, 60]) * minute
  const history: Sighting[] = []
  let current: Quarantine | null = null
  let at = T
  for (let i = tape.pick(10); i >= 0; i--) {
    at += tape.of([5, 15, 10, 1, 30]) * minute
    const complete = !tape.chance(25)
    const kind = tape.of(['orphan', 'orphan', 'orphan', 'orphan', 'absent', 'other'] as const)
    const sighting: Sighting =
      kind === 'orphan' ? { kind, fingerprint: tape.chance(15) ? 'f2' : 'f1', at, complete } : { kind, at, complete }
    history.push(sighting)
    const step = decide.advance(current, sighting)
    current = step.kind === 'ended' ? null : step.quarantine
    const eligible = current !== null && decide.isEligible(current, grace, at)
    const stretch = stretchOf(history)
    const expected = stretch.length >= 2 && stretch.at(-1)!.at >= stretch[0]!.at + grace
    if (eligible !== expected) throw new Error(`${eligible ? 'eligible' : 'not eligible'}, and its history says ${expected}`)
  }
}

export const real: Decide = { advance, isEligible }

export interface DecideMissing {
  advanceAbsence: typeof advanceAbsence
  missing: typeof missing
  cell: (inventory: Inventory) => CompleteCell | null
}
export const visibilityMs = 10_000
const bound: BoundResource = { instance: instance(), kind: 'machine', location, nativeId: 'i-1', immutableId: 'uid-1', boundAt: T - hour }
const policy = { visibilityMs, marginMs: margin }

/** I5 again, over time: missing is said only after two complete, plausible inventories apart since it was last seen, and a read that found nothing. */
export const missingHolds: Property<DecideMissing> = (tape, decide) => {
  let absence: Absence | null = null
  let missed: number[] = []
  let at = T
  for (let i = tape.pick(8); i >= 0; i--) {
    at += tape.of([10_000, 5000, 20_000, 9999])
    const state = tape.chance(30) ? ({ kind: 'partial', why: 'a page failed' } as const) : ({ kind: 'complete' } as const)
    const implausible = tape.chance(10)
    const expectation = { ...plausible, expected: implausible ? 10 : 0 }
    const coverage = [{ location, kind: 'machine', state, pages: 1 }]
    const sealed = sealInventory({
      startedAt: at,
      endedAt: at + 400,
      locations: [location],
      kinds: ['machine'],
      coverage,
      resources: new Map(),
      expectation,
    })
    const seen = tape.chance(15)
    if (seen) missed = []
    else if (state.kind === 'complete' && !implausible) missed.push(at)
    absence = decide.advanceAbsence(absence, bound, seen, decide.cell(sealed), policy)
    const read = tape.of(['absent', 'absent', 'unknown', 'present', null] as const satisfies readonly ExactRead[])
    const said = decide.missing(bound, absence, read, policy).kind === 'missing'
    const expected = read === 'absent' && missed.length >= 2 && missed.at(-1)! - missed[0]! >= visibilityMs
    if (said !== expected) throw new Error(`said ${said}, and its history says ${expected}`)
  }
}

const cellOf = (inventory: Inventory): CompleteCell | null => completeCell(inventory, location, 'machine')
export const realMissing: DecideMissing = { advanceAbsence, missing, cell: cellOf }
