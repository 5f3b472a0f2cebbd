/** Boxes that are kept ready: one row for each fleet, and the instances that are of it. */
import { sql, type Selectable } from 'kysely'
import type { InstanceId, LeaseId } from '../model/ids.ts'
import type { InstanceRow } from './instances.ts'
import type { FleetsTable } from './schema-fleets.ts'
import type { Session, Tx } from './store.ts'

export type FleetRow = Selectable<FleetsTable>

export const fleetId = (project: string, name: string): string => `${project}/${name}`

export const fleetById = (session: Session, id: string): Promise<FleetRow | undefined> =>
  session.db.selectFrom('fleets').selectAll().where('id', '=', id).executeTakeFirst()

/** Undefined for an instance that is of none, too. */
export const fleetOf = async (session: Session, instance: Pick<InstanceRow, 'project' | 'fleet'>): Promise<FleetRow | undefined> =>
  instance.fleet === null ? undefined : fleetById(session, fleetId(instance.project, instance.fleet))

/** @param project null lists every project's */
export const listFleets = (session: Session, project: string | null): Promise<FleetRow[]> =>
  session.db
    .selectFrom('fleets')
    .selectAll()
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('project')
    .orderBy('name')
    .execute()

const living = ['pending', 'provisioning', 'idle', 'busy', 'terminating'] as const

/** Of a fleet: all that is not proved gone. */
export const livingMembers = (session: Session, fleet: Pick<FleetRow, 'project' | 'name'>): Promise<InstanceRow[]> =>
  session.db
    .selectFrom('instances')
    .selectAll()
    .where('project', '=', fleet.project)
    .where('fleet', '=', fleet.name)
    .where('state', 'in', living)
    .execute()

/** Those that were proved gone since. */
export const endedMembers = (session: Session, fleet: Pick<FleetRow, 'project' | 'name'>, sinceMs: number): Promise<InstanceRow[]> =>
  session.db
    .selectFrom('instances')
    .selectAll()
    .where('project', '=', fleet.project)
    .where('fleet', '=', fleet.name)
    .where('state', '=', 'terminated')
    .where('changed_at', '>=', sinceMs)
    .execute()

/** Those that nobody has. */
export const idleMembers = (session: Session, fleet: Pick<FleetRow, 'project' | 'name'>): Promise<InstanceRow[]> =>
  session.db
    .selectFrom('instances')
    .selectAll()
    .where('project', '=', fleet.project)
    .where('fleet', '=', fleet.name)
    .where('state', '=', 'idle')
    .where('lease_id', 'is', null)
    .execute()

/**
 * Gives one ready box of the fleet to the lease, in one guarded update: of any number that ask for the same one at once, on any number of replicas, one gets
 * it. Whoever works on the row loses its lock.
 * @param wanted `liveUntil`: it must live at least so long; `seenSince`: it must have been seen alive since; `except`: ids of those that are set aside
 */
export const takeReady = async (
  tx: Tx,
  fleet: Pick<FleetRow, 'project' | 'name'>,
  leaseId: LeaseId,
  wanted: { liveUntil: number; seenSince: number; except: readonly string[] },
): Promise<InstanceRow | undefined> => {
  const skip = tx.dialect === 'postgresql' ? sql`for update skip locked` : sql``
  const others = wanted.except.length === 0 ? sql`` : sql`and id not in (${sql.join(wanted.except)})`
  const query = sql<{ id: InstanceId }>`update instances
    set state = 'busy', lease_id = ${leaseId}, served = served + 1, changed_at = ${tx.now}, due_at = ${tx.now},
      lock_owner = null, lock_until = null, lock_fence = lock_fence + 1
    where state = 'idle' and lease_id is null and id = (select id from instances
      where project = ${fleet.project} and fleet = ${fleet.name} and state = 'idle' and lease_id is null
        and dead_at >= ${wanted.liveUntil} and checked_at > ${wanted.seenSince} ${others}
      order by changed_at, id limit 1 ${skip})
    returning id`
  const [taken] = (await query.execute(tx.db)).rows
  if (!taken) return undefined
  return tx.db.selectFrom('instances').selectAll().where('id', '=', taken.id).executeTakeFirst()
}

/** Now, whoever works on it: that one begins anew. Only what waits or what a lease has. */
export const lookAgain = async (tx: Tx, instanceId: string): Promise<void> => {
  await tx.db
    .updateTable('instances')
    .set((set) => ({ due_at: tx.now, lock_owner: null, lock_until: null, lock_fence: set('lock_fence', '+', 1) }))
    .where('id', '=', instanceId as InstanceId)
    .where('fleet', 'is not', null)
    .where('state', 'in', ['idle', 'busy'])
    .execute()
}

/** After a start nobody knows what became of them: they are looked at now. */
export const lookAtIdle = async (tx: Tx): Promise<void> => {
  await tx.db
    .updateTable('instances')
    .set({ due_at: tx.now })
    .where('fleet', 'is not', null)
    .where('state', '=', 'idle')
    .where('lock_owner', 'is', null)
    .execute()
}
