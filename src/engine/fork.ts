/**
 * A fork: from now on this database is another installation, which holds nothing. What it held stays as history, as somebody else's: nothing of it is moved, looked
 * for or taken back any more. What stops its removals for ever is in `readObstacles` and in the verdicts; here its rows leave the queues, and every list of what
 * is left to do.
 */
import { letterFirst, secret } from '../lib/ids.ts'
import type { InstallationId } from '../model/ids.ts'
import type { Place } from '../model/place.ts'
import { updateInstallation, type InstallationRow } from '../store/installation.ts'
import { addKey } from '../store/keys.ts'
import { endStops } from '../store/stops.ts'
import type { Tx } from '../store/store.ts'
import { freshKey } from './keyring.ts'

const parked = { due_at: null, lock_owner: null, lock_until: null } as const

/** Whoever works on one of these rows finds its fence gone on, and applies nothing. */
const endWork = async (tx: Tx, why: string, by: string): Promise<void> => {
  await tx.db
    .updateTable('leases')
    .set((set) => ({
      state: 'failed',
      failure_code: 'installation_forked',
      failure_error: why,
      ended_at: tx.now,
      updated_at: tx.now,
      may_exist: 0,
      lock_fence: set('lock_fence', '+', 1),
      ...parked,
    }))
    .where('state', 'in', ['provisioning', 'active'])
    .execute()
  await tx.db
    .updateTable('leases')
    .set((set) => ({ lock_fence: set('lock_fence', '+', 1), ...parked }))
    .where('due_at', 'is not', null)
    .execute()
  // Nobody proved that what they made is gone: `abandoned` says so, and the rest follows from it.
  await tx.db
    .updateTable('attempts')
    .set({ outcome: 'abandoned', ended_at: tx.now, error: why })
    .where((where) =>
      where.or([
        where('outcome', '=', 'open'),
        where.and([
          where('outcome', '=', 'bound'),
          where('instance_id', 'in', where.selectFrom('instances').select('instances.id').where('instances.state', '<>', 'terminated')),
        ]),
        where('id', 'in', where.selectFrom('removals').select('attempt_id').where('state', 'not in', ['gone', 'closed'])),
      ]),
    )
    .execute()
  await tx.db
    .updateTable('instances')
    .set((set) => ({ state: 'terminated', changed_at: tx.now, terminated_at: tx.now, lock_fence: set('lock_fence', '+', 1), ...parked }))
    .where('state', '<>', 'terminated')
    .execute()
  await tx.db
    .updateTable('removals')
    .set((set) => ({
      state: 'closed',
      closed_at: tx.now,
      closed_by: by,
      closed_reason: why,
      held_by: null,
      retry_at: null,
      lock_fence: set('lock_fence', '+', 1),
      ...parked,
    }))
    .where('state', 'not in', ['gone', 'closed'])
    .execute()
  await tx.db.updateTable('plans').set({ state: 'dropped', settled_at: tx.now }).where('state', 'in', ['waiting', 'approved']).execute()
  await tx.db.updateTable('findings').set({ state: 'resolved', resolved_at: tx.now }).where('state', '=', 'open').execute()
}

/**
 * The caller holds the installation's row.
 * @param by whose word it is
 */
export const forkWithin = async (
  tx: Tx,
  row: InstallationRow,
  place: Place,
  by: string,
): Promise<{ from: InstallationId; to: InstallationId }> => {
  const to = letterFirst(8) as InstallationId
  await endWork(tx, `this database was forked from installation ${row.installation_id}, and this stays with that one`, by)
  await updateInstallation(tx, {
    installation_id: to,
    // Tokens of the other one's leases are none of ours.
    secret: secret(''),
    former: JSON.stringify([...(JSON.parse(row.former) as string[]), row.installation_id]),
    // What was made in this very millisecond is history too.
    held_since: tx.now + 1,
    epoch: row.epoch + 1,
    place: JSON.stringify(place),
    adopted_at: null,
  })
  await addKey(tx, freshKey())
  await endStops(tx)
  return { from: row.installation_id, to }
}
