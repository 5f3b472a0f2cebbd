/** Fresh databases of both kinds, for suites and benchmarks. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import type { Store } from '../../src/store/store.ts'

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
