/** The embedded database: one file, WAL, every commit flushed to the disk. */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrateWithin } from '../migrate.ts'
import { kyselyOn } from '../connection.ts'
import type { Migration } from '../migrations/index.ts'
import type { Db, Session, Store, Tx } from '../store.ts'
import { SqliteClock } from './clock.ts'
import { SqliteConnection } from './connection.ts'

interface Waiting {
  body: (tx: Tx) => Promise<unknown>
  resolve: (value: never) => void
  reject: (error: unknown) => void
}

class SqliteStore implements Store {
  readonly dialect = 'sqlite'
  readonly description: string
  readonly #writer: SqliteConnection
  readonly #reader: SqliteConnection
  readonly #writerDb: Db
  readonly #readerDb: Db
  readonly #clock = new SqliteClock()
  #queue: Waiting[] = []
  #scheduled = false
  #running: Promise<void> = Promise.resolve()
  #closed = false

  constructor(path: string, writer: SqliteConnection) {
    this.description = `SQLite file ${path}`
    this.#writer = writer
    this.#reader = new SqliteConnection(path, { readOnly: true })
    this.#writerDb = kyselyOn('sqlite', async (query) => this.#writer.execute(query))
    this.#readerDb = kyselyOn('sqlite', async (query) => this.#reader.execute(query))
  }

  async migrate(migrations?: readonly Migration[]): Promise<void> {
    // Several processes may open a new file at once: the write lock is taken before the version is read.
    this.#writer.handle.exec('begin immediate')
    try {
      await migrateWithin(this.#writerDb, 'sqlite', migrations)
      this.#writer.handle.exec('commit')
    } catch (error) {
      if (this.#writer.handle.isTransaction) this.#writer.handle.exec('rollback')
      throw error
    }
  }

  async now(): Promise<number> {
    return this.#clock.read(this.#reader)
  }

  read<T>(body: (session: Session) => Promise<T>): Promise<T> {
    return body({ db: this.#readerDb, dialect: 'sqlite' })
  }

  write<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('the store is closed'))
    const waiting = new Promise<T>((resolve, reject) => this.#queue.push({ body, resolve, reject }))
    this.#schedule()
    return waiting
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    // After the I/O events of this tick: all that they asked for goes into one commit.
    setImmediate(() => {
      this.#running = this.#commitGroup()
    })
  }

  async #commitGroup(): Promise<void> {
    const group = this.#queue
    this.#queue = []
    const settle: (() => void)[] = []
    try {
      this.#writer.handle.exec('begin immediate')
      try {
        const tx: Tx = { db: this.#writerDb, dialect: 'sqlite', now: this.#clock.advance(this.#writer) }
        for (const waiting of group) settle.push(await this.#runOne(waiting, tx, group.length > 1))
        this.#writer.handle.exec('commit')
      } catch (error) {
        if (this.#writer.handle.isTransaction) this.#writer.handle.exec('rollback')
        throw error
      }
    } catch (error) {
      settle.length = 0
      for (const waiting of group) settle.push(() => waiting.reject(error))
    }
    this.#scheduled = false
    if (this.#queue.length > 0) this.#schedule()
    for (const done of settle) done()
  }

  /** One failing body takes back its own statements and nobody else's. */
  async #runOne(waiting: Waiting, tx: Tx, shared: boolean): Promise<() => void> {
    if (!shared) {
      const value = await waiting.body(tx)
      return () => waiting.resolve(value as never)
    }
    this.#writer.handle.exec('savepoint one')
    try {
      const value = await waiting.body(tx)
      this.#writer.handle.exec('release one')
      return () => waiting.resolve(value as never)
    } catch (error) {
      this.#writer.handle.exec('rollback to one; release one')
      return () => waiting.reject(error)
    }
  }

  async close(): Promise<void> {
    while (this.#scheduled) {
      await new Promise((resolve) => setImmediate(resolve))
      await this.#running
    }
    if (this.#closed) return
    this.#closed = true
    this.#reader.close()
    this.#writer.close()
  }
}

const walDeadlineMs = 10_000

/** SQLite answers "locked" at once, without waiting, when several processes switch a new file to WAL at the same moment. */
const switchToWal = async (writer: SqliteConnection): Promise<void> => {
  const deadline = performance.now() + walDeadlineMs
  for (;;) {
    try {
      return writer.handle.exec('pragma journal_mode = wal')
    } catch (error) {
      if (!/locked|busy/i.test((error as Error).message) || performance.now() > deadline) throw error
      await sleep(5 + Math.random() * 20)
    }
  }
}

const openWriter = async (path: string): Promise<SqliteConnection> => {
  const writer = new SqliteConnection(path)
  try {
    await switchToWal(writer)
    writer.handle.exec('pragma synchronous = full; pragma foreign_keys = on')
    // The defaults, 2 MB of pages and a checkpoint every 4 MB of log, have a crowd of removals read and write the same pages of its indexes over and over.
    writer.handle.exec('pragma cache_size = -32768; pragma wal_autocheckpoint = 8192')
    return writer
  } catch (error) {
    writer.close()
    throw error
  }
}

/**
 * Opens (and creates, 0600) the file and brings its schema forward.
 * @param path of the database file, or a `file:` URI
 * @throws DatabaseTooNewError when a newer Leasehold has changed it in a way this one can't live with
 */
export const openSqliteStore = async (path: string, migrations?: readonly Migration[]): Promise<Store> => {
  // A URI names a database that is no file, as suites keep theirs in memory.
  if (!path.startsWith('file:')) {
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    chmodSync(path, 0o600)
  }
  const store = new SqliteStore(path, await openWriter(path))
  try {
    await store.migrate(migrations)
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}
