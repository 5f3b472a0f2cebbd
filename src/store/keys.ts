/** Keys of the keyed tag. One is current; retired ones still verify what they made, for ever. */
import type { Selectable } from 'kysely'
import type { KeysTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type KeyRow = Selectable<KeysTable>

/** Oldest first. */
export const listKeys = (session: Session): Promise<KeyRow[]> =>
  session.db.selectFrom('keys').selectAll().orderBy('created_at').orderBy('id').execute()

/** The newest that is not retired. */
export const currentKey = (session: Session): Promise<KeyRow | undefined> =>
  session.db
    .selectFrom('keys')
    .selectAll()
    .where('retired_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

/** The others are retired in the same transaction. */
export const addKey = async (tx: Tx, fresh: Pick<KeyRow, 'id' | 'secret'>): Promise<void> => {
  await tx.db.updateTable('keys').set({ retired_at: tx.now }).where('retired_at', 'is', null).execute()
  await tx.db
    .insertInto('keys')
    .values({ ...fresh, created_at: tx.now, retired_at: null })
    .execute()
}
