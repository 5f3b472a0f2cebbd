/** What stops removals because this database may not be the one that decides. Read with holds and freezes, by `readObstacles`. */
import type { Selectable } from 'kysely'
import type { StopsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type StopRow = Selectable<StopsTable>
export const everywhere = '*'

export const listStops = (session: Session): Promise<StopRow[]> => session.db.selectFrom('stops').selectAll().orderBy('scope').execute()

/** Another machine's clock may have been ahead: nothing that is known now was made after it. */
const newestMade = async (tx: Tx): Promise<number> => {
  const { newest } = await tx.db
    .selectFrom('attempts')
    .select((select) => select.fn.max('opened_at').as('newest'))
    .executeTakeFirstOrThrow()
  return Math.max(tx.now, newest ?? 0)
}

/** @returns false when that scope is stopped already; then only the newest epoch is kept */
export const addStop = async (tx: Tx, row: Omit<StopRow, 'since_at'>): Promise<boolean> => {
  const standing = await tx.db.selectFrom('stops').select('scope').where('scope', '=', row.scope).executeTakeFirst()
  const result = await tx.db
    .insertInto('stops')
    .values({ ...row, since_at: standing === undefined ? await newestMade(tx) : tx.now })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if ((result.numInsertedOrUpdatedRows ?? 0n) > 0n) return true
  if (row.epoch !== null)
    await tx.db
      .updateTable('stops')
      .set({ epoch: row.epoch })
      .where('scope', '=', row.scope)
      .where((where) => where.or([where('epoch', 'is', null), where('epoch', '<', row.epoch)]))
      .execute()
  return false
}

/** @returns those that stood */
export const endStops = async (tx: Tx): Promise<StopRow[]> => {
  const standing = await listStops(tx)
  await tx.db.deleteFrom('stops').execute()
  return standing
}
