/** A world that lets a broken engine pass proves nothing: each is found out within 1,000 worlds. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openWorldDatabase, type WorldDatabase } from './database.ts'
import { mutants } from './mutants.ts'
import { playWorld } from './world.ts'

const mutantDiesWithin = 1_000
let database: WorldDatabase
beforeAll(async () => {
  database = await openWorldDatabase()
})
afterAll(() => database.close())

describe('generated worlds find out who', () => {
  for (const { breaks, who, mutant, from = 1 } of mutants)
    it(`${who} (${breaks})`, { timeout: 600_000 }, async () => {
      for (let seed = from; seed < from + mutantDiesWithin; seed++) {
        const told = await playWorld(database, seed, mutant)
        if (told.violations.some(({ invariant }) => invariant === breaks)) return
      }
      expect.fail(`it lived through ${mutantDiesWithin} worlds`)
    })
})

describe('a world', () => {
  it('is the same whenever it is played, so that a seed is enough to find a fault again', { timeout: 60_000 }, async () => {
    for (const seed of [3, 17, 29]) {
      const [first, second] = [await playWorld(database, seed), await playWorld(database, seed)]
      expect(second.counts).toEqual(first.counts)
      expect(second.story).toEqual(first.story)
      expect(first.story.length).toBeGreaterThan(5)
    }
  })
})
