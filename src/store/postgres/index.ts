/** PostgreSQL 14 or newer, for several replicas. Its own clock is the clock of every statement (I4). */
import pg from 'pg'
import { kyselyOn } from '../connection.ts'
import { migrateWithin } from '../migrate.ts'
import { postgresNews } from './news.ts'
import { postgresClock } from '../time.ts'
import type { Migration } from '../migrations/index.ts'
import type { Db, News, Session, Store, Tx } from '../store.ts'
import { readInteger, storable } from '../values.ts'

/** One key for all replicas: "leasehold" in ASCII, cut to 63 bits. */
const migrationLock = '7810765853811303265'
const clockText = `(${postgresClock})`
// Serialization failure, deadlock, and a unique key that another transaction took at the same moment: the second look sees its row.
const retryable = new Set(['40001', '40P01', '23505'])
const tries = 4
/**
 * How long a statement may go without an answer. A connection that went dead without a word (a firewall that forgot it, a machine that was unplugged) would else
 * hold whoever uses it for a quarter of an hour, and everything of this process with it. Far above what any statement takes: migrations, which may take longer, have
 * a connection of their own.
 */
const statementMs = 60_000
const unanswered = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout'

// int8 comes as text by default; every integer here is below 2^53.
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === 20 && format !== 'binary'
      ? readInteger
      : (pg.types.getTypeParser(oid, format as 'text') as unknown)) as typeof pg.types.getTypeParser,
}

const mostPrepared = 200
const preparedAfter = 3

/** Names the statements that come again and again, so that the server parses and plans them once per connection. */
const createNamer = (): ((text: string) => string | undefined) => {
  const seen = new Map<string, number>()
  const names = new Map<string, string>()
  return (text) => {
    const name = names.get(text)
    if (name !== undefined || names.size >= mostPrepared) return name
    const times = (seen.get(text) ?? 0) + 1
    if (seen.size > 2_000) seen.clear()
    seen.set(text, times)
    if (times < preparedAfter) return undefined
    names.set(text, `s${names.size + 1}`)
    return names.get(text)
  }
}
const nameOf = createNamer()

const kyselyOnClient = (client: pg.ClientBase): Db =>
  kyselyOn('postgresql', async (query) => {
    const name = nameOf(query.sql)
    const values = query.parameters.map(storable)
    const result = await client.query({ text: query.sql, values, ...(name === undefined ? {} : { name }) })
    return { rows: result.rows as never[], numAffectedRows: BigInt(result.rowCount ?? 0) }
  })

class PostgresStore implements Store {
  readonly dialect = 'postgresql'
  readonly description: string
  readonly news: News
  readonly #pool: pg.Pool
  readonly #config: pg.ClientConfig
  readonly #dbs = new WeakMap<pg.ClientBase, Db>()
  readonly #underWay = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  constructor(url: string, connections: number, unansweredMs: number) {
    const parsed = new URL(url)
    this.description = `PostgreSQL database ${parsed.pathname.slice(1)} at ${parsed.host || 'a local socket'}`
    this.#config = {
      connectionString: url,
      types,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      application_name: 'leasehold',
      // A stalled holder of a row lock must not stop everybody: it is thrown out before those who wait for the row give up. By the default cost of a page, made
      // for disks that turn, a batch of a hundred rows reads a whole table of ten thousand rather than a hundred entries of its index.
      options: '-c idle_in_transaction_session_timeout=10000 -c lock_timeout=15000 -c random_page_cost=1.1',
    }
    this.#pool = new pg.Pool({ ...this.#config, max: connections, query_timeout: unansweredMs })
    this.news = postgresNews(url, (text, values) => this.#track(() => this.#pool.query(text, values)))
    // An idle connection that the server closed is replaced on next use; without a listener it would end the process.
    this.#pool.on('error', () => {})
    // The same of one that is in use: its statement fails by itself, and the connection is thrown away.
    this.#pool.on('connect', (client) => void client.on('error', () => {}))
  }

  async migrate(migrations?: readonly Migration[]): Promise<void> {
    const client = new pg.Client(this.#config)
    client.on('error', () => {})
    await client.connect()
    try {
      const { rows } = await client.query<{ server_version_num: string }>('show server_version_num')
      const version = Number(rows[0]?.server_version_num)
      if (version < 140000) throw new Error(`PostgreSQL 14 or newer is needed; ${this.description} runs ${Math.floor(version / 10000)}`)
      await client.query('begin')
      // Whoever comes second waits as long as the first one's migrations take.
      await client.query('set local lock_timeout = 0')
      await client.query(`select pg_advisory_xact_lock(${migrationLock})`)
      await migrateWithin(this.#db(client), 'postgresql', migrations)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    } finally {
      await client.end().catch(() => {})
    }
  }

  #db(client: pg.ClientBase): Db {
    const known = this.#dbs.get(client) ?? kyselyOnClient(client)
    this.#dbs.set(client, known)
    return known
  }

  /** The pool serves nobody who still waits for a connection when it ends: so a close waits for everybody who came before it. */
  #track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(new Error('the store is closed'))
    const running = work()
    const settled = running.then(
      () => {},
      () => {},
    )
    this.#underWay.add(settled)
    void settled.then(() => this.#underWay.delete(settled))
    return running
  }

  now(): Promise<number> {
    return this.#track(async () => {
      const { rows } = await this.#pool.query<{ now: number }>(clockText)
      return (rows[0] as { now: number }).now
    })
  }

  read<T>(body: (session: Session) => Promise<T>): Promise<T> {
    return this.#track(() => this.#readOnce(body))
  }

  async #readOnce<T>(body: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      return await body({ db: this.#db(client), dialect: 'postgresql' })
    } catch (error) {
      if (unanswered(error)) broken = error as Error
      throw error
    } finally {
      client.release(broken)
    }
  }

  write<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#track(() => this.#writeUntilDone(body))
  }

  async #writeUntilDone<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#writeOnce(body)
      } catch (error) {
        // Nothing was written: the body runs anew.
        if (attempt >= tries || !retryable.has((error as { code?: string }).code ?? '')) throw error
      }
    }
  }

  async #writeOnce<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      // One round trip for both; the answer of the second statement is the transaction's time.
      const results = (await client.query(`begin; ${clockText}`)) as unknown as [pg.QueryResult, pg.QueryResult<{ now: number }>]
      const now = (results[1].rows[0] as { now: number }).now
      const value = await body({ db: this.#db(client), dialect: 'postgresql', now })
      await client.query('commit')
      return value
    } catch (error) {
      // A rollback would wait behind what got no answer; without its connection the server rolls back by itself.
      if (unanswered(error)) broken = error as Error
      else
        await client.query('rollback').catch((rollback: Error) => {
          broken = rollback
        })
      throw error
    } finally {
      client.release(broken)
    }
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#underWay).then(() => this.#pool.end())
    return this.#closing
  }
}

/**
 * @param url `postgres://user:password@host:port/database`
 * @param options.connections at most so many at once (default 10)
 * @param options.statementMs how long a statement may go without an answer (default 60 s)
 * @throws when the server can't be reached or is older than 14; DatabaseTooNewError
 */
export const openPostgresStore = async (
  url: string,
  options: { connections?: number; migrations?: readonly Migration[]; statementMs?: number } = {},
): Promise<Store> => {
  const store = new PostgresStore(url, options.connections ?? 10, options.statementMs ?? statementMs)
  try {
    await store.migrate(options.migrations)
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}
