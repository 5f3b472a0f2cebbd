/** Taking a ready box of a fleet for a lease. */
import { LeaseholdError } from '../../model/errors.ts'
import { looksCountMs } from '../../model/fleet.ts'
import type { LeaseId } from '../../model/ids.ts'
import { attemptById } from '../../store/attempts.ts'
import { fleetById, fleetId, takeReady, type FleetRow } from '../../store/fleets.ts'
import type { InstanceRow } from '../../store/instances.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'

/** @throws LeaseholdError not_found, also for one that is deleted */
export const requireFleet = async (context: EngineContext, project: string, name: string): Promise<FleetRow> => {
  const fleet = await context.store.read((session) => fleetById(session, fleetId(project, name)))
  if (!fleet || fleet.deleted_at !== null)
    throw new LeaseholdError('not_found', `project "${project}" has no fleet "${name}"; "leasehold fleet list" shows those that there are`)
  return fleet
}

/**
 * At once, without a call to the provider: what its clock says is moved behind it. None ready: undefined, and one is made for the lease alone.
 * @param ttlSeconds of the lease: a box with less life left is not given out
 */
export const takeFromFleet = async (
  tx: Tx,
  project: string,
  name: string,
  leaseId: LeaseId,
  ttlSeconds: number,
): Promise<{ instance: InstanceRow; cloudId: string } | undefined> => {
  const instance = await takeReady(tx, { project, name }, leaseId, {
    liveUntil: tx.now + ttlSeconds * 1000,
    seenSince: tx.now - looksCountMs,
  })
  if (!instance) return undefined
  const attempt = instance.attempt_id === null ? undefined : await attemptById(tx, instance.attempt_id)
  return { instance, cloudId: attempt?.native_id ?? instance.ref }
}
