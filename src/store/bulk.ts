/** Statements over many rows at once, the same text for both databases. */
import { sql, type RawBuilder } from 'kysely'
import type { Schema } from './schema.ts'
import type { Session } from './store.ts'

type Cell = string | number | null

/** `cast(? as …)` gives PostgreSQL the type that a bare parameter lacks; SQLite takes the same text. */
const typed = (value: Cell, type: 'text' | 'bigint'): RawBuilder<unknown> => sql`cast(${value} as ${sql.raw(type)})`

/**
 * Updates rows of one table, each with values of its own, in one statement.
 * @param columns the column names with their types; the first is the key
 * @returns the keys that were there
 */
export const updateEach = async <T extends keyof Schema & string>(
  session: Session,
  table: T,
  columns: readonly (readonly [name: keyof Schema[T] & string, type: 'text' | 'bigint'])[],
  rows: readonly (readonly Cell[])[],
): Promise<Set<string>> => {
  const updated = new Set<string>()
  const [key] = columns[0] as readonly [string, string]
  const names = columns.map(([name]) => name)
  const rowsAStatement = Math.max(1, Math.floor(16_000 / columns.length))
  for (let start = 0; start < rows.length; start += rowsAStatement) {
    const part = rows.slice(start, start + rowsAStatement)
    const values = sql.join(
      part.map((row) => sql`(${sql.join(row.map((cell, i) => typed(cell, (columns[i] as readonly [string, 'text' | 'bigint'])[1])))})`),
    )
    const assignments = sql.join(names.slice(1).map((name) => sql`${sql.ref(name)} = v.${sql.ref(name)}`))
    const query = sql<{ key: string }>`with v (${sql.join(names.map((name) => sql.ref(name)))}) as (values ${values})
      update ${sql.table(table)} set ${assignments} from v where ${sql.ref(`${table}.${key}`)} = v.${sql.ref(key)}
      returning ${sql.ref(`${table}.${key}`)} as key`
    for (const row of (await query.execute(session.db)).rows) updated.add(row.key)
  }
  return updated
}

/** Inserts in parts that stay below the databases' limit on parameters. */
export const insertEach = async <T extends keyof Schema & string>(session: Session, table: T, rows: readonly object[]): Promise<void> => {
  const width = Object.keys(rows[0] ?? { a: 1 }).length
  const part = Math.max(1, Math.floor(16_000 / width))
  for (let start = 0; start < rows.length; start += part)
    await session.db
      .insertInto(table)
      .values(rows.slice(start, start + part) as never)
      .execute()
}

/** `for update` where the database has it: on SQLite a write transaction is alone anyway. */
export const forUpdate = <Q extends { forUpdate(): Q }>(session: Session, query: Q): Q =>
  session.dialect === 'postgresql' ? query.forUpdate() : query
