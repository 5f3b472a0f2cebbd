import type { Selectable } from 'kysely'
import { forUpdate } from './bulk.ts'
import type { ScopesTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type ScopeRow = Selectable<ScopesTable>

/** Knows the scope from now on; its first sighting stays. */
export const rememberScope = async (tx: Tx, row: Omit<ScopeRow, 'first_seen_at'>): Promise<void> => {
  await tx.db
    .insertInto('scopes')
    .values({ ...row, first_seen_at: tx.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** One transaction at a time goes on past here for each scope. */
export const lockScope = async (tx: Tx, name: string): Promise<void> => {
  await forUpdate(
    tx,
    tx.db
      .selectFrom('scopes')
      .select('name')
      .where('name', '=', name as ScopeRow['name']),
  ).execute()
}

export const findScope = (session: Session, name: string): Promise<ScopeRow | undefined> =>
  session.db
    .selectFrom('scopes')
    .selectAll()
    .where('name', '=', name as ScopeRow['name'])
    .executeTakeFirst()
