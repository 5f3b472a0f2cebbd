/** A box that its holder gives back: to its fleet by way of a wipe, or not at all. */
import { decideReturned } from '../../model/fleet.ts'
import { attemptById } from '../../store/attempts.ts'
import { findBackend } from '../../store/backends.ts'
import { fleetOf } from '../../store/fleets.ts'
import { instancesByIds, lockInstances } from '../../store/instances.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { openRemovals } from '../open-removals.ts'

/** Would its fleet have it back? Nothing is changed yet. */
export const wouldReturn = async (context: EngineContext, tx: Tx, lease: LeaseRow): Promise<boolean> => {
  const [instance] = await instancesByIds(tx, [lease.instance_id])
  if (!instance || instance.lease_id !== lease.id || instance.state !== 'busy' || instance.attempt_id === null) return false
  const fleet = await fleetOf(tx, instance)
  const backend = await findBackend(tx, instance.project, instance.backend)
  const provider = context.providers.get(instance.provider)
  if (!fleet || !backend || backend.deleted_at !== null || !provider) return false
  const facts = { deleted: fleet.deleted_at !== null, ttlSeconds: fleet.ttl_seconds }
  const can = { wipes: provider.wipe !== undefined, rearms: provider.rearm !== undefined }
  return decideReturned(facts, can, instance.dead_at, tx.now) === 'wipe'
}

/** From now on it is nobody's, and not given out before its wipe is proved. Whoever works on the row loses its lock. */
export const beginReturn = async (tx: Tx, lease: LeaseRow): Promise<void> => {
  const [instance] = await lockInstances(tx, [lease.instance_id])
  if (!instance) return
  await tx.db
    .updateTable('instances')
    .set({
      wiping_since: tx.now,
      changed_at: tx.now,
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
      lock_fence: instance.lock_fence + 1,
    })
    .where('id', '=', instance.id)
    .execute()
}

/** Its holder wants it gone after all (leases R32), and it has not gone back yet. */
export const stopReturn = async (tx: Tx, lease: LeaseRow, actor: string): Promise<void> => {
  const [instance] = await lockInstances(tx, [lease.instance_id])
  if (!instance || instance.lease_id !== lease.id || instance.wiping_since === null || instance.attempt_id === null) return
  const attempt = await attemptById(tx, instance.attempt_id)
  if (!attempt) return
  await tx.db
    .updateTable('instances')
    .set({ wiping_since: null, lock_owner: null, lock_until: null, lock_fence: instance.lock_fence + 1 })
    .where('id', '=', instance.id)
    .execute()
  await openRemovals(tx, [{ instance, lease, attempt, cause: 'released', actor }])
}
