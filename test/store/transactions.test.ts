import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import type { Store, Tx } from '../../src/store/store.ts'
import { eachStore, sqliteDatabase } from '../support/stores.ts'

const addProject = async (tx: Tx, name: string): Promise<void> => {
  await tx.db.insertInto('projects').values({ name, created_at: tx.now, deleted_at: null }).execute()
}
const projects = async (store: Store): Promise<string[]> =>
  (await store.read(({ db }) => db.selectFrom('projects').select('name').orderBy('name').execute())).map((row) => row.name)

eachStore('a write transaction', (open) => {
  it('takes back its own statements when it fails, and nobody else’s that came in the same tick', async () => {
    const store = await open()
    const settled = await Promise.allSettled([
      store.write((tx) => addProject(tx, 'a')),
      store.write(async (tx) => {
        await addProject(tx, 'b')
        throw new Error('no')
      }),
      store.write((tx) => addProject(tx, 'c')),
      // A statement that the database refuses is the body's failure too.
      store.write(async (tx) => {
        await addProject(tx, 'd')
        await addProject(tx, 'd')
      }),
      store.write((tx) => addProject(tx, 'e')),
    ])
    expect(settled.map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
    expect(await projects(store)).toEqual(['a', 'c', 'e'])
  })

  it('has a time of its own, which no later transaction is before', async () => {
    const store = await open()
    let last = 0
    for (let i = 0; i < 20; i++) {
      const now = await store.write(async (tx) => tx.now)
      expect(now).toBeGreaterThanOrEqual(last)
      expect(Number.isInteger(now)).toBe(true)
      last = now
    }
  })

  it('answers in the order of asking when asked one after the other', async () => {
    const store = await open()
    const order: number[] = []
    for (let i = 0; i < 5; i++) await store.write(async () => void order.push(i))
    expect(order).toEqual([0, 1, 2, 3, 4])
  })

  it('may be asked for from within the answer of another', async () => {
    const store = await open()
    await store.write((tx) => addProject(tx, 'a')).then(() => store.write((tx) => addProject(tx, 'b')))
    expect(await projects(store)).toEqual(['a', 'b'])
  })

  it('is refused once the store is closed, and a close waits for those under way', async () => {
    const store = await open()
    const last = store.write((tx) => addProject(tx, 'last'))
    const closed = store.close()
    await last
    await closed
    await expect(store.write((tx) => addProject(tx, 'late'))).rejects.toThrow(/close|end/i)
  })
})

eachStore('values', (open) => {
  const roundTrip = async (store: Store, value: unknown): Promise<unknown> =>
    store.write(async (tx) => {
      await sql`delete from freezes`.execute(tx.db)
      await sql`insert into freezes (scope, reason, created_by, created_at) values ('x', 'y', 'z', ${value})`.execute(tx.db)
      return (await sql<{ v: unknown }>`select created_at as v from freezes`.execute(tx.db)).rows[0]?.v
    })

  it('integers within 2^53, booleans (0 and 1), bigints and texts come back as they went', async () => {
    const store = await open()
    for (const value of [0, 1, -1, 1_780_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])
      expect(await roundTrip(store, value)).toBe(value)
    expect(await roundTrip(store, true)).toBe(1)
    expect(await roundTrip(store, false)).toBe(0)
    expect(await roundTrip(store, 7n)).toBe(7)
    const texts = ['', 'plain', "it's", 'ä日本🦊', 'line\nbreak\ttab', '\\x00', '%_?$1', 'null', '0', '2026-01-01T00:00:00Z']
    for (const text of texts) await store.write((tx) => addProject(tx, text))
    expect((await projects(store)).toSorted()).toEqual(texts.toSorted())
  })

  it('what can not be stored as it is is refused, and never stored as something else', async () => {
    const store = await open()
    await roundTrip(store, 42)
    const bad = [new Date(0), Number.NaN, Infinity, 0.5, 2 ** 53, 2n ** 53n, -(2n ** 60n), undefined, { a: 1 }, [1], Symbol('x')]
    for (const value of bad) await expect(roundTrip(store, value)).rejects.toThrow(/can't be stored/)
    // Nor does a bad first value shift the others.
    const shifted = store.write((tx) => sql`insert into projects (created_at, name) values (${new Date(0)}, ${'x'})`.execute(tx.db))
    await expect(shifted).rejects.toThrow(/Date can't be stored/)
    expect(await projects(store)).toEqual([])
  })

  it('an integer over 2^53 that is there all the same is an error, not a wrong number', async () => {
    const store = await open()
    const read = (text: string) => store.read(({ db }) => sql<{ v: number }>`select cast(${text} as bigint) as v`.execute(db))
    await expect(read('9007199254740993')).rejects.toThrow(/too large|beyond/)
    expect((await read('9007199254740991')).rows[0]?.v).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('null is null', async () => {
    const store = await open()
    await store.write((tx) => addProject(tx, 'a'))
    expect(await store.read(({ db }) => db.selectFrom('projects').select('deleted_at').execute())).toEqual([{ deleted_at: null }])
  })
})

describe('transactions of one tick on SQLite', () => {
  /** A second connection's `data_version` moves once for every commit that others made since it looked last. */
  it('share one commit, and one time', async () => {
    const database = sqliteDatabase()
    const store = await openSqliteStore(database.target)
    const { DatabaseSync } = await import('node:sqlite')
    const watcher = new DatabaseSync(database.target, { readOnly: true })
    const frames = (): number => {
      // The number of frames in the WAL grows with every commit; none is checkpointed away while so few are there.
      const row = watcher.prepare('pragma data_version').get() as { data_version: number }
      return row.data_version
    }
    try {
      let before = frames()
      const versions: number[] = []
      const times = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          store
            .write(async (tx) => {
              await addProject(tx, `p${i}`)
              return tx.now
            })
            .then((now) => {
              versions.push(frames() - before)
              return now
            }),
        ),
      )
      // Whoever was answered first saw everybody's rows committed already: it was one commit.
      expect(new Set(versions)).toEqual(new Set([versions[0]]))
      expect(versions[0]).toBeGreaterThan(0)
      expect(new Set(times).size).toBe(1)
      expect(await projects(store)).toHaveLength(50)
      // Negative twin: one after the other they do not share it.
      before = frames()
      const seen = new Set<number>()
      for (let i = 0; i < 5; i++) {
        await store.write((tx) => addProject(tx, `q${i}`))
        seen.add(frames())
      }
      expect(seen.size).toBe(5)
    } finally {
      watcher.close()
      await store.close()
      await database.drop()
    }
  })
})
