/**
 * Statements over many rows at once. Their text depends on the table alone and the rows travel as one JSON parameter: nothing is compiled
 * per call, and both databases keep the statement prepared.
 */
import { CompiledQuery, sql } from 'kysely'
import type { Selectable } from 'kysely'
import { storable } from './values.ts'
import type { Schema } from './schema.ts'
import type { DialectName, Session, Tx } from './store.ts'

type Cell = string | number | null
type CellType = 'text' | 'bigint'
export type Columns<T extends keyof Schema> = readonly (readonly [name: keyof Schema[T] & string, type: CellType])[]

const texts = new Map<string, string>()
const textOf = (key: string, make: () => string): string => {
  const known = texts.get(key) ?? make()
  texts.set(key, known)
  return known
}

/** The rows of the JSON parameter as a relation `v` with these columns. */
const relation = (dialect: DialectName, columns: readonly (readonly [string, CellType])[]): string =>
  dialect === 'sqlite'
    ? `(select ${columns.map(([name], i) => `json_extract(value, '$[${i}]') as ${name}`).join(', ')} from json_each(?)) as v`
    : `(select ${columns.map(([name, type], i) => `(value->>${i})::${type} as ${name}`).join(', ')} from json_array_elements($1::json)) as v`

/**
 * Updates rows of one table, each with values of its own, in one statement.
 * @param columns the column names with their types; the first is the key
 */
export const updateEach = async <T extends keyof Schema & string>(
  session: Session,
  table: T,
  columns: Columns<T>,
  rows: readonly (readonly Cell[])[],
): Promise<void> => {
  if (rows.length === 0) return
  const names = columns.map(([name]) => name)
  const text = textOf(`update ${session.dialect} ${table} ${names.join()}`, () => {
    const [key, ...others] = names as string[]
    return `update ${table} set ${others.map((name) => `${name} = v.${name}`).join(', ')} from ${relation(session.dialect, columns)} where ${table}.${key} = v.${key}`
  })
  await session.db.executeQuery(CompiledQuery.raw(text, [JSON.stringify(rows.map((row) => row.map(storable)))]))
}

/**
 * The same, but only where the columns of `seen` still have these values: a compare-and-set of many rows in one statement.
 * @param rows each the values of `columns`, then those of `seen`
 * @returns the keys of the rows that were written
 */
export const updateUnchanged = async <T extends keyof Schema & string>(
  session: Session,
  table: T,
  columns: Columns<T>,
  seen: Columns<T>,
  rows: readonly (readonly Cell[])[],
): Promise<Set<string>> => {
  if (rows.length === 0) return new Set()
  const text = textOf(
    `compare ${session.dialect} ${table} ${columns.map(([name]) => name).join()} ${seen.map(([name]) => name).join()}`,
    () => {
      const [key, ...others] = columns.map(([name]) => name as string)
      const source = relation(session.dialect, [
        ...columns.map(([name, type]) => [`new_${name}`, type] as const),
        ...seen.map(([name, type]) => [`seen_${name}`, type] as const),
      ])
      const same = seen.map(([name]) => ` and ${table}.${name} = v.seen_${name}`).join('')
      return `update ${table} set ${others.map((name) => `${name} = v.new_${name}`).join(', ')} from ${source} where ${table}.${key} = v.new_${key}${same} returning ${table}.${key} as key`
    },
  )
  const result = await session.db.executeQuery<{ key: string }>(
    CompiledQuery.raw(text, [JSON.stringify(rows.map((row) => row.map(storable)))]),
  )
  return new Set(result.rows.map((row) => row.key))
}

/** Inserts rows of the same columns in one statement. */
export const insertEach = async <T extends keyof Schema & string>(session: Session, table: T, rows: readonly object[]): Promise<void> => {
  const [first] = rows
  if (first === undefined) return
  const names = Object.keys(first)
  const text = textOf(`insert ${session.dialect} ${table} ${names.join()}`, () => {
    const list = names.join(', ')
    // PostgreSQL takes each type from the table itself; SQLite keeps the type that the JSON has.
    const source =
      session.dialect === 'sqlite'
        ? `select ${names.map((name) => `json_extract(value, '$.${name}')`).join(', ')} from json_each(?)`
        : `select ${list} from json_populate_recordset(null::${table}, $1::json)`
    return `insert into ${table} (${list}) ${source}`
  })
  const stored = rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, storable(value)])))
  await session.db.executeQuery(CompiledQuery.raw(text, [JSON.stringify(stored)]))
}

/**
 * The rows whose column is one of the values.
 * @param options.order the columns to order by
 * @param options.lock locks the rows for this transaction, in the order of their ids so that two transactions never wait for each other
 */
export const rowsIn = async <T extends keyof Schema & string>(
  session: Session | Tx,
  table: T,
  column: keyof Schema[T] & string,
  values: readonly string[],
  options: { order?: readonly (keyof Schema[T] & string)[]; lock?: boolean } = {},
): Promise<Selectable<Schema[T]>[]> => {
  if (values.length === 0) return []
  const lock = options.lock === true && session.dialect === 'postgresql'
  const order = options.order ?? (lock ? [column] : [])
  const text = textOf(`select ${session.dialect} ${table} ${column} ${order.join()} ${lock}`, () => {
    const among = session.dialect === 'sqlite' ? 'in (select value from json_each(?))' : 'in (select json_array_elements_text($1::json))'
    return `select * from ${table} where ${column} ${among}${order.length > 0 ? ` order by ${order.join(', ')}` : ''}${lock ? ' for update' : ''}`
  })
  const result = await session.db.executeQuery<Selectable<Schema[T]>>(CompiledQuery.raw(text, [JSON.stringify(values.map(storable))]))
  return result.rows
}

/** Locks rows for this transaction, in the order of their ids; on SQLite a write transaction is alone anyway. */
export const lockIn = async <T extends keyof Schema & string>(tx: Tx, table: T, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0 || tx.dialect === 'sqlite') return
  const text = `select 1 from ${table} where id in (select json_array_elements_text($1::json)) order by id for update`
  await tx.db.executeQuery(CompiledQuery.raw(text, [JSON.stringify(ids)]))
}

/** These values as a relation of one column, for `in`: the text of the statement is the same for any number of them. */
export const among = (session: Session, values: readonly string[]) => {
  const json = JSON.stringify(values.map(storable))
  return session.dialect === 'sqlite' ? sql`(select value from json_each(${json}))` : sql`(select json_array_elements_text(${json}::json))`
}

/** `for update` where the database has it: on SQLite a write transaction is alone anyway. */
export const forUpdate = <Q extends { forUpdate(): Q }>(session: Session, query: Q): Q =>
  session.dialect === 'postgresql' ? query.forUpdate() : query
