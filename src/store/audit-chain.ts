/** The chain's own row, and the numbers and hashes that it gave. Whoever moves the row on must know its fence; every look is by an index. */
import { sql, type Selectable } from 'kysely'
import type { ChainPoint, Seal, SealedText } from '../model/audit-chain.ts'
import type { RemovalState } from '../model/wire.ts'
import type { AuditRecord } from './audit.ts'
import { among } from './bulk.ts'
import type { ChainTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type ChainRow = Selectable<ChainTable>

export const chainRow = (session: Session): Promise<ChainRow> =>
  session.db.selectFrom('chain').selectAll().where('id', '=', 'audit').executeTakeFirstOrThrow()

/** The row, and the highest number that any record has: read in one statement, so that no sealing falls between the two. */
export const chainEnd = async (session: Session): Promise<Pick<ChainRow, 'seq' | 'hash' | 'sealed_at'> & { newest: number }> => {
  const { rows } = await sql<Pick<ChainRow, 'seq' | 'hash' | 'sealed_at'> & { newest: number | null }>`select chain.seq as seq,
    chain.hash as hash, chain.sealed_at as sealed_at, (select max(audit.seq) from audit where audit.seq is not null) as newest
    from chain where chain.id = 'audit'`.execute(session.db)
  const [row] = rows
  if (!row) throw new Error('the row of the audit chain is missing: was it deleted?')
  return { ...row, newest: row.newest ?? 0 }
}

/** Committed and not chained yet, oldest first: the order in which they are chained. */
export const unsealedRecords = (session: Session, limit: number): Promise<AuditRecord[]> =>
  session.db.selectFrom('audit').selectAll().where('seq', 'is', null).orderBy('at').orderBy('id').limit(limit).execute()

/** @returns how many, counted up to `most`, and the time of the oldest */
export const countUnsealed = async (session: Session, most: number): Promise<{ count: number; oldestAt: number | null }> => {
  const { rows } = await sql<{ n: number; oldest: number | null }>`select count(*) as n, min(at) as oldest
    from (select at from audit where seq is null order by at, id limit ${most}) as waiting`.execute(session.db)
  return { count: Number(rows[0]?.n ?? 0), oldestAt: rows[0]?.oldest ?? null }
}

export interface Held {
  fence: number
  head: ChainPoint
}

/**
 * Writes what a sealer worked out, if the chain still is where that sealer read it (I3): of two at once exactly one writes.
 * @param until ms: till then others leave the sealing to `owner`
 * @returns false: the fence or the head had moved, and nothing was written
 */
export const writeSeals = async (tx: Tx, held: Held, seals: readonly Seal[], owner: string, until: number): Promise<boolean> => {
  const last = seals.at(-1)
  if (last === undefined) return true
  const moved = await tx.db
    .updateTable('chain')
    .set({ seq: last.seq, hash: last.hash, sealed_at: tx.now, lock_fence: held.fence + 1, lock_owner: owner, lock_until: until })
    .where('id', '=', 'audit')
    .where('lock_fence', '=', held.fence)
    .where('seq', '=', held.head.seq)
    .where('hash', '=', held.head.hash)
    .executeTakeFirst()
  if (moved.numUpdatedRows !== 1n) return false
  const json = JSON.stringify(seals.map((seal) => [seal.id, seal.seq, seal.hash]))
  const values =
    tx.dialect === 'sqlite'
      ? sql`(select json_extract(value, '$[0]') as id, json_extract(value, '$[1]') as seq, json_extract(value, '$[2]') as hash from json_each(${json}))`
      : sql`(select value->>0 as id, (value->>1)::bigint as seq, value->>2 as hash from json_array_elements(${json}::json))`
  // What is chained is never chained again.
  const written = await sql`update audit set seq = v.seq, hash = v.hash from ${values} as v
    where audit.id = v.id and audit.seq is null`.execute(tx.db)
  if (written.numAffectedRows !== BigInt(seals.length)) throw new Error('audit records that were to be sealed are not there any more')
  return true
}

/** Chained records in order. */
export const sealedAfter = async (session: Session, after: number, upTo: number, limit: number): Promise<SealedText[]> =>
  (await session.db
    .selectFrom('audit')
    .selectAll()
    .where('seq', '>', after)
    .where('seq', '<=', upTo)
    .orderBy('seq')
    .limit(limit)
    .execute()) as SealedText[]

/** The hashes at these numbers. */
export const hashesAt = async (session: Session, seqs: readonly number[]): Promise<Map<number, string>> => {
  if (seqs.length === 0) return new Map()
  const rows = await session.db.selectFrom('audit').select(['seq', 'hash']).where('seq', 'in', seqs).execute()
  return new Map(rows.map((row) => [row.seq as number, row.hash ?? '']))
}

/** Those of the intents that have an outcome, sealed or not. */
export const answeredIntents = async (session: Session, intents: readonly string[]): Promise<Set<string>> => {
  if (intents.length === 0) return new Set()
  const { rows } = await sql<{ id: string }>`select intent_id as id from audit
    where kind = 'outcome' and intent_id in ${among(session, intents)}`.execute(session.db)
  return new Set(rows.map((row) => row.id))
}

/** Those of the ids that are intents. */
export const knownIntents = async (session: Session, ids: readonly string[]): Promise<Set<string>> => {
  if (ids.length === 0) return new Set()
  const { rows } = await sql<{ id: string }>`select id from audit where id in ${among(session, ids)} and kind = 'intent'`.execute(
    session.db,
  )
  return new Set(rows.map((row) => row.id))
}

export interface RemovalOfIntent {
  id: string
  state: RemovalState
  /** An outcome of any of its intents, or a proof of absence of it or of another removal of the same attempt. */
  explained: boolean
}

/** What became of the removals whose intents have no outcome. */
export const removalsOfIntents = async (session: Session, removalIds: readonly string[]): Promise<Map<string, RemovalOfIntent>> => {
  if (removalIds.length === 0) return new Map()
  const { rows } = await sql<{ id: string; state: RemovalState; explained: number }>`select removals.id as id, removals.state as state,
    case when exists (select 1 from audit where audit.removal_id = removals.id and audit.kind in ('outcome', 'proof'))
      or exists (select 1 from removals as other join audit on audit.removal_id = other.id
        where other.attempt_id = removals.attempt_id and audit.kind = 'proof') then 1 else 0 end as explained
    from removals where removals.id in ${among(session, removalIds)}`.execute(session.db)
  return new Map(rows.map((row) => [row.id, { id: row.id, state: row.state, explained: Number(row.explained) === 1 }]))
}
