/** One `node:sqlite` handle with a statement cache. */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { CompiledQuery, QueryResult } from 'kysely'
import { storable } from '../values.ts'

const cacheSize = 300
const readsRows = /^\s*(?:select|with|pragma|values|explain)\b|\breturning\b/i

export class SqliteConnection {
  readonly handle: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(path: string, options: { readOnly?: boolean } = {}) {
    this.handle = new DatabaseSync(path, { readOnly: options.readOnly ?? false, timeout: 5000 })
  }

  prepare(text: string): StatementSync {
    const cached = this.#statements.get(text)
    if (cached) {
      this.#statements.delete(text)
      this.#statements.set(text, cached)
      return cached
    }
    const statement = this.handle.prepare(text)
    this.#statements.set(text, statement)
    if (this.#statements.size > cacheSize) this.#statements.delete(this.#statements.keys().next().value as string)
    return statement
  }

  execute(query: CompiledQuery): QueryResult<never> {
    const values = query.parameters.map(storable)
    const statement = this.prepare(query.sql)
    if (readsRows.test(query.sql)) return { rows: statement.all(...values) as never[] }
    const { changes } = statement.run(...values)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  close(): void {
    this.#statements.clear()
    this.handle.close()
  }
}
