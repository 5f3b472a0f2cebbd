/** One row per backend schedules its sweeps (orphans R28). */
import type { Selectable } from 'kysely'
import type { CleanupsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

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

export const listCleanups = (session: Session): Promise<CleanupRow[]> =>
  session.db.selectFrom('cleanups').selectAll().orderBy('project').orderBy('backend').execute()
