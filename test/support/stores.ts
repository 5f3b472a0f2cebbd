/** The same suite on both databases: a fresh SQLite file, and a fresh database on the run's PostgreSQL, for every test. */
import { afterEach, describe, inject } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { postgresDatabase, sqliteDatabase, type TestDatabase } from './databases.ts'
import { serviceOr } from './services/skip.ts'

export { postgresDatabase, sqliteDatabase, type TestDatabase }

export type OpenStore = () => Promise<Store>
/** @param body gets `open` (a fresh store per call, closed after the test) and `database` (to open one database more than once) */
export const eachStore = (title: string, body: (open: OpenStore, database: () => Promise<TestDatabase>) => void): void => {
  const suite = (make: () => Promise<TestDatabase>) => () => {
    const undo: (() => Promise<void>)[] = []
    const database = async (): Promise<TestDatabase> => {
      const made = await make()
      undo.push(() => made.drop())
      const open = async (): Promise<Store> => {
        const store = await made.open()
        undo.push(() => store.close())
        return store
      }
      return { ...made, open }
    }
    afterEach(async () => {
      for (const step of undo.splice(0).toReversed()) await step()
    })
    body(async () => (await database()).open(), database)
  }
  describe(
    `${title} on SQLite`,
    suite(async () => sqliteDatabase()),
  )
  const { url } = inject('postgres')
  serviceOr(
    'PostgreSQL',
    url !== null,
    'apt-get install postgresql',
  )(
    `${title} on PostgreSQL`,
    suite(() => postgresDatabase(url as string)),
  )
}

/** Stops the database's clock at `ms`: the offset that only tests write (I4). */
export const setClock = (store: Store, ms: number): Promise<void> =>
  store.write(async (tx) => {
    await tx.db.updateTable('clock').set({ frozen_ms: ms }).where('id', '=', 1).execute()
  })

export const advance = async (store: Store, ms: number): Promise<number> => {
  const now = (await store.now()) + ms
  await setClock(store, now)
  return now
}
