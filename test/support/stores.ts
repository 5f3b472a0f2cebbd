/** The same suite on both databases: a fresh SQLite file, and a fresh database on the run's PostgreSQL, for every test. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, describe, inject } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import type { Store } from '../../src/store/store.ts'
import { serviceOr } from './services/skip.ts'

export interface TestDatabase {
  /** What `openStore` takes. */
  target: string
  open(): Promise<Store>
  drop(): Promise<void>
}

export const sqliteDatabase = (): TestDatabase => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-store-'))
  const target = join(folder, 'leasehold.db')
  return { target, open: () => openSqliteStore(target), drop: async () => rmSync(folder, { recursive: true, force: true }) }
}

const asAdmin = async (url: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(statement)
  await client.end()
}

export const postgresDatabase = async (url: string): Promise<TestDatabase> => {
  const name = `t_${randomBytes(6).toString('hex')}`
  await asAdmin(url, `create database ${name}`)
  const own = new URL(url)
  own.pathname = `/${name}`
  return {
    target: own.href,
    open: () => openPostgresStore(own.href),
    drop: () => asAdmin(url, `drop database if exists ${name} with (force)`),
  }
}

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
