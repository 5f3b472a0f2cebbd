import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, expect, inject, it, vi } from 'vitest'
import pg from 'pg'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import type { Store } from '../../src/store/store.ts'
import { eachStore, postgresDatabase, setClock, sqliteDatabase, type TestDatabase } from '../support/stores.ts'
import { serviceOr } from '../support/services/skip.ts'

/** What the program `clock` prints. */
interface Taken {
  wall: number
  inside: number
  outside: number
  later: number
}
const inside = (store: Store): Promise<number> => store.write(async (tx) => tx.now)
const newest = async (store: Store): Promise<number> =>
  (await store.read(({ db }) => db.selectFrom('clock').select('newest').executeTakeFirstOrThrow())).newest

describe('the clock of a SQLite file (I4)', () => {
  const undo: (() => Promise<void>)[] = []
  afterEach(async () => {
    vi.useRealTimers()
    for (const step of undo.splice(0).toReversed()) await step()
  })
  const file = (): TestDatabase => {
    const database = sqliteDatabase()
    undo.push(() => database.drop())
    const open = async (): Promise<Store> => {
      const store = await database.open()
      undo.push(() => store.close())
      return store
    }
    return { ...database, open }
  }
  /** Another process on the same file whose wall clock is off from its start on. */
  const elsewhere = (target: string, wallOffsetMs: number): Taken => {
    const script = join(import.meta.dirname, 'processes', 'clock.ts')
    const out = execFileSync(process.execPath, ['--no-warnings', script, target, String(wallOffsetMs)], { encoding: 'utf8' })
    return JSON.parse(out) as Taken
  }

  it('is set by the wall clock at start', async () => {
    const store = await file().open()
    const before = Date.now()
    const now = await store.now()
    expect(now).toBeGreaterThanOrEqual(before - 5)
    expect(now).toBeLessThanOrEqual(Date.now() + 5)
  })

  it('does not see a wall clock that is set back or forward while we run', async () => {
    const store = await file().open()
    const before = await inside(store)
    vi.useFakeTimers({ toFake: ['Date'] })
    for (const offset of [-3_600_000, 86_400_000]) {
      vi.setSystemTime(before + offset)
      const now = await inside(store)
      expect(now).toBeGreaterThanOrEqual(before)
      expect(now - before).toBeLessThan(30_000)
      expect(Math.abs((await store.now()) - now)).toBeLessThan(30_000)
    }
  })

  it('goes on from the newest time of the file when the wall clock was set back between two runs, and does not stand still', async () => {
    const database = file()
    const first = await database.open()
    const before = await inside(first)
    const later = elsewhere(database.target, -3_600_000)
    expect(later.wall).toBeLessThan(before - 3_000_000)
    expect(later.inside).toBeGreaterThanOrEqual(before)
    expect(later.outside).toBeGreaterThanOrEqual(later.inside)
    expect(later.later - later.inside).toBeGreaterThanOrEqual(29)
  })

  it('several processes on one file agree, whatever their wall clocks say', async () => {
    const database = file()
    const store = await database.open()
    let last = await inside(store)
    for (const offset of [600_000, -86_400_000]) {
      const other = elsewhere(database.target, offset)
      expect(other.inside).toBeGreaterThanOrEqual(last)
      const here = await inside(store)
      expect(here).toBeGreaterThanOrEqual(other.inside)
      expect(here - other.inside).toBeLessThan(30_000)
      last = here
    }
  })

  it('two stores on one file take turns without ever going back, and never before what the file holds', async () => {
    const database = file()
    const stores = [await database.open(), await database.open()] as const
    let last = 0
    for (let i = 0; i < 40; i++) {
      const store = stores[i % 2] as Store
      const now = i % 3 === 0 ? await store.now() : await inside(store)
      expect(now).toBeGreaterThanOrEqual(last)
      expect(now).toBeGreaterThanOrEqual(await newest(stores[(i + 1) % 2] as Store))
      last = now
    }
  })
})

eachStore('the clock', (open) => {
  it('stands still only where a test froze it, inside of transactions and beside them', async () => {
    const store = await open()
    const before = await inside(store)
    await setClock(store, 1_000_000)
    expect([await store.now(), await inside(store)]).toEqual([1_000_000, 1_000_000])
    await store.write(async (tx) => {
      await tx.db.updateTable('clock').set({ frozen_ms: null }).execute()
    })
    expect(await inside(store)).toBeGreaterThanOrEqual(before - 5)
  })

  it('nothing but a test writes offset or frozen time', async () => {
    const store = await open()
    for (let i = 0; i < 3; i++) await inside(store)
    expect(await store.read(({ db }) => db.selectFrom('clock').select(['offset_ms', 'frozen_ms']).execute())).toEqual([
      { offset_ms: 0, frozen_ms: null },
    ])
  })
})

const { url } = inject('postgres')
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)('the clock of a PostgreSQL database (I4, case H8)', () => {
  it('is the server’s: a replica whose own clock is off by an hour sees the same time', async () => {
    const database = await postgresDatabase(url as string)
    const store = await openPostgresStore(database.target)
    const client = new pg.Client({ connectionString: database.target })
    await client.connect()
    try {
      const serverNow = async (): Promise<number> =>
        Number((await client.query<{ now: string }>('select extract(epoch from clock_timestamp()) * 1000 as now')).rows[0]?.now)
      vi.useFakeTimers({ toFake: ['Date'] })
      for (const offset of [3_600_000, -3_600_000]) {
        const before = await serverNow()
        vi.setSystemTime(before + offset)
        const seen = [await store.now(), await inside(store)]
        const after = await serverNow()
        for (const now of seen) {
          expect(now).toBeGreaterThanOrEqual(Math.floor(before))
          expect(now).toBeLessThanOrEqual(after)
        }
      }
    } finally {
      vi.useRealTimers()
      await client.end()
      await store.close()
      await database.drop()
    }
  })
})
