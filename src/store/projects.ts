import type { Selectable } from 'kysely'
import type { ProjectsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type ProjectRow = Selectable<ProjectsTable>

export const listProjects = (session: Session): Promise<ProjectRow[]> =>
  session.db.selectFrom('projects').selectAll().orderBy('name').execute()

export const findProject = (session: Session, name: string): Promise<ProjectRow | undefined> =>
  session.db.selectFrom('projects').selectAll().where('name', '=', name).executeTakeFirst()

/** @returns false when the name is taken. */
export const insertProject = async (tx: Tx, name: string): Promise<boolean> => {
  const result = await tx.db
    .insertInto('projects')
    .values({ name, created_at: tx.now, deleted_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** A deleted project drains: its row stays, its backends keep being swept (orphans U7). */
export const markProjectDeleted = async (tx: Tx, name: string): Promise<void> => {
  await tx.db.updateTable('projects').set({ deleted_at: tx.now }).where('name', '=', name).where('deleted_at', 'is', null).execute()
  await tx.db
    .updateTable('backends')
    .set({ deleted_at: tx.now, is_default: 0 })
    .where('project', '=', name)
    .where('deleted_at', 'is', null)
    .execute()
}
