/** Who this database belongs to: the installation's id, the secret from which lease tokens are derived, and what it knows of its own past. */
import type { Selectable, Updateable } from 'kysely'
import { forUpdate } from './bulk.ts'
import type { InstallationTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type InstallationRow = Selectable<InstallationTable>

export const readInstallation = (session: Session): Promise<InstallationRow | undefined> =>
  session.db.selectFrom('installation').selectAll().where('id', '=', 1).executeTakeFirst()

/** The installation that a fork left it to; null: what was made at `at` (ms) is held here. */
export const leftByFork = (own: Pick<InstallationRow, 'former' | 'held_since'> | undefined, at: number): string | null =>
  own === undefined || at >= own.held_since ? null : ((JSON.parse(own.former) as string[]).at(-1) ?? null)

/** Whoever changes it, or must not see it change, holds its row. */
export const lockInstallation = async (tx: Tx): Promise<InstallationRow> => {
  const row = await forUpdate(tx, tx.db.selectFrom('installation').selectAll().where('id', '=', 1)).executeTakeFirst()
  if (!row) throw new Error('the database names no installation')
  return row
}

/** As it will be when this transaction commits: it does not change before, and others may read it alike. */
export const pinInstallation = async (tx: Tx): Promise<InstallationRow | undefined> => {
  const query = tx.db.selectFrom('installation').selectAll().where('id', '=', 1)
  return (tx.dialect === 'postgresql' ? query.forShare() : query).executeTakeFirst()
}

/** The first one to come wins; everybody then reads the same. */
export const ensureInstallation = async (tx: Tx, fresh: Pick<InstallationRow, 'installation_id' | 'secret'>): Promise<InstallationRow> => {
  await tx.db
    .insertInto('installation')
    .values({ id: 1, ...fresh, created_at: tx.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await readInstallation(tx)) as InstallationRow
}

export const updateInstallation = async (tx: Tx, values: Updateable<InstallationTable>): Promise<void> => {
  await tx.db.updateTable('installation').set(values).where('id', '=', 1).execute()
}
