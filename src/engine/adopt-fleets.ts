/**
 * The boxes of fleets when a person says that this database goes on (decisions 6). Until then another one may have given them out, wiped and given them out again,
 * and nothing on a box says to whom: on a fleet's box nothing of a lease is ever written.
 *
 * - What waits here goes through a wipe before anybody gets it, and where its provider has none it is removed.
 * - What a lease has here, whose holder has said nothing since, may be in other hands: it is held until the last lease that the other database could have given has
 *   ended by its own clock. A holder that beat here since had not given it back.
 */
import { uuidv7Hex } from '../lib/ids.ts'
import { capSeconds } from '../model/clocks.ts'
import { appendEvents } from '../store/events.ts'
import { silentMembers, wipeIdle } from '../store/fleets-of-stops.ts'
import { insertHold } from '../store/holds.ts'
import type { StopRow } from '../store/stops.ts'
import type { Tx } from '../store/store.ts'
import { event, instanceTarget, systemActor } from './record.ts'

const reason =
  'this database was adopted, and the other one may have given the box to somebody else since; it ends when no lease of that one can be alive any more'

/**
 * The caller has ended the stops, in this transaction.
 * @returns how many boxes are wiped, and how many held
 */
export const adoptFleets = async (tx: Tx, stops: readonly StopRow[]): Promise<{ wiped: number; held: number }> => {
  const silent = await silentMembers(tx, stops)
  const until = tx.now + capSeconds * 1000
  for (const instance of silent) {
    const id = `hd_${uuidv7Hex(tx.now)}`
    await insertHold(tx, {
      id,
      target_type: 'instance',
      target_id: instance.id,
      project: instance.project,
      reason,
      created_by: systemActor,
      until_at: until,
    })
    const targets = [{ type: 'hold', id, name: id }, instanceTarget(instance)]
    const payload = { reason, until: new Date(until).toISOString() }
    await appendEvents(tx, [event(tx, 'hold.added', payload, { project: instance.project, targets })])
  }
  return { wiped: await wipeIdle(tx, stops), held: silent.length }
}
