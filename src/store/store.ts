/**
 * The port to the database. Two implementations with the same behaviour: SQLite in one file, PostgreSQL for several replicas.
 *
 * A body given to `write` talks to the database and to nothing else: it holds a transaction, and on SQLite everybody waits
 * for it. What `write` resolved with is durable: it survives `kill -9` and a power cut.
 */
import type { Kysely } from 'kysely'
import type { NewEvent } from './events.ts'
import type { Schema } from './schema.ts'

export type Db = Kysely<Schema>
export type DialectName = 'sqlite' | 'postgresql'

export interface Session {
  readonly db: Db
  readonly dialect: DialectName
}
/** A write transaction. `now` is the database's time in ms at its start (I4). */
export interface Tx extends Session {
  readonly now: number
  /** Who else is told of the events that it writes; absent: all are stored, and nobody is. */
  readonly feed?: Feed
}

export interface Feed {
  stores(code: string): boolean
  written(events: readonly NewEvent[]): void
}

export interface News {
  /** @param text below 8,000 bytes; every subscriber of the database gets it, this process too */
  publish(text: string): Promise<void>
  /**
   * @param restored after an interruption, in which news may have been lost
   * @returns ends it
   */
  subscribe(heard: (text: string) => void, restored: () => void): Promise<() => Promise<void>>
}

export interface Store {
  readonly dialect: DialectName
  /** The time in ms that every statement works by: the database's clock (PostgreSQL), or a monotonic one (SQLite). */
  now(): Promise<number>
  read<T>(body: (session: Session) => Promise<T>): Promise<T>
  /** Commits when the body resolves, rolls back when it throws. Transactions of one tick share a commit. */
  write<T>(body: (tx: Tx) => Promise<T>): Promise<T>
  /** Tells the other processes on this database; absent where there are none to tell. Only a shortcut: what is lost is found by polling. */
  readonly news?: News
  /** What lies behind the file or URL, without secrets; for messages. */
  readonly description: string
  close(): Promise<void>
}
