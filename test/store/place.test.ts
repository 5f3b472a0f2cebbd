import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, describe, expect, inject, it } from 'vitest'
import { comparePlaces, type Place, type ServerPlace } from '../../src/model/place.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import { readPlace } from '../../src/store/place.ts'
import type { Store } from '../../src/store/store.ts'
import { asAdminOf, copyDatabase, copyFileOf } from '../support/copies.ts'
import { eachStore } from '../support/stores.ts'
import { serviceOr } from '../support/services/skip.ts'

const placeOf = (store: Store): Promise<Place> => store.read(readPlace)
const at = async (path: string): Promise<Place> => {
  const store = await openSqliteStore(path)
  try {
    return await placeOf(store)
  } finally {
    await store.close()
  }
}

describe('the place of an SQLite file', () => {
  const folders: string[] = []
  const made = async (): Promise<{ folder: string; path: string; place: Place }> => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-place-'))
    folders.push(folder)
    const path = join(folder, 'data', 'leasehold.db')
    mkdirSync(join(folder, 'data'))
    return { folder, path, place: await at(path) }
  }
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  })

  it('is kept by a restart, a VACUUM and a folder that is renamed (decisions 6)', async () => {
    const { folder, path, place } = await made()
    const store = await openSqliteStore(path)
    await store.read(({ db }) => sql`select 1`.execute(db))
    await store.close()
    expect(await at(path)).toEqual(place)
    const { DatabaseSync } = await import('node:sqlite')
    const handle = new DatabaseSync(path)
    handle.exec('vacuum')
    handle.close()
    expect(await at(path)).toEqual(place)
    renameSync(join(folder, 'data'), join(folder, 'moved'))
    expect(await at(join(folder, 'moved', 'leasehold.db'))).toEqual(place)
  })

  it('is not kept by a copy on the same machine, whichever way it was made (decisions 6)', async () => {
    const { folder, path, place } = await made()
    copyFileSync(path, join(folder, 'copy.db'))
    const other = copyFileOf(path)
    for (const copy of [join(folder, 'copy.db'), other.target])
      expect(comparePlaces(place, await at(copy))).toMatchObject({ kind: 'elsewhere' })
    await other.drop()
    // Under the old name, too: the original is put aside.
    renameSync(path, `${path}.old`)
    copyFileSync(join(folder, 'copy.db'), path)
    expect(comparePlaces(place, await at(path))).toMatchObject({ kind: 'elsewhere' })
  })
})

eachStore('the place of a database', (_open, database) => {
  it('is another one for each, and the same for each that opens it', async () => {
    const [one, other] = [await database(), await database()]
    const place = await placeOf(await one.open())
    expect(await placeOf(await one.open())).toEqual(place)
    expect(comparePlaces(place, await placeOf(await other.open())).kind).toBe('elsewhere')
  })

  it('is not that of its copy (decisions 6)', async () => {
    const one = await database()
    const store = await one.open()
    const place = await placeOf(store)
    await store.close()
    const copy = await copyDatabase(one.target)
    const opened = await copy.open()
    expect(comparePlaces(place, await placeOf(opened))).toMatchObject({ kind: 'elsewhere' })
    await opened.close()
    await copy.drop()
  })
})

const { url } = inject('postgres')
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)('a PostgreSQL user without rights', () => {
  it('is told what the server says to it, and the rest is not known rather than the same (decisions 6)', async () => {
    const name = `r_${randomBytes(6).toString('hex')}`
    const own = new URL(url as string)
    await asAdminOf(own.href, `create role ${name} login password 'p'`, `create database ${name} owner ${name}`)
    own.pathname = `/${name}`
    const admin = await openPostgresStore(own.href, { migrations: [] })
    for (const what of ['pg_control_system()', 'pg_control_checkpoint()', 'pg_walfile_name(pg_lsn)'])
      await admin.read(({ db }) => sql.raw(`revoke execute on function ${what} from public`).execute(db))
    await admin.read(({ db }) => sql.raw(`alter table schema_version owner to ${name}`).execute(db))
    const full = (await placeOf(admin)) as ServerPlace
    await admin.close()
    expect(full).toMatchObject({ systemId: expect.stringMatching(/^\d+$/) as string, timeline: 1 })
    own.username = name
    own.password = 'p'
    const store = await openPostgresStore(own.href, { migrations: [] })
    try {
      const place = await placeOf(store)
      expect(place).toEqual({ kind: 'server', systemId: null, timeline: null, databaseOid: full.databaseOid })
      expect(comparePlaces(full, place)).toMatchObject({ kind: 'unknown' })
    } finally {
      await store.close()
      await asAdminOf(url as string, `drop database ${name} with (force)`, `drop role ${name}`)
    }
  })
})
