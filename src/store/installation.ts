/** Who this database belongs to: the installation's id, and the secret from which lease tokens are derived. */
import type { Selectable } from 'kysely'
import type { InstallationTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type InstallationRow = Selectable<InstallationTable>

export const readInstallation = (session: Session): Promise<InstallationRow | undefined> =>
  session.db.selectFrom('installation').selectAll().where('id', '=', 1).executeTakeFirst()

/** The first one to come wins; everybody then reads the same. */
export const ensureInstallation = async (tx: Tx, fresh: Pick<InstallationRow, 'installation_id' | 'secret'>): Promise<InstallationRow> => {
  await tx.db
    .insertInto('installation')
    .values({ id: 1, ...fresh, created_at: tx.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await readInstallation(tx)) as InstallationRow
}
