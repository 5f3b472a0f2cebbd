/** Every ref ever issued. Rows are added and closed, never deleted (I2). */
import { sql, type Selectable } from 'kysely'
import { among } from './bulk.ts'
import type { Ref } from '../model/ids.ts'
import type { LedgerTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type LedgerRow = Selectable<LedgerTable>

export const ledgerByRef = (session: Session, ref: string): Promise<LedgerRow | undefined> =>
  session.db
    .selectFrom('ledger')
    .selectAll()
    .where('ref', '=', ref as Ref)
    .executeTakeFirst()

/** Written in the transaction that closes the owner, for whatever reason (orphans U4); the first time stays. */
export const closeOwners = async (tx: Tx, refs: readonly Ref[]): Promise<void> => {
  if (refs.length === 0) return
  await tx.db
    .updateTable('ledger')
    .set({ owner_closed_at: tx.now })
    .where(sql<boolean>`ref in ${among(tx, refs)}`)
    .where('owner_closed_at', 'is', null)
    .execute()
}
