import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { migrations } from '../../src/store/migrations/index.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import type { Store } from '../../src/store/store.ts'
import { eachStore } from '../support/stores.ts'
import { fixtures, type Fixture } from './fixtures/index.ts'

const openAt = (target: string, version: number): Promise<Store> => {
  const upTo = migrations.filter((one) => one.number <= version)
  return target.startsWith('postgres') ? openPostgresStore(target, { migrations: upTo, connections: 2 }) : openSqliteStore(target, upTo)
}

type Row = Record<string, unknown>
const tablesOf = async (store: Store): Promise<string[]> => {
  const text =
    store.dialect === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`
      : sql<{ name: string }>`select table_name as name from information_schema.tables where table_schema = 'public'`
  const { rows } = await store.read(({ db }) => text.execute(db))
  return rows.map((row) => row.name).toSorted()
}
const rowsOf = async (store: Store, table: string): Promise<Row[]> =>
  (await store.read(({ db }) => sql<Row>`select * from ${sql.table(table)}`.execute(db))).rows

/** Tables that every database has something in without a fixture's doing. */
const furnished = new Set(['schema_version', 'clock', 'chain'])

const fill = (store: Store, fixture: Fixture): Promise<void> =>
  store.write(async (tx) => {
    for (const [table, rows] of Object.entries(fixture.rows))
      for (const row of rows) {
        const names = sql.join(Object.keys(row).map((name) => sql.ref(name)))
        const values = sql.join(Object.values(row).map((value) => sql`${value}`))
        await sql`insert into ${sql.table(table)} (${names}) values (${values})`.execute(tx.db)
      }
  })

describe('the numbered migrations', () => {
  it('are numbered 1, 2, 3, … without a gap, each with a name of its own', () => {
    expect(migrations.map((one) => one.number)).toEqual(migrations.map((_, i) => i + 1))
    expect(new Set(migrations.map((one) => one.name)).size).toBe(migrations.length)
  })

  it('each has a fixture: a full database of that version', () => {
    expect(fixtures.map((one) => one.version)).toEqual(migrations.map((one) => one.number))
  })
})

eachStore('a full database', (_open, database) => {
  it.each(fixtures)('of schema $version loses nothing on its way to the newest', async (fixture) => {
    const db = await database()
    const old = await openAt(db.target, fixture.version)
    await fill(old, fixture)
    // The fixture is full: every table has rows, with every column given.
    for (const table of await tablesOf(old)) {
      if (furnished.has(table)) continue
      const given = fixture.rows[table]
      expect(given?.length, `the fixture has rows for ${table}`).toBeGreaterThan(0)
      const [row] = await rowsOf(old, table)
      expect(Object.keys(given?.[0] ?? {}).toSorted(), table).toEqual(Object.keys(row ?? {}).toSorted())
    }
    await old.close()

    const store = await db.open()
    const newest = migrations.at(-1)?.number
    expect(await rowsOf(store, 'schema_version')).toMatchObject([{ version: newest }])
    for (const [table, rows] of Object.entries(fixture.rows)) {
      const stored = await rowsOf(store, table)
      expect(stored, table).toHaveLength(rows.length)
      for (const row of rows) expect(stored, table).toContainEqual(expect.objectContaining(row))
    }
    // And it works: the current code writes to it, and its clock goes on.
    await store.write(async (tx) => {
      expect(tx.now).toBeGreaterThan(0)
      await tx.db.insertInto('projects').values({ name: 'new', created_at: tx.now, deleted_at: null }).execute()
    })
  })

  it('leaves a beat room on its page where the database has such a thing, however old it is', async () => {
    const db = await database()
    await (await openAt(db.target, 13)).close()
    const store = await db.open()
    if (store.dialect === 'sqlite') return expect((await rowsOf(store, 'schema_version'))[0]?.['version']).toBe(migrations.length)
    const { rows } = await store.read((session) =>
      sql<{ options: string[] }>`select reloptions as options from pg_class where relname = 'leases'`.execute(session.db),
    )
    expect(rows).toEqual([{ options: ['fillfactor=80'] }])
  })

  it('has the same tables and columns, whichever version it began with', { timeout: 90_000 }, async () => {
    const shapeOf = async (store: Store): Promise<Record<string, string[]>> => {
      const shape: Record<string, string[]> = {}
      for (const table of await tablesOf(store)) {
        const columns =
          store.dialect === 'sqlite'
            ? sql<{ name: string }>`select name from pragma_table_info(${table})`
            : sql<{
                name: string
              }>`select column_name as name from information_schema.columns where table_name = ${table} and table_schema = 'public'`
        shape[table] = (await store.read(({ db }) => columns.execute(db))).rows.map((row) => row.name).toSorted()
      }
      return shape
    }
    const fresh = await shapeOf(await (await database()).open())
    for (const fixture of fixtures) {
      const db = await database()
      await (await openAt(db.target, fixture.version)).close()
      expect(await shapeOf(await db.open())).toEqual(fresh)
    }
    expect(Object.keys(fresh).length).toBeGreaterThan(20)
  })
})

eachStore('removals of schema 6', (_open, database) => {
  it('of which one gave up and another goes on are one afterwards: the older is closed, and the newest that gave up stays (orphans R91)', async () => {
    const db = await database()
    const old = await openAt(db.target, 6)
    const row = (id: string, attempt: string, state: string, at: number) =>
      sql`insert into removals (id, version, attempt_id, instance_id, project, backend, provider, ref, name, scope, location, cause, state, progress, opened_at,
        failures, due_at) values (${id}, 2, ${attempt}, 'in_1', 'p', 'b', 'scripted', 'rabcdefghijk', 'n', 's', 'l', 'released', ${state}, '[]', ${at}, 0, ${at})`
    await old.write(async (tx) => {
      for (const [id, attempt, state, at] of [
        ['rm_a1', 'at_a', 'gave-up', 1],
        ['rm_a2', 'at_a', 'removing', 2],
        ['rm_b1', 'at_b', 'gave-up', 1],
        ['rm_b2', 'at_b', 'gave-up', 2],
        ['rm_c1', 'at_c', 'gave-up', 1],
        ['rm_c2', 'at_c', 'gone', 2],
      ] as const)
        await row(id, attempt, state, at).execute(tx.db)
    })
    await old.close()
    const store = await db.open()
    const rows = await store.read(({ db: tables }) => tables.selectFrom('removals').selectAll().orderBy('id').execute())
    expect(rows.map((one) => `${one.id} ${one.state}`)).toEqual([
      'rm_a1 closed',
      'rm_a2 removing',
      'rm_b1 closed',
      'rm_b2 gave-up',
      'rm_c1 gave-up',
      'rm_c2 gone',
    ])
    expect(rows[0]).toMatchObject({ due_at: null, closed_by: 'system', gone_at: null })
  })
})
