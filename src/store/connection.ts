/** A Kysely that speaks through one connection which somebody else opened: transactions are begun and ended around it, not by it. */
import {
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type QueryResult,
} from 'kysely'
import type { Schema } from './schema.ts'

export type Execute = (query: CompiledQuery) => Promise<QueryResult<never>>

const dialects = {
  sqlite: { adapter: SqliteAdapter, introspector: SqliteIntrospector, compiler: SqliteQueryCompiler },
  postgresql: { adapter: PostgresAdapter, introspector: PostgresIntrospector, compiler: PostgresQueryCompiler },
} as const

const unsupported = async (): Promise<never> => {
  throw new Error('transactions are begun by Store.write, not by Kysely')
}

/** @param execute runs one compiled statement on the connection. */
export const kyselyOn = (dialect: keyof typeof dialects, execute: Execute): Kysely<Schema> => {
  const connection: DatabaseConnection = {
    executeQuery: (query) => execute(query),
    streamQuery: () => {
      throw new Error('streaming is not supported: read in pages')
    },
  }
  const parts = dialects[dialect]
  const made: Dialect = {
    createAdapter: () => new parts.adapter(),
    createIntrospector: (db) => new parts.introspector(db),
    createQueryCompiler: () => new parts.compiler(),
    createDriver: () => ({
      init: async () => {},
      acquireConnection: async () => connection,
      beginTransaction: unsupported,
      commitTransaction: unsupported,
      rollbackTransaction: unsupported,
      releaseConnection: async () => {},
      destroy: async () => {},
    }),
  }
  return new Kysely<Schema>({ dialect: made })
}
