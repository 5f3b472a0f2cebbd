/** What the provision pipeline needs to know of one instance, and whether somebody still wants it. */
import { hardEnd, isExpired } from '../model/clocks.ts'
import { idleLifeMs } from '../model/fleet.ts'
import type { InstanceId } from '../model/ids.ts'
import type { Wanted } from '../model/provision.ts'
import type { Provider, ResourceIdentity } from '../providers/contract.ts'
import { attemptsOf, type AttemptRow } from '../store/attempts.ts'
import { findBackend } from '../store/backends.ts'
import { fleetOf, type FleetRow } from '../store/fleets.ts'
import { stillHeld } from '../store/due.ts'
import { instancesByIds, lockInstances, type InstanceRow } from '../store/instances.ts'
import { leaseById, lockLeases, type LeaseRow } from '../store/leases.ts'
import type { Session, Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import type { BoxClock } from './rearm.ts'

/** The longest that a box made now may live: its lease's life, or 24 h after the coordinator's last word on one that waits. */
export const lifetimeMs = (lease: LeaseRow | null, now: number): number =>
  lease ? hardEnd({ createdAt: lease.created_at, ttlSeconds: lease.ttl_seconds }) - now : idleLifeMs

export interface ProvisionWork {
  instance: InstanceRow
  lease: LeaseRow | null
  /** The one that it is of, where it is of one. */
  fleet: FleetRow | null
  /** The newest one. */
  attempt: AttemptRow | undefined
  config: Record<string, unknown>
  wanted: Wanted
}

export const clockOf = (held: Held, { instance, config }: ProvisionWork, provider: Provider, identity: ResourceIdentity): BoxClock => ({
  provider,
  identity,
  config,
  instanceId: instance.id,
  madeAt: instance.created_at,
  held,
  table: 'instances',
})

/** decisions 3: what a fleet makes to be ready is wanted as long as the fleet is, and adopted whoever made it. Else wanted is a lease in `provisioning`, not expired, not cancelled; replayable if its client can still learn of it. */
export const wantedBy = (lease: LeaseRow | null, fleet: Pick<FleetRow, 'deleted_at'> | null, now: number): Wanted => {
  if (!lease && fleet)
    return fleet.deleted_at === null ? { kind: 'wanted', replayable: true } : { kind: 'ended', cause: 'released', keepsBox: false }
  if (!lease) return { kind: 'ended', cause: 'failed', keepsBox: false }
  if (lease.cancelled_at !== null) return { kind: 'ended', cause: 'cancelled', keepsBox: false }
  if (lease.state === 'released') return { kind: 'ended', cause: 'released', keepsBox: lease.release_deletes === 0 }
  if (lease.state === 'failed' || lease.state === 'expired') return { kind: 'ended', cause: lease.state, keepsBox: false }
  if (isExpired(lease.expires_at, now)) return { kind: 'ended', cause: 'expired', keepsBox: false }
  return { kind: 'wanted', replayable: lease.request_key !== null || lease.fixed_id === 1 }
}

const assemble = async (session: Session, instance: InstanceRow, lease: LeaseRow | null, now: number): Promise<ProvisionWork> => {
  const fleet = (await fleetOf(session, instance)) ?? null
  return {
    instance,
    lease,
    fleet,
    attempt: (await attemptsOf(session, [instance.id])).at(-1),
    config: JSON.parse((await findBackend(session, instance.project, instance.backend))?.config ?? '{}') as Record<string, unknown>,
    wanted: wantedBy(lease, fleet, now),
  }
}

export const loadProvision = async (session: Session, id: string, now: number): Promise<ProvisionWork | undefined> => {
  const [instance] = await instancesByIds(session, [id])
  if (!instance) return undefined
  const lease = instance.lease_id ? ((await leaseById(session, instance.lease_id)) ?? null) : null
  return assemble(session, instance, lease, now)
}

/** The same, fresh and locked, for an apply; undefined when the lock is no longer ours, and then nothing is applied. */
export const reload = async (tx: Tx, held: Held, known: ProvisionWork): Promise<ProvisionWork | undefined> => {
  const [lease] = known.instance.lease_id ? await lockLeases(tx, [known.instance.lease_id]) : []
  const [instance] = await lockInstances(tx, [known.instance.id as InstanceId])
  if (!instance || (await stillHeld(tx, 'instances', [held])).size === 0) return undefined
  return assemble(tx, instance, lease ?? null, tx.now)
}
