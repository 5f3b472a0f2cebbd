/** The account: an SQLite file that several processes may use at once. Every call is one `begin immediate` transaction. */
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

const formatVersion = 2

// `seq` is never used again (autoincrement), so no id is. Times are ms. `due_at`: when something next happens by itself.
const schema = `
  create table account (id text not null, requests integer not null);
  create table resources (
    seq integer primary key autoincrement,
    kind text not null, location text not null, name text not null,
    tags text, ref text, token text,
    created_at integer not null, ready_at integer not null, visible_at integer not null,
    deadline_at integer, at_deadline text not null, stopped_at integer,
    ending_at integer, ended_at integer, linger_ms integer not null, settled integer not null default 0, due_at integer,
    version integer not null default 1
  );
  create index resources_by_cell on resources (location, kind, seq);
  create index resources_by_ref on resources (ref) where ref is not null;
  create index resources_by_due on resources (due_at) where due_at is not null;
  create table attachments (member integer not null, target integer not null, on_end text not null, primary key (member, target)) without rowid;
  create index attachments_by_target on attachments (target);
  create table tokens (token text primary key, machine integer not null) without rowid;
  create table faults (
    id integer primary key autoincrement,
    operation text not null, effect text not null, remaining integer, length_ms integer,
    page integer, location text, kind text, struck integer not null default 0
  );
`

const busy = (error: unknown): boolean => /locked|busy/i.test((error as Error).message)

/** Turning the journal on takes a lock that SQLite does not wait for, so processes that open a new file at once try again. */
const useJournal = (handle: DatabaseSync): void => {
  for (let tries = 0; ; tries += 1) {
    try {
      handle.exec('pragma journal_mode = wal; pragma synchronous = normal')
      return
    } catch (error) {
      if (tries === 200 || !busy(error)) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

export class Database {
  readonly path: string
  readonly #handle: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  /** Makes the file where there is none. @throws when it can't be opened, or is none of ours */
  constructor(path: string) {
    this.path = path
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    closeSync(openSync(path, 'a', 0o600))
    this.#handle = new DatabaseSync(path, { timeout: 5000 })
    try {
      useJournal(this.#handle)
      this.transaction(() => {
        this.#prepareFile()
        this.#addContents()
      })
    } catch (error) {
      this.#handle.close()
      throw error
    }
  }

  #prepareFile(): void {
    const { user_version: version } = this.one<{ user_version: number }>('pragma user_version') ?? { user_version: 0 }
    if (version === formatVersion) return
    if (version === 1) {
      this.#handle.exec('alter table resources add column version integer not null default 1')
      this.#handle.exec(`pragma user_version = ${formatVersion}`)
      return
    }
    if (version !== 0)
      throw new Error(`${this.path} was written by another version of Leasehold (format ${version}); use a file of its own`)
    if (this.all('select name from sqlite_schema').length > 0)
      throw new Error(`${this.path} is another program's database; use a file of its own`)
    this.#handle.exec(schema)
    this.run('insert into account (id, requests) values (?, 0)', randomBytes(6).toString('hex'))
    this.#handle.exec(`pragma user_version = ${formatVersion}`)
  }

  /** What holders leave on machines, and where the account's time is counted from; an account from before there was any gets the table. */
  #addContents(): void {
    this.#handle.exec('create table if not exists clock (boot text not null, wall integer not null, steady integer not null)')
    this.#handle.exec(
      'create table if not exists contents (machine integer not null, item text not null, primary key (machine, item)) without rowid',
    )
  }

  transaction<T>(body: () => T): T {
    this.#handle.exec('begin immediate')
    try {
      const value = body()
      this.#handle.exec('commit')
      return value
    } catch (error) {
      if (this.#handle.isTransaction) this.#handle.exec('rollback')
      throw error
    }
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[]
  }

  one<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined
  }

  /** @returns the rowid of an insert */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid)
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#handle.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  close(): void {
    this.#statements.clear()
    this.#handle.close()
  }
}
