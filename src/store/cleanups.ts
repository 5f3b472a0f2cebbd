/** One row per backend schedules its sweeps (orphans R28). */
import { sql, type Selectable } from 'kysely'
import type { CleanupsTable } from './schema-sweeps.ts'
import type { Tx } from './store.ts'

export type CleanupRow = Selectable<CleanupsTable>

/** Idempotent, also when two replicas do it at once (orphans R32). @returns true when the row is new. */
export const enrol = async (tx: Tx, project: string, backend: string, dueAt: number): Promise<boolean> => {
  const result = await tx.db
    .insertInto('cleanups')
    .values({
      id: `${project}/${backend}`,
      project,
      backend,
      enrolled_at: tx.now,
      clean_at: null,
      clean_mode: null,
      listed_at: null,
      outcome: null,
      requested_at: null,
      due_at: dueAt,
      lock_owner: null,
      lock_until: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** A row as it was read: whoever has locked it since, or was asked for a sweep, has changed one of these. */
export interface PutOff {
  id: string
  lockFence: number
  seenDueAt: number
  requestedAt: number | null
  dueAt: number
}

/** Moves rows that need no work to their next time, in one statement and without a lock; the fence shows that they were processed. @returns how many were still as they had been read */
export const putOff = async (tx: Tx, rows: readonly PutOff[]): Promise<number> => {
  if (rows.length === 0) return 0
  const json = JSON.stringify(rows.map((row) => [row.id, row.lockFence, row.seenDueAt, row.requestedAt ?? 0, row.dueAt]))
  const given =
    tx.dialect === 'sqlite'
      ? sql`(select json_extract(value, '$[0]') as id, json_extract(value, '$[1]') as fence, json_extract(value, '$[2]') as seen,
          json_extract(value, '$[3]') as requested, json_extract(value, '$[4]') as next from json_each(${json})) as v`
      : sql`(select value->>0 as id, (value->>1)::bigint as fence, (value->>2)::bigint as seen, (value->>3)::bigint as requested,
          (value->>4)::bigint as next from json_array_elements(${json}::json)) as v`
  const query = sql`update cleanups set due_at = v.next, lock_fence = lock_fence + 1 from ${given}
    where cleanups.id = v.id and cleanups.lock_owner is null and cleanups.lock_fence = v.fence and cleanups.due_at = v.seen
      and coalesce(cleanups.requested_at, 0) = v.requested`
  return Number((await query.execute(tx.db)).numAffectedRows ?? 0n)
}
