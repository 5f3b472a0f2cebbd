/** The durable act of taking one group back. */
import { sql, type Selectable } from 'kysely'
import { forUpdate } from './bulk.ts'
import type { AttemptId, LeaseId, RemovalId } from '../model/ids.ts'
import type { RemovalsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type RemovalRow = Selectable<RemovalsTable>

export const removalsByIds = async (session: Session, ids: readonly string[]): Promise<RemovalRow[]> =>
  ids.length === 0
    ? []
    : session.db
        .selectFrom('removals')
        .selectAll()
        .where('id', 'in', ids as RemovalId[])
        .execute()

export const lockRemovals = async (tx: Tx, ids: readonly string[]): Promise<RemovalRow[]> =>
  ids.length === 0
    ? []
    : forUpdate(
        tx,
        tx.db
          .selectFrom('removals')
          .selectAll()
          .where('id', 'in', ids as RemovalId[])
          .orderBy('id'),
      ).execute()

/** The open removals of these attempts: never two for one attempt. */
export const openRemovalsOf = async (session: Session, attemptIds: readonly AttemptId[]): Promise<RemovalRow[]> =>
  attemptIds.length === 0
    ? []
    : session.db.selectFrom('removals').selectAll().where('attempt_id', 'in', attemptIds).where('state', '<>', 'gone').execute()

/** Newest last. */
export const removalsOfLeases = async (session: Session, leaseIds: readonly string[]): Promise<RemovalRow[]> =>
  leaseIds.length === 0
    ? []
    : session.db
        .selectFrom('removals')
        .selectAll()
        .where('lease_id', 'in', leaseIds as LeaseId[])
        .orderBy('opened_at')
        .orderBy('id')
        .execute()

/** Held removals are tried again at once: when a hold or a freeze goes. */
export const wakeHeldRemovals = async (tx: Tx): Promise<void> => {
  await tx.db
    .updateTable('removals')
    .set({ due_at: tx.now })
    .where('held_by', 'is not', null)
    .where('state', '<>', 'gone')
    .where('lock_owner', 'is', null)
    .where('due_at', 'is not', null)
    .execute()
}

export const countRemovals = async (session: Session): Promise<Record<string, number>> => {
  const rows = await session.db
    .selectFrom('removals')
    .select(['state', sql<number>`count(*)`.as('n')])
    .groupBy('state')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.n)]))
}
