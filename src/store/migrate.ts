/** Brings a database forward, one transaction a migration, under a lock that the caller holds. */
import { sql, type Kysely } from 'kysely'
import type { Schema } from './schema.ts'
import type { DialectName } from './store.ts'
import { migrations as all, type Migration } from './migrations/index.ts'

export class DatabaseTooNewError extends Error {
  readonly code = 'database_too_new'
}

interface SchemaRow {
  version: number
  oldest_binary: number
}

const read = async (db: Kysely<Schema>): Promise<SchemaRow> => {
  await sql`create table if not exists schema_version (id integer primary key, version bigint not null, oldest_binary bigint not null)`.execute(
    db,
  )
  const { rows } = await sql<SchemaRow>`select version, oldest_binary from schema_version where id = 1`.execute(db)
  return rows[0] ?? { version: 0, oldest_binary: 0 }
}

/**
 * Runs what is missing, in order, inside the transaction that the caller has open. A binary knows the schema up to its
 * newest migration; it refuses only a database whose contract marks say that it is too old (decisions 7).
 * @throws DatabaseTooNewError
 */
export const migrateWithin = async (
  db: Kysely<Schema>,
  dialect: DialectName,
  migrations: readonly Migration[] = all,
): Promise<{ from: number; to: number }> => {
  const known = migrations.at(-1)?.number ?? 0
  const now = await read(db)
  if (now.oldest_binary > known)
    throw new DatabaseTooNewError(
      `the database is at schema ${now.version} and needs a Leasehold that knows schema ${now.oldest_binary}; this one knows ${known}: upgrade it`,
    )
  let oldest = now.oldest_binary
  for (const migration of migrations.filter((m) => m.number > now.version)) {
    const own = dialect === 'postgresql' ? (migration.postgresql ?? []) : []
    for (const statement of [...migration.statements, ...own]) await sql.raw(statement).execute(db)
    if (migration.mark === 'contract') oldest = migration.number
    await sql`insert into schema_version (id, version, oldest_binary) values (1, ${migration.number}, ${oldest})
      on conflict (id) do update set version = excluded.version, oldest_binary = excluded.oldest_binary`.execute(db)
  }
  return { from: now.version, to: Math.max(now.version, known) }
}
