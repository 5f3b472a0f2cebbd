/** The identity of this installation as a controller, and the lock by which its replicas share it (prune 7.3; decisions 10). */
import type { Selectable } from 'kysely'
import type { ControllerKeysTable, ControllerLeasesTable } from './schema-prune.ts'
import type { Session, Tx } from './store.ts'

export type ControllerKeyRow = Selectable<ControllerKeysTable>
export type ControllerLeaseRow = Selectable<ControllerLeasesTable>

/** All keys that count as our own, oldest first. */
export const listControllerKeys = (session: Session): Promise<ControllerKeyRow[]> =>
  session.db.selectFrom('controller_keys').selectAll().orderBy('created_at').orderBy('public_key').execute()

/**
 * The key that this installation signs with under that id; undefined: it has none yet. After a fork it has none either: what its database holds is the
 * original's.
 */
export const signingKey = (session: Session, controllerId: string, instanceUid: string): Promise<ControllerKeyRow | undefined> =>
  session.db
    .selectFrom('controller_keys')
    .selectAll()
    .where('controller_id', '=', controllerId)
    .where('instance_uid', '=', instanceUid)
    .where('private_key', 'is not', null)
    .orderBy('created_at')
    .orderBy('public_key')
    .limit(1)
    .executeTakeFirst()

/** What is known already stays as it is. */
export const addControllerKey = async (tx: Tx, fresh: Omit<ControllerKeyRow, 'created_at'>): Promise<void> => {
  await tx.db
    .insertInto('controller_keys')
    .values({ ...fresh, created_at: tx.now })
    .onConflict((conflict) => conflict.column('public_key').doNothing())
    .execute()
}

/**
 * One replica at a time: takes the lock, or renews it.
 * @param until ms
 * @returns the row as it is then; null: another replica has it
 */
export const lockControllerLease = async (
  tx: Tx,
  key: Pick<ControllerLeaseRow, 'cluster_id' | 'controller_id'>,
  owner: string,
  until: number,
): Promise<ControllerLeaseRow | null> => {
  await tx.db
    .insertInto('controller_leases')
    .values({ ...key, nonce: null, lock_owner: null, lock_until: null })
    .onConflict((conflict) => conflict.columns(['cluster_id', 'controller_id']).doNothing())
    .execute()
  const row = await tx.db
    .updateTable('controller_leases')
    .set((eb) => ({ lock_owner: owner, lock_until: until, lock_fence: eb('lock_fence', '+', 1) }))
    .where('cluster_id', '=', key.cluster_id)
    .where('controller_id', '=', key.controller_id)
    .where((eb) => eb.or([eb('lock_owner', 'is', null), eb('lock_owner', '=', owner), eb('lock_until', '<', tx.now)]))
    .returningAll()
    .executeTakeFirst()
  return row ?? null
}

/** Before the Swarm is asked to take it. @returns false: the lock was lost, and nothing was written (I3) */
export const recordBeat = async (tx: Tx, row: ControllerLeaseRow, nonce: string, beat: number): Promise<boolean> => {
  const written = await tx.db
    .updateTable('controller_leases')
    .set({ nonce, beat })
    .where('cluster_id', '=', row.cluster_id)
    .where('controller_id', '=', row.controller_id)
    .where('lock_fence', '=', row.lock_fence)
    .executeTakeFirst()
  return written.numUpdatedRows === 1n
}

/** At a clean end: the next replica need not wait. */
export const unlockControllerLease = async (tx: Tx, row: ControllerLeaseRow): Promise<void> => {
  await tx.db
    .updateTable('controller_leases')
    .set({ lock_owner: null, lock_until: null })
    .where('cluster_id', '=', row.cluster_id)
    .where('controller_id', '=', row.controller_id)
    .where('lock_fence', '=', row.lock_fence)
    .execute()
}
