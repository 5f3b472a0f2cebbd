/** Bearer tokens: only their SHA-256 is stored. */
import type { Selectable } from 'kysely'
import type { TokensTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type TokenRow = Selectable<TokensTable>

export const insertToken = async (tx: Tx, row: Omit<TokenRow, 'created_at' | 'revoked_at'>): Promise<TokenRow> => {
  const full = { ...row, created_at: tx.now, revoked_at: null }
  await tx.db.insertInto('tokens').values(full).execute()
  return full
}

export const tokenByHash = (session: Session, hash: string): Promise<TokenRow | undefined> =>
  session.db.selectFrom('tokens').selectAll().where('hash', '=', hash).executeTakeFirst()

/** @param project null lists every project's */
export const listTokens = (session: Session, project: string | null): Promise<TokenRow[]> =>
  session.db
    .selectFrom('tokens')
    .selectAll()
    .$if(project !== null, (query) => query.where('project', '=', project))
    .orderBy('created_at')
    .execute()

export const tokenById = (session: Session, id: string): Promise<TokenRow | undefined> =>
  session.db.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirst()

/** Revoking twice keeps the first time. */
export const revokeToken = async (tx: Tx, id: string): Promise<TokenRow | undefined> => {
  await tx.db.updateTable('tokens').set({ revoked_at: tx.now }).where('id', '=', id).where('revoked_at', 'is', null).execute()
  return tokenById(tx, id)
}
