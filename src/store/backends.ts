import type { Selectable } from 'kysely'
import type { ScopeId } from '../model/ids.ts'
import type { BackendsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type BackendRow = Selectable<BackendsTable>

/** @param project null lists every project's */
export const listBackends = (session: Session, project: string | null): Promise<BackendRow[]> =>
  session.db
    .selectFrom('backends')
    .selectAll()
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('project')
    .orderBy('name')
    .execute()

export const findBackend = (session: Session, project: string, name: string): Promise<BackendRow | undefined> =>
  session.db.selectFrom('backends').selectAll().where('project', '=', project).where('name', '=', name).executeTakeFirst()

/** @returns false when the name is taken, by a draining backend too. */
export const insertBackend = async (tx: Tx, row: Omit<BackendRow, 'created_at' | 'deleted_at'>): Promise<boolean> => {
  if (row.is_default) await clearDefault(tx, row.project)
  const result = await tx.db
    .insertInto('backends')
    .values({ ...row, created_at: tx.now, deleted_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

const clearDefault = async (tx: Tx, project: string): Promise<void> => {
  await tx.db.updateTable('backends').set({ is_default: 0 }).where('project', '=', project).execute()
}

/** It takes no new work from now on; its row and secrets go when nothing of ours is left there (orphans R34, R100). */
export const markBackendDeleted = async (tx: Tx, project: string, name: string): Promise<void> => {
  await tx.db
    .updateTable('backends')
    .set({ deleted_at: tx.now, is_default: 0 })
    .where('project', '=', project)
    .where('name', '=', name)
    .where('deleted_at', 'is', null)
    .execute()
}

/** Remembers which account the backend turned out to be. */
export const setBackendScope = async (tx: Tx, project: string, name: string, scope: ScopeId): Promise<void> => {
  await tx.db.updateTable('backends').set({ scope }).where('project', '=', project).where('name', '=', name).execute()
}
