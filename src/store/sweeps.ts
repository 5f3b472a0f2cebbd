/** Runs of a cleanup, each with its sealed certificate. */
import type { Selectable } from 'kysely'
import type { SweepsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type SweepRow = Selectable<SweepsTable>

export const insertSweep = async (tx: Tx, row: Omit<SweepRow, 'started_at' | 'finished_at' | 'outcome' | 'certificate'>): Promise<void> => {
  await tx.db
    .insertInto('sweeps')
    .values({ ...row, started_at: tx.now, finished_at: null, outcome: null, certificate: null })
    .execute()
}

/** A certificate is written once: a finished sweep stays as it is. */
export const finishSweep = async (tx: Tx, id: string, outcome: string, certificate: string): Promise<boolean> => {
  const result = await tx.db
    .updateTable('sweeps')
    .set({ finished_at: tx.now, outcome, certificate })
    .where('id', '=', id)
    .where('finished_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export const listSweeps = (session: Session, project: string, backend: string, limit: number): Promise<SweepRow[]> =>
  session.db
    .selectFrom('sweeps')
    .selectAll()
    .where('project', '=', project)
    .where('backend', '=', backend)
    .orderBy('started_at', 'desc')
    .limit(limit)
    .execute()
