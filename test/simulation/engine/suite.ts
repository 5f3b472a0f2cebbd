/** The worlds that a run of the suite plays, in several files so that they run beside each other. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Log } from '../../../src/engine/context.ts'
import { openWorldDatabase, type WorldDatabase } from './database.ts'
import { failureOf, isSound } from './failure.ts'
import { playWorld } from './world.ts'

/** In all files together: 3,000 in CI. `LEASEHOLD_WORLDS` says otherwise. */
const worlds = Number(process.env['LEASEHOLD_WORLDS'] ?? (process.env['CI'] === 'true' ? 3_000 : 300))
/** One world alone, with all that its engines say. */
const replayed = process.env['LEASEHOLD_WORLD_SEED']
/** Of a test, in ms a world; the machine may be busy with others. */
const patienceMs = 3_000

const tell = (fields: object, message: string): void => console.log(message, JSON.stringify(fields))
const aloud: Log = { debug: tell, info: tell, warn: tell, error: tell }

export const playPart = (part: number, parts: number): void => {
  let database: WorldDatabase
  beforeAll(async () => {
    database = await openWorldDatabase()
  })
  afterAll(() => database.close())

  if (replayed !== undefined) {
    it.runIf(part === 0)(`world ${replayed}, again`, { timeout: 60_000 }, async () => {
      const told = await playWorld(database, Number(replayed), {}, aloud)
      expect(told.violations, failureOf(told)).toEqual([])
    })
    return
  }
  const each = Math.ceil(worlds / parts)
  describe(`engines that die and stand still, a cloud that lies (I1, I2, I3, I4, I6, I7, I8, I9, I10; no leak), part ${part + 1} of ${parts}`, () => {
    it(`hold in ${each} worlds`, { timeout: 60_000 + each * patienceMs }, async () => {
      const totals: Record<string, number> = {}
      for (let seed = 1 + part * each; seed <= (part + 1) * each; seed++) {
        const told = await playWorld(database, seed)
        if (!isSound(told)) throw new Error(failureOf(told))
        for (const [what, count] of Object.entries(told.counts)) totals[what] = (totals[what] ?? 0) + count
      }
      // Nothing above is true for want of cases.
      for (const what of ['created', 'kills', 'stalls', 'holds', 'meddled', 'removed', 'swept', 'mode off', 'mode report', 'mode delete'])
        expect(totals[what] ?? 0, what).toBeGreaterThan(each / 20)
      for (const what of ['kept', 'abandoned', 'bounded', 'found']) expect(totals[what] ?? 0, what).toBeGreaterThan(each / 10)
      // They need an orphan past its quarantine, in a cloud that lies.
      for (const what of ['planned', 'approved']) expect(totals[what] ?? 0, what).toBeGreaterThan(each / 100)
    })
  })
}
