/**
 * One SQLite database in memory for all worlds of a process, emptied between them, so that its statements are compiled once. Triggers watch the rows themselves:
 * what an invariant forbids is written down as a violation, whoever does it and however it gets there.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { openSqliteStore } from '../../../src/store/sqlite/index.ts'
import type { Store } from '../../../src/store/store.ts'

export interface Violation {
  invariant: string
  what: string
}

/** In memory nobody may read while a transaction is open; in a file readers would see what was there before it. */
export interface Gate {
  entered(): void
  left(): void
  /** Resolves when no transaction is open. */
  shut(): Promise<void> | undefined
}

const makeGate = (): Gate => {
  let inside = 0
  let waiting = Promise.withResolvers<void>()
  return {
    entered: () => void inside++,
    left() {
      if (--inside > 0) return
      waiting.resolve()
      waiting = Promise.withResolvers<void>()
    },
    shut: () => (inside > 0 ? waiting.promise : undefined),
  }
}

export interface WorldDatabase {
  store: Store
  gate: Gate
  /** As on the first day, at this time. */
  reset(now: number): void
  setClock(now: number): void
  /** Committed rows, seen from outside of every transaction. */
  rows<T>(query: string, ...values: (string | number)[]): T[]
  /** Done by hand, as a person with a database tool would. */
  run(statement: string, ...values: (string | number)[]): void
  violations(): Violation[]
  close(): Promise<void>
}

const queues = ['instances', 'leases', 'removals', 'cleanups'] as const

const when = (condition: string, invariant: string, what: string): string =>
  `when (select active from world) = 1 and (${condition}) begin insert into violations values ('${invariant}', ${what}); end`

const triggers = [
  'create table world (id integer primary key, active integer not null, who text not null)',
  "insert into world values (1, 0, '')",
  'create table violations (invariant text not null, what text not null)',
  `create trigger world_forgets before delete on ledger ${when('1', 'I2', "'ref ' || old.ref || ' was forgotten'")}`,
  `create trigger world_renames after update of ref, owner_id, issued_at on ledger ${when(
    'old.ref <> new.ref or old.owner_id <> new.owner_id or old.issued_at <> new.issued_at',
    'I2',
    "'the entry of ref ' || old.ref || ' was changed'",
  )}`,
  `create trigger world_revives_lease after update of state on leases ${when(
    "old.state in ('released', 'expired', 'failed') and new.state in ('provisioning', 'active')",
    'I9',
    "'lease ' || old.id || ' was ' || old.state || ' and became ' || new.state",
  )}`,
  `create trigger world_revives_instance after update of state on instances ${when(
    "old.state = 'terminated' and new.state <> 'terminated'",
    'I9',
    "'instance ' || old.id || ' was terminated and became ' || new.state",
  )}`,
  `create trigger world_revives_removal after update of state on removals ${when(
    "old.state = 'gone' and new.state <> 'gone'",
    'I9',
    "'removal ' || old.id || ' was gone and became ' || new.state",
  )}`,
  `create trigger world_rewrites_audit after update of body, kind, at on audit ${when('1', 'I7', "'audit record ' || old.id || ' was rewritten'")}`,
  `create trigger world_drops_audit before delete on audit ${when('1', 'I7', "'audit record ' || old.id || ' was deleted'")}`,
  ...queues.flatMap((table) => [
    `create trigger world_fence_${table} after update of lock_fence on ${table} ${when(
      'new.lock_fence < old.lock_fence',
      'I3',
      `'the fence of ${table} ' || old.id || ' went back'`,
    )}`,
    // Who gives back a lock, or moves it, is its holder, or has moved the fence on.
    `create trigger world_lock_${table} after update of lock_owner on ${table} ${when(
      'new.lock_fence = old.lock_fence and old.lock_owner is not null and new.lock_owner is not old.lock_owner and old.lock_owner <> (select who from world)',
      'I3',
      `'${table} ' || old.id || ' is held by ' || old.lock_owner || ', and ' || (select who from world) || ' wrote it'`,
    )}`,
  ]),
  // A stale result is none: what the removal came to is written by who holds it, and appended to what is there.
  `create trigger world_progress after update of progress on removals ${when(
    'substr(new.progress, 1, length(old.progress) - 1) <> substr(old.progress, 1, length(old.progress) - 1)',
    'I3',
    "'the progress of removal ' || old.id || ' was ' || old.progress || ' and became ' || new.progress",
  )}`,
]

let databases = 0

export const openWorldDatabase = async (): Promise<WorldDatabase> => {
  const path = `file:/worlds-${++databases}?vfs=memdb`
  const store = await openSqliteStore(path)
  const raw = new DatabaseSync(path)
  for (const statement of triggers) raw.exec(statement)
  const statements = new Map<string, StatementSync>()
  const prepared = (text: string): StatementSync => {
    const known = statements.get(text) ?? raw.prepare(text)
    statements.set(text, known)
    return known
  }
  const names = (raw.prepare("select name from sqlite_schema where type = 'table'").all() as { name: string }[]).map((row) => row.name)
  const kept = ['world', 'schema_version', 'clock', 'chain']
  const emptied = names.filter((name) => !kept.includes(name) && !name.startsWith('sqlite_'))
  const chain = raw.prepare('select * from chain').all() as Record<string, string | number | null>[]
  const setClock = (now: number): void => void prepared('update clock set frozen_ms = ?').run(now)
  return {
    store,
    gate: makeGate(),
    reset(now) {
      raw.exec('begin immediate')
      raw.exec('pragma defer_foreign_keys = on; update world set active = 0')
      for (const name of [...emptied, 'chain']) raw.exec(`delete from ${name}`)
      for (const row of chain) {
        const columns = Object.keys(row)
        prepared(`insert into chain (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`).run(...Object.values(row))
      }
      raw.exec("update clock set newest = 0, offset_ms = 0; update world set active = 1, who = ''")
      setClock(now)
      raw.exec('commit')
    },
    setClock,
    rows: <T>(query: string, ...values: (string | number)[]) => prepared(query).all(...values) as T[],
    run: (statement, ...values) => void prepared(statement).run(...values),
    violations: () => prepared('select invariant, what from violations').all() as unknown as Violation[],
    async close() {
      raw.close()
      await store.close()
    },
  }
}

const nextDue = `select min(at) as at from (select min(due_at) as at from instances where due_at is not null
  union all select min(due_at) from leases where due_at is not null union all select min(due_at) from removals where due_at is not null
  union all select min(due_at) from cleanups where due_at is not null)`

/** When any row is due next, ms; null: never. */
export const nextDueAt = (database: WorldDatabase): number | null => database.rows<{ at: number | null }>(nextDue)[0]?.at ?? null
