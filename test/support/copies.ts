/** What a person does who restores a backup or clones a machine: the same rows in another place. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/index.ts'
import type { TestDatabase } from './databases.ts'

/** A snapshot of a SQLite file that may be in use. */
export const copyFileOf = (target: string): TestDatabase => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-copy-'))
  const copy = join(folder, 'leasehold.db')
  const source = new DatabaseSync(target, { readOnly: true, timeout: 5_000 })
  source.prepare('vacuum into ?').run(copy)
  source.close()
  return { target: copy, open: () => openSqliteStore(copy), drop: async () => rmSync(folder, { recursive: true, force: true }) }
}

export const asAdminOf = async <T extends pg.QueryResultRow>(url: string, ...statements: string[]): Promise<T[]> => {
  const admin = new URL(url)
  admin.pathname = '/postgres'
  const client = new pg.Client({ connectionString: admin.href })
  await client.connect()
  try {
    let rows: T[] = []
    for (const statement of statements) rows = (await client.query<T>(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

/** Nobody may be connected to the original. */
const copyServerDatabase = async (target: string): Promise<TestDatabase> => {
  const copy = new URL(target)
  const name = `c_${randomBytes(6).toString('hex')}`
  await asAdminOf(target, `create database ${name} template ${copy.pathname.slice(1)}`)
  copy.pathname = `/${name}`
  return {
    target: copy.href,
    open: () => openPostgresStore(copy.href),
    drop: async () => void (await asAdminOf(target, `drop database if exists ${name} with (force)`)),
  }
}

export const copyDatabase = async (target: string): Promise<TestDatabase> =>
  target.startsWith('postgres') ? copyServerDatabase(target) : copyFileOf(target)
