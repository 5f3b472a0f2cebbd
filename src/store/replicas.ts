/** The processes that work on this database, and when each last said that it lives. */
import type { Selectable } from 'kysely'
import type { ReplicasTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type ReplicaRow = Selectable<ReplicasTable>

export const insertReplica = async (tx: Tx, row: Omit<ReplicaRow, 'started_at' | 'alive_at' | 'stopped_at'>): Promise<void> => {
  await tx.db
    .insertInto('replicas')
    .values({ ...row, started_at: tx.now, alive_at: tx.now, stopped_at: null })
    .execute()
}

/** The alive mark. */
export const markAlive = async (tx: Tx, id: string, skewMs: number): Promise<void> => {
  await tx.db.updateTable('replicas').set({ alive_at: tx.now, skew_ms: skewMs }).where('id', '=', id).execute()
}

export const markStopped = async (tx: Tx, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await tx.db.updateTable('replicas').set({ stopped_at: tx.now }).where('id', 'in', ids).where('stopped_at', 'is', null).execute()
}

/** Those not known to have stopped. */
export const runningReplicas = (session: Session): Promise<ReplicaRow[]> =>
  session.db.selectFrom('replicas').selectAll().where('stopped_at', 'is', null).orderBy('started_at').execute()

/** When any replica but this one last said that it lives, in ms; null on a new database. */
export const lastAliveMark = async (session: Session, except: string): Promise<number | null> =>
  (
    await session.db
      .selectFrom('replicas')
      .select((select) => select.fn.max('alive_at').as('at'))
      .where('id', '<>', except)
      .executeTakeFirst()
  )?.at ?? null

export const isKnownDead = async (session: Session, id: string): Promise<boolean> => {
  const row = await session.db.selectFrom('replicas').select('stopped_at').where('id', '=', id).executeTakeFirst()
  return row !== undefined && row.stopped_at !== null
}
