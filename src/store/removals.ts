/** The durable act of taking one group back. */
import { sql, type Selectable } from 'kysely'
import { rowsIn } from './bulk.ts'
import type { AttemptId } from '../model/ids.ts'
import type { RemovalsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type RemovalRow = Selectable<RemovalsTable>

export const removalsByIds = (session: Session, ids: readonly string[]): Promise<RemovalRow[]> => rowsIn(session, 'removals', 'id', ids)

/** The open removals of these attempts: never two for one attempt. */
export const openRemovalsOf = async (session: Session, attemptIds: readonly AttemptId[]): Promise<RemovalRow[]> =>
  (await rowsIn(session, 'removals', 'attempt_id', attemptIds)).filter((row) => row.state !== 'gone')

/** Newest last. */
export const removalsOfLeases = (session: Session, leaseIds: readonly string[]): Promise<RemovalRow[]> =>
  rowsIn(session, 'removals', 'lease_id', leaseIds, { order: ['opened_at', 'id'] })

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
