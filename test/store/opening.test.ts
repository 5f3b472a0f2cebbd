import { existsSync, statSync, writeFileSync } from 'node:fs'
import { sql } from 'kysely'
import { describe, expect, inject, it } from 'vitest'
import { DatabaseTooNewError } from '../../src/store/migrate.ts'
import { migrations, type Migration } from '../../src/store/migrations/index.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import type { Store } from '../../src/store/store.ts'
import { eachStore, postgresDatabase, sqliteDatabase, type TestDatabase } from '../support/stores.ts'
import { serviceOr } from '../support/services/skip.ts'
import { until } from '../support/until.ts'
import { program } from './processes/run.ts'

const openWith = (target: string, list: readonly Migration[]): Promise<Store> =>
  target.startsWith('postgres') ? openPostgresStore(target, { migrations: list, connections: 2 }) : openSqliteStore(target, list)
const newest = migrations.at(-1)?.number ?? 0
const beyond = (number: number, mark: Migration['mark']): Migration => ({
  number: newest + number,
  name: `beyond-${number}`,
  mark,
  statements: [`create table beyond_${number} (id integer primary key)`],
})
const schemaOf = async (store: Store): Promise<{ version: number; oldest_binary: number }> => {
  const { rows } = await store.read(({ db }) =>
    sql<{ version: number; oldest_binary: number }>`select version, oldest_binary from schema_version`.execute(db),
  )
  expect(rows).toHaveLength(1)
  return rows[0] as { version: number; oldest_binary: number }
}

eachStore('a database of another version (decisions 7)', (_open, database) => {
  const made = async (...list: Migration[]): Promise<TestDatabase> => {
    const db = await database()
    await (await openWith(db.target, [...migrations, ...list])).close()
    return db
  }

  it('is refused by a binary that is older than its contract mark, unchanged and with what to do', async () => {
    const db = await made(beyond(1, 'contract'), beyond(2, 'expand'))
    const refusal = await db.open().then(
      () => null,
      (error: unknown) => error,
    )
    expect(refusal).toBeInstanceOf(DatabaseTooNewError)
    expect((refusal as DatabaseTooNewError).message).toMatch(
      new RegExp(`schema ${newest + 2} .* knows schema ${newest + 1}; this one knows ${newest}: upgrade it`),
    )
    // The binary that knows the contract, and not what came after it, still opens it.
    const store = await openWith(db.target, [...migrations, beyond(1, 'contract')])
    expect(await schemaOf(store)).toEqual({ version: newest + 2, oldest_binary: newest + 1 })
    await store.close()
  })

  it('is taken by an older binary when it was only expanded, and keeps its version', async () => {
    const db = await made(beyond(1, 'expand'), beyond(2, 'expand'))
    const store = await db.open()
    expect(await schemaOf(store)).toMatchObject({ version: newest + 2 })
    await store.write(async (tx) => {
      await tx.db.insertInto('projects').values({ name: 'a', created_at: tx.now, deleted_at: null }).execute()
    })
    // The newer one comes back and runs nothing twice.
    const newer = await openWith(db.target, [...migrations, beyond(1, 'expand'), beyond(2, 'expand')])
    expect(await schemaOf(newer)).toMatchObject({ version: newest + 2 })
    await newer.close()
  })

  it('stays as it was when a migration fails half way', async () => {
    const db = await database()
    const broken: Migration = { ...beyond(2, 'contract'), statements: ['create table half_way (id integer)', 'this is no SQL'] }
    await expect(openWith(db.target, [...migrations, beyond(1, 'contract'), broken])).rejects.toThrow(/syntax error/)
    const store = await db.open()
    expect(await schemaOf(store)).toEqual({ version: newest, oldest_binary: 0 })
    await expect(store.read(({ db: kysely }) => sql`select * from half_way`.execute(kysely))).rejects.toThrow(/half_way/)
  })
})

const names = ['p0', 'p1', 'p2', 'p3']
/** All open each database at the same moment, as replicas that a deployment starts. */
const openAtOnce = async (databases: readonly TestDatabase[]): Promise<void> => {
  const programs = names.map((name) => program('opener', name))
  try {
    await until(() => programs.every((one) => one.lines().includes('ready')), 'all are loaded', 30_000)
    for (const [round, db] of databases.entries()) {
      for (const one of programs) one.child.stdin.write(`${db.target}\n`)
      const done = (): boolean => programs.every((one) => one.lines().length > round + 1 || one.child.exitCode !== null)
      await until(done, 'all have opened it', 20_000)
      for (const one of programs) expect(one.lines()[round + 1], one.complaints()).toBe(`version ${newest}`)
      const store = await db.open()
      const rows = await store.read(({ db: kysely }) => kysely.selectFrom('projects').select('name').orderBy('name').execute())
      expect(rows).toEqual(names.map((name) => ({ name })))
      await store.close()
    }
    for (const one of programs) one.child.stdin.end()
    for (const one of programs) expect(await one.ended, one.complaints()).toBe(0)
  } finally {
    for (const one of programs) one.child.kill('SIGKILL')
    for (const db of databases) await db.drop()
  }
}

const { url } = inject('postgres')
describe('a new database that four processes open at once', () => {
  it('is migrated once, and all of them write: SQLite, twenty times', { timeout: 60_000 }, async () => {
    await openAtOnce(Array.from({ length: 20 }, sqliteDatabase))
  })
})
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)('a new PostgreSQL database that four processes open at once', () => {
  it('is migrated once, and all of them write, three times', { timeout: 60_000 }, async () => {
    const make = (): Promise<TestDatabase> => postgresDatabase(url as string)
    await openAtOnce([await make(), await make(), await make()])
  })

  it('that is of an older schema is brought forward once, and all of them write', { timeout: 60_000 }, async () => {
    const older = await Promise.all(
      [1, 5, newest - 1].map(async (version) => {
        const db = await postgresDatabase(url as string)
        await (
          await openWith(
            db.target,
            migrations.filter((one) => one.number <= version),
          )
        ).close()
        return db
      }),
    )
    await openAtOnce(older)
  })
})

describe('the SQLite file', () => {
  const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

  it('and what stands beside it are for its owner only (0600), whatever the umask', async () => {
    const db = sqliteDatabase()
    const umask = process.umask(0)
    try {
      const store = await db.open()
      await store.write(async (tx) => {
        await tx.db.insertInto('projects').values({ name: 'a', created_at: tx.now, deleted_at: null }).execute()
      })
      expect([db.target, `${db.target}-wal`, `${db.target}-shm`].filter(existsSync).map((file) => [file, mode(file)])).toEqual([
        [db.target, '600'],
        [`${db.target}-wal`, '600'],
        [`${db.target}-shm`, '600'],
      ])
      await store.close()
    } finally {
      process.umask(umask)
      await db.drop()
    }
  })

  it('that was left readable to others is closed to them when it is opened', async () => {
    const db = sqliteDatabase()
    try {
      writeFileSync(db.target, '', { mode: 0o666 })
      await (await db.open()).close()
      expect(mode(db.target)).toBe('600')
    } finally {
      await db.drop()
    }
  })

  it('that is no database is refused, and stays as it is', async () => {
    const db = sqliteDatabase()
    try {
      const text = 'this is somebody’s letter, not a database\n'.repeat(100)
      writeFileSync(db.target, text)
      await expect(db.open()).rejects.toThrow(/not a database/)
      expect(statSync(db.target).size).toBe(Buffer.byteLength(text))
    } finally {
      await db.drop()
    }
  })
})
