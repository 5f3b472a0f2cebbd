/** All pure properties with the right decision, for whoever plays more worlds of them than a test does. */
import { i8, limitsTape, right } from './limits.ts'
import { missingHolds, quarantineHolds, quarantineTape, real as realQuarantine, realMissing } from './quarantine.ts'
import { holdsFor } from './tape.ts'
import { i10, i5, i6, real } from './verdicts.ts'
import { tapeLength } from './world.ts'

/** @throws where one does not hold */
export const properties: Readonly<Record<string, (worlds: number, seed: number) => void>> = {
  I5: (worlds, seed) => holdsFor(tapeLength, i5, real, worlds, seed),
  I6: (worlds, seed) => holdsFor(tapeLength, i6, real, worlds, seed),
  I8: (worlds, seed) => holdsFor(limitsTape, i8, right, worlds, seed),
  I10: (worlds, seed) => holdsFor(tapeLength, i10, real, worlds, seed),
  quarantine: (worlds, seed) => holdsFor(quarantineTape, quarantineHolds, realQuarantine, worlds, seed),
  missing: (worlds, seed) => holdsFor(quarantineTape, missingHolds, realMissing, worlds, seed),
}
