/**
 * The clock of a SQLite file (I4): the process's monotonic clock, set by the wall clock at start, and never behind the newest
 * time that the file holds, so that several processes on one file agree. A wall clock that jumps while we run changes nothing; one that was
 * set back between two runs neither: time goes on from the newest that the file holds, instead of standing still until the wall is there.
 */
import type { SqliteConnection } from './connection.ts'

/** One for the process, so that all its stores agree to the millisecond. */
const startOfProcess = Date.now() - performance.now()

export class SqliteClock {
  #base = startOfProcess
  #newest = 0

  /** @param offset the file's, which only tests write. @returns ms, at `newest` or later */
  #own(offset: number, newest: number): number {
    const behind = newest - Math.floor(this.#base + performance.now()) - offset
    if (behind > 0) this.#base += behind
    return Math.max(newest, Math.floor(this.#base + performance.now()) + offset)
  }

  /** Inside the write transaction: reads the newest time and writes ours, so that no later transaction is before it. */
  advance(connection: SqliteConnection): number {
    const row = connection.prepare('select newest, offset_ms, frozen_ms from clock where id = 1').get() as
      | { newest: number; offset_ms: number; frozen_ms: number | null }
      | undefined
    if (!row) return this.#own(0, 0)
    if (row.frozen_ms !== null) return row.frozen_ms
    const now = this.#own(row.offset_ms, row.newest)
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
    this.#newest = Math.max(this.#newest, this.#own(row?.offset_ms ?? 0, row?.newest ?? 0))
    return this.#newest
  }
}
