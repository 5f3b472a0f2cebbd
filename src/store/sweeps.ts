/** Runs of a cleanup, each with its sealed certificate. */
import type { Selectable } from 'kysely'
import type { SweepsTable } from './schema-sweeps.ts'
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

export interface SweepFilter {
  project: string | null
  backend: string | null
  limit: number
}

/** Newest first. */
export const listSweeps = (session: Session, filter: SweepFilter): Promise<SweepRow[]> =>
  session.db
    .selectFrom('sweeps')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project as string))
    .$if(filter.backend !== null, (query) => query.where('backend', '=', filter.backend as string))
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()

export const sweepById = (session: Session, id: string): Promise<SweepRow | undefined> =>
  session.db.selectFrom('sweeps').selectAll().where('id', '=', id).executeTakeFirst()
