/** `kill -9` of the coordinator under load, with boxes of this machine, on both databases; see `test/support/kill-play.ts`. */
import { afterEach, describe, expect, inject, it } from 'vitest'
import { boxFolders, processesWith } from '../support/boxes.ts'
import { killCoordinators } from '../support/coordinator.ts'
import { playKills, type Ground } from '../support/kill-play.ts'
import { serviceOr } from '../support/services/skip.ts'
import { postgresDatabase, sqliteDatabase, type TestDatabase } from '../support/stores.ts'

const rounds = Number(process.env['LEASEHOLD_KILL_ROUNDS'] ?? (process.env['CI'] === 'true' ? 50 : 8))

const ground: Ground = {
  boxes: (data) => boxFolders(data),
  check(active, installation) {
    const refs = new Set(active.map((view) => view.ref))
    for (const ref of refs) expect(processesWith('LEASEHOLD_REF', ref).length, `the box of ${ref} lives`).toBeGreaterThan(0)
    const tagged = new Set(processesWith('LEASEHOLD_INSTALLATION', installation))
    expect(tagged).toEqual(new Set([...refs].flatMap((ref) => processesWith('LEASEHOLD_REF', ref))))
  },
}
const play = (database: TestDatabase, postgres: boolean, seed: number): Promise<void> =>
  playKills({ database, postgres, seed, rounds, ground })

describe(`kill -9 of the coordinator, ${rounds} times under load`, () => {
  afterEach(killCoordinators)
  const timeout = 120_000 + rounds * 8_000
  const seed = Number(process.env['LEASEHOLD_SEED'] ?? 20261130)
  it(`loses and leaves nothing on SQLite (seed ${seed})`, { timeout }, () => play(sqliteDatabase(), false, seed))
})
const { url } = inject('postgres')
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)(`kill -9 of the coordinator, ${rounds} times under load`, () => {
  afterEach(killCoordinators)
  const timeout = 120_000 + rounds * 8_000
  const seed = Number(process.env['LEASEHOLD_SEED'] ?? 20261130)
  it(`loses and leaves nothing on PostgreSQL (seed ${seed})`, { timeout }, async () => {
    const database = await postgresDatabase(url as string)
    await play(database, true, seed)
    await database.drop()
  })
})
