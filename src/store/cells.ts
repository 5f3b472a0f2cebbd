/** What listings proved of each location and kind of a backend's account, kept from one to the next (orphans R102; case I2). */
import type { Selectable } from 'kysely'
import type { CellsTable } from './schema-sweeps.ts'
import type { ScopeId } from '../model/ids.ts'
import type { Session, Tx } from './store.ts'

export type CellRow = Selectable<CellsTable>

export interface CellsOf {
  project: string
  backend: string
  scope: string
}

export const cellsOf = (session: Session, { project, backend, scope }: CellsOf): Promise<CellRow[]> =>
  session.db
    .selectFrom('cells')
    .selectAll()
    .where('project', '=', project)
    .where('backend', '=', backend)
    .where('scope', '=', scope as ScopeId)
    .orderBy('location')
    .orderBy('kind')
    .execute()

/** Replaces what is known of the account: a cell that is not asked for any more is forgotten. */
export const saveCells = async (tx: Tx, of: CellsOf, rows: readonly Omit<CellRow, keyof CellsOf>[]): Promise<void> => {
  const key = { project: of.project, backend: of.backend, scope: of.scope as ScopeId }
  await tx.db
    .deleteFrom('cells')
    .where('project', '=', key.project)
    .where('backend', '=', key.backend)
    .where('scope', '=', key.scope)
    .execute()
  const part = 500
  for (let at = 0; at < rows.length; at += part)
    await tx.db
      .insertInto('cells')
      .values(rows.slice(at, at + part).map((row) => ({ ...key, ...row })))
      .execute()
}

export const dropCells = async (tx: Tx, project: string, backend: string): Promise<void> => {
  await tx.db.deleteFrom('cells').where('project', '=', project).where('backend', '=', backend).execute()
}
