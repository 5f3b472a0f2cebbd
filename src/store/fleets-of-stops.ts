/** Boxes of fleets that another database may have given out, once a person has said that this one goes on. */
import { sql, type RawBuilder } from 'kysely'
import type { InstanceRow } from './instances.ts'
import { everywhere, type StopRow } from './stops.ts'
import type { Session, Tx } from './store.ts'

/** Which were there when one of the stops began. @param more of the same stop */
const before = (stops: readonly StopRow[], more: (since: number) => RawBuilder<unknown>): RawBuilder<boolean> =>
  sql<boolean>`(${sql.join(
    stops.map(
      ({ scope, since_at: since }) =>
        sql`(instances.created_at <= ${since} and ${scope === everywhere ? sql`1 = 1` : sql`instances.scope = ${scope}`} ${more(since)})`,
    ),
    sql` or `,
  )})`

/**
 * What waits goes through a wipe before anybody gets it. Whoever works on it loses its lock.
 * @returns how many
 */
export const wipeIdle = async (tx: Tx, stops: readonly StopRow[]): Promise<number> => {
  if (stops.length === 0) return 0
  const result = await tx.db
    .updateTable('instances')
    .set((set) => ({
      state: 'busy',
      wiping_since: tx.now,
      changed_at: tx.now,
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
      lock_fence: set('lock_fence', '+', 1),
    }))
    .where('fleet', 'is not', null)
    .where('state', '=', 'idle')
    .where('lease_id', 'is', null)
    .where(before(stops, () => sql``))
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** What a live lease has that is as old as the stop, and of whose holder nothing was heard since; also what its clock has ended here meanwhile. */
export const silentMembers = async (session: Session, stops: readonly StopRow[]): Promise<InstanceRow[]> => {
  if (stops.length === 0) return []
  return session.db
    .selectFrom('instances')
    .innerJoin('leases', 'leases.id', 'instances.lease_id')
    .selectAll('instances')
    .where('instances.fleet', 'is not', null)
    .where('instances.state', 'in', ['busy', 'terminating'])
    .where('instances.wiping_since', 'is', null)
    .where('leases.state', '=', 'active')
    .where(before(stops, (since) => sql`and leases.created_at <= ${since} and leases.last_touched_at <= ${since}`))
    .orderBy('instances.id')
    .execute()
}
