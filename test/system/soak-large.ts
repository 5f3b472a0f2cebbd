/** The parts of the soak that are about size rather than about chance: a listing of a million, a hundred thousand resources beside five hundred holds, a long removal. */
import { sqliteDatabase } from '../support/databases.ts'
import { countingHolds, longRemoval, membership } from '../simulation/soak/scale.ts'
import { sweepOver } from '../bench/sweep.ts'

const mostMegabytes = 300
const mostMembershipMs = 5_000
const holds = 500
const resources = 100_000
const members = 500

/** case M4: what a sweep holds in memory does not grow with what it lists as its bytes do. */
const largeListing = async (items: number): Promise<string | null> => {
  const database = sqliteDatabase()
  try {
    const { figures } = await sweepOver({ name: 'sqlite', ...database }, items, 0)
    const { peakMegabytes = Number.POSITIVE_INFINITY } = figures
    return peakMegabytes < mostMegabytes ? null : `a sweep over ${items} resources took ${peakMegabytes} MB, not below ${mostMegabytes}`
  } finally {
    await database.drop()
  }
}

/** case M8 */
const manyHolds = (): string | null => {
  const start = performance.now()
  membership(countingHolds(holds).holds, resources)
  const ms = performance.now() - start
  return ms < mostMembershipMs
    ? null
    : `${resources} resources beside ${holds} holds took ${Math.round(ms)} ms, not below ${mostMembershipMs}`
}

/** case M6 */
const manyMembers = (): string | null => {
  const { stored, calls } = longRemoval(members, 7)
  const twice = [...calls.values()].some((times) => times > 1)
  return stored.length === members && !twice
    ? null
    : `a removal of ${members} members stored ${stored.length} steps${twice ? ', and called twice for one' : ''}`
}

/** @returns what does not hold; null: all does */
export const playLarge = async (items: number): Promise<string | null> => manyHolds() ?? manyMembers() ?? (await largeListing(items))
