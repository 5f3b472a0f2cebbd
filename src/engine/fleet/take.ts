/** Taking a ready box of a fleet for a lease. */
import { counted } from '../../lib/counted.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { looksCountMs } from '../../model/fleet.ts'
import type { LeaseId } from '../../model/ids.ts'
import { attemptById } from '../../store/attempts.ts'
import { fleetById, fleetId, idleMembers, takeReady, type FleetRow } from '../../store/fleets.ts'
import type { InstanceRow } from '../../store/instances.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { isClear, readObstaclesOfBoxes, setAside } from './aside.ts'

/** @throws LeaseholdError not_found, also for one that is deleted */
export const requireFleet = async (context: EngineContext, project: string, name: string): Promise<FleetRow> => {
  const fleet = await context.store.read((session) => fleetById(session, fleetId(project, name)))
  if (!fleet || fleet.deleted_at !== null)
    throw new LeaseholdError('not_found', `project "${project}" has no fleet "${name}"; "leasehold fleet list" shows those that there are`)
  return fleet
}

export interface Taken {
  ready: { instance: InstanceRow; cloudId: string } | undefined
  /** For whoever asked, where none was given out although one waits. */
  warning: string | null
}

const asideText = (name: string, aside: ReadonlyMap<string, string>): string | null => {
  const [why] = aside.values()
  if (why === undefined) return null
  return `fleet "${name}" has ${counted(aside.size, 'box', 'boxes')} that ${aside.size === 1 ? 'is' : 'are'} not given out (${why}), so one is made for this lease`
}

/**
 * At once, without a call to the provider: what its clock says is moved behind it. None ready: undefined, and one is made for the lease alone.
 * @param ttlSeconds of the lease: a box with less life left is not given out
 */
export const takeFromFleet = async (tx: Tx, project: string, name: string, leaseId: LeaseId, ttlSeconds: number): Promise<Taken> => {
  const fleet = { project, name }
  const obstacles = await readObstaclesOfBoxes(tx, tx.now)
  const aside = isClear(obstacles) ? new Map<string, string>() : await setAside(tx, await idleMembers(tx, fleet), obstacles)
  const instance = await takeReady(tx, fleet, leaseId, {
    liveUntil: tx.now + ttlSeconds * 1000,
    seenSince: tx.now - looksCountMs,
    except: [...aside.keys()],
  })
  if (!instance) return { ready: undefined, warning: asideText(name, await setAside(tx, await idleMembers(tx, fleet), obstacles)) }
  const attempt = instance.attempt_id === null ? undefined : await attemptById(tx, instance.attempt_id)
  return { ready: { instance, cloudId: attempt?.native_id ?? instance.ref }, warning: null }
}
