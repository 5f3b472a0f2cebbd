/**
 * The queue in every table that has `Due` columns: the database is the queue. One statement locks due rows; `due_at` carries the
 * fetch and, while a row is locked, is the end of the lock, so that a dead worker's rows come back by themselves.
 */
import { sql } from 'kysely'
import type { Session, Tx } from './store.ts'

export type QueueTable = 'instances' | 'leases' | 'removals' | 'cleanups' | 'fleets'

/** All of them: a dead replica's locks end everywhere. */
export const queueTables: readonly QueueTable[] = ['leases', 'instances', 'removals', 'cleanups', 'fleets']

export interface Locked {
  id: string
  /** Whose row it is. */
  project?: string
  /** The fence of this lock: every write of its holder is guarded by it (I3). */
  fence: number
}

/** Ids with their fences as one JSON parameter, so that the statement's text is always the same. */
const pairs = (session: Session, held: readonly Locked[]) => {
  const json = JSON.stringify(held.map((lock) => [lock.id, lock.fence]))
  return session.dialect === 'sqlite'
    ? sql`(select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(${json}))`
    : sql`(select value->>0, (value->>1)::bigint from json_array_elements(${json}::json))`
}

/** Is anything due? Costs one index look-up, whatever the table's size. */
export const anyDue = async (session: Session, table: QueueTable, now: number): Promise<boolean> => {
  const query = sql`select 1 as one from ${sql.table(table)} where due_at <= ${now} limit 1`
  return (await query.execute(session.db)).rows.length > 0
}

/** Projects of which something is due. Costs one index look-up for each project that there is, however much is due. */
export const dueProjects = async (session: Session, table: QueueTable, now: number): Promise<string[]> => {
  const query = sql<{ name: string }>`select name from projects
    where exists (select 1 from ${sql.table(table)} as due where due.project = projects.name and due.due_at <= ${now})`
  return (await query.execute(session.db)).rows.map((row) => row.name)
}

/**
 * Locks up to `limit` due rows, the longest due first.
 * @param owner the replica
 * @param lockMs how long the lock stands unless extended
 * @param project of this one only
 */
export const lockDue = async (
  tx: Tx,
  table: QueueTable,
  owner: string,
  limit: number,
  lockMs: number,
  project?: string,
): Promise<Locked[]> => {
  const skip = tx.dialect === 'postgresql' ? sql`for update skip locked` : sql``
  const of = project === undefined ? sql`` : sql`and project = ${project}`
  const until = tx.now + lockMs
  const query = sql<Locked>`update ${sql.table(table)}
    set lock_fence = lock_fence + 1, lock_owner = ${owner}, lock_until = ${until}, due_at = ${until}
    where id in (select id from ${sql.table(table)} where due_at <= ${tx.now} ${of} order by due_at limit ${limit} ${skip})
    returning id, lock_fence as fence, project`
  return (await query.execute(tx.db)).rows
}

/**
 * The same rows, held by this transaction alone: no lock outlasts it. Whoever writes one raises its fence to the one given here, so that a worker whose lock has
 * run out writes nothing any more.
 */
export const takeDue = async (tx: Tx, table: QueueTable, limit: number, project?: string): Promise<Locked[]> => {
  const skip = tx.dialect === 'postgresql' ? sql`for update skip locked` : sql``
  const of = project === undefined ? sql`` : sql`and project = ${project}`
  const query = sql<Locked>`select id, lock_fence + 1 as fence, project from ${sql.table(table)}
    where due_at <= ${tx.now} ${of} order by due_at limit ${limit} ${skip}`
  return (await query.execute(tx.db)).rows
}

/** Extends locks that are still held. @returns the ids that are; whoever is missing has lost its lock. */
export const extendLocks = async (
  tx: Tx,
  table: QueueTable,
  held: readonly Locked[],
  owner: string,
  lockMs: number,
): Promise<Set<string>> => {
  if (held.length === 0) return new Set()
  const until = tx.now + lockMs
  const query = sql<{ id: string }>`update ${sql.table(table)} set lock_until = ${until}, due_at = ${until}
    where (id, lock_fence) in ${pairs(tx, held)} and lock_owner = ${owner} returning id`
  return new Set((await query.execute(tx.db)).rows.map((row) => row.id))
}

/**
 * The rows whose lock is still the holder's, locked for this transaction. A row that is not among them is stale: nothing
 * may be applied to it.
 */
export const stillHeld = async (tx: Tx, table: QueueTable, held: readonly Locked[]): Promise<Set<string>> => {
  if (held.length === 0) return new Set()
  const lock = tx.dialect === 'postgresql' ? sql`order by id for update` : sql``
  const query = sql<{
    id: string
  }>`select id from ${sql.table(table)} where (id, lock_fence) in ${pairs(tx, held)} and lock_owner is not null ${lock}`
  return new Set((await query.execute(tx.db)).rows.map((row) => row.id))
}

/** The same, only read, and not locked for anything. */
export const heldNow = async (session: Session, table: QueueTable, held: readonly Locked[]): Promise<Set<string>> => {
  if (held.length === 0) return new Set()
  const query = sql<{
    id: string
  }>`select id from ${sql.table(table)} where (id, lock_fence) in ${pairs(session, held)} and lock_owner is not null`
  return new Set((await query.execute(session.db)).rows.map((row) => row.id))
}

/** Lets locks of replicas that are known to be dead end at once. */
export const voidLocks = async (tx: Tx, table: QueueTable, owners: readonly string[]): Promise<void> => {
  if (owners.length === 0) return
  await sql`update ${sql.table(table)} set lock_owner = null, lock_until = null, due_at = ${tx.now}, lock_fence = lock_fence + 1
    where lock_owner in (${sql.join(owners.map((owner) => sql`${owner}`))})`.execute(tx.db)
}

/** What an apply writes on the row it gives back: free of the lock, due at `dueAt` (null: never). */
export const unlocked = (dueAt: number | null): { due_at: number | null; lock_owner: null; lock_until: null } => ({
  due_at: dueAt,
  lock_owner: null,
  lock_until: null,
})

/** Its account's rate has no room for it: given back under its fence until then, no try and no failure. */
export const putOffForRate = async (tx: Tx, table: Exclude<QueueTable, 'leases'>, held: Locked, until: number): Promise<void> => {
  if ((await stillHeld(tx, table, [held])).size === 0) return
  await sql`update ${sql.table(table)} set due_at = ${until}, waits_until = ${until}, lock_owner = null, lock_until = null
    where id = ${held.id}`.execute(tx.db)
}

/** ms: until when a row waits for its account's rate; null: it does not, or not any more. */
export const waitsUntil = (row: { waits_until: number | null; due_at: number | null; lock_owner: string | null }): number | null =>
  row.waits_until !== null && row.waits_until === row.due_at && row.lock_owner === null ? row.waits_until : null

/** Makes a row due now unless a worker has it (the worker's apply decides then). */
export const wakeRow = async (tx: Tx, table: QueueTable, id: string): Promise<void> => {
  await sql`update ${sql.table(table)} set due_at = ${tx.now} where id = ${id} and lock_owner is null and (due_at is null or due_at > ${tx.now})`.execute(
    tx.db,
  )
}

export const locksOf = async (session: Session, owner: string): Promise<number> => {
  let count = 0
  for (const table of queueTables) {
    const query = sql<{ n: number }>`select count(*) as n from ${sql.table(table)} where lock_owner = ${owner} and due_at is not null`
    count += Number((await query.execute(session.db)).rows[0]?.n ?? 0)
  }
  return count
}
