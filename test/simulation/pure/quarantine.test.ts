/** The quarantine and the absence of a bound resource over generated histories, beside those who cut them short. */
import { describe, it } from 'vitest'
import type { CompleteCell } from '../../../src/model/inventory.ts'
import { advance } from '../../../src/model/quarantine.ts'
import { location } from '../../model/sweep/build.ts'
import { missing } from '../../../src/model/missing.ts'
import { dies } from './dies.ts'
import { missingHolds, quarantineHolds, quarantineTape, real, realMissing, visibilityMs } from './quarantine.ts'
import { holdsFor, patience, worldsEach } from './tape.ts'

describe('the quarantine ends after two complete inventories and the grace, all unchanged', () => {
  it(`holds in ${worldsEach} worlds`, { timeout: patience }, () => holdsFor(quarantineTape, quarantineHolds, real, worldsEach))
  it('finds out who counts an incomplete inventory', () =>
    dies(quarantineTape, quarantineHolds, { ...real, advance: (before, sighting) => advance(before, { ...sighting, complete: true }) }))
  it('finds out who forgives a change that was reversed', () =>
    dies(quarantineTape, quarantineHolds, {
      ...real,
      advance: (before, sighting) =>
        sighting.kind === 'orphan' && before !== null
          ? advance(before, { ...sighting, fingerprint: before.fingerprint })
          : advance(before, sighting),
    }))
  it('finds out who keeps the clock of what was absent', () =>
    dies(quarantineTape, quarantineHolds, {
      ...real,
      advance: (before, sighting) => (sighting.kind === 'orphan' ? advance(before, sighting) : { kind: 'uncounted', quarantine: before }),
    }))
  it('finds out who goes by the time alone', () =>
    dies(quarantineTape, quarantineHolds, { ...real, isEligible: (quarantine, grace, now) => now >= quarantine.firstSeenAt + grace }))
  it('finds out who goes by the count alone', () =>
    dies(quarantineTape, quarantineHolds, { ...real, isEligible: (quarantine) => quarantine.timesSeen >= 2 }))
})

describe('missing is never concluded from what was not seen completely (I5, decisions 2)', () => {
  it(`holds in ${worldsEach / 4} worlds`, { timeout: patience }, () => holdsFor(quarantineTape, missingHolds, realMissing, worldsEach / 4))
  it('finds out who takes a partial cell for a complete one', () =>
    dies(quarantineTape, missingHolds, {
      ...realMissing,
      cell: ({ startedAt, endedAt }) => ({ location, kind: 'machine', startedAt, endedAt }) as unknown as CompleteCell,
    }))
  it('finds out who needs no exact read', () =>
    dies(quarantineTape, missingHolds, { ...realMissing, missing: (one, absence, _, rules) => missing(one, absence, 'absent', rules) }))
  it('finds out who is content with one inventory', () =>
    dies(quarantineTape, missingHolds, {
      ...realMissing,
      missing: (one, absence, read, rules) =>
        missing(one, absence && { ...absence, count: 2, lastAt: absence.firstAt + visibilityMs }, read, rules),
    }))
})
