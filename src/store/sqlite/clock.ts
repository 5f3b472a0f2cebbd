/**
 * The clock of a SQLite file (I4): the process's monotonic clock, set by the wall clock at start, and never behind the newest
 * time that the file holds, so that several processes on one file agree. A wall clock that jumps while we run changes nothing.
 */
import type { SqliteConnection } from './connection.ts'

export class SqliteClock {
  readonly #base = Date.now() - performance.now()
  #newest = 0

  /** @returns ms; takes the file's offset, or its frozen time, which only tests write. */
  #own(offset: number): number {
    return Math.floor(this.#base + performance.now()) + offset
  }

  /** Inside the write transaction: reads the newest time and writes ours, so that no later transaction is before it. */
  advance(connection: SqliteConnection): number {
    const row = connection.prepare('select newest, offset_ms, frozen_ms from clock where id = 1').get() as
      | { newest: number; offset_ms: number; frozen_ms: number | null }
      | undefined
    if (!row) return this.#own(0)
    if (row.frozen_ms !== null) return row.frozen_ms
    const now = Math.max(row.newest, this.#own(row.offset_ms))
    if (now > row.newest) connection.prepare('update clock set newest = ? where id = 1').run(now)
    this.#newest = now
    return now
  }

  /** Outside of a transaction: never behind what this process or the file has said. */
  read(connection: SqliteConnection): number {
    const row = connection.prepare('select newest, offset_ms, frozen_ms from clock where id = 1').get() as
      | { newest: number; offset_ms: number; frozen_ms: number | null }
      | undefined
    if (row?.frozen_ms != null) return row.frozen_ms
    this.#newest = Math.max(this.#newest, row?.newest ?? 0, this.#own(row?.offset_ms ?? 0))
    return this.#newest
  }
}
