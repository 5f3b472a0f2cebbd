/** The *ended* entrance: what its holder or its clock gave up, and whose identity our own attempt recorded, goes to the removal at once. */
import { uuidv7Hex } from '../lib/ids.ts'
import { insertEach, updateEach } from '../store/bulk.ts'
import { appendEvents } from '../store/events.ts'
import { wakeRow } from '../store/due.ts'
import { unfinishedRemovalsOf } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import { whyUnreadable } from '../model/removal-record.ts'
import { isFound, isOpenRemoval } from '../model/removal.ts'
import type { RemovalId } from '../model/ids.ts'
import { evidenceOf, type Ended } from './ended.ts'
import { continueRemoval } from './continue-removal.ts'
import { event, instanceTarget, leaseTarget, resourceTargets } from './record.ts'
import { resourcesOf } from './removal-row.ts'

/**
 * Opens a removal for each, unless the attempt has one open: that one wins (leases R76). One that was given up goes on as the same row, never as a second
 * (orphans R91). The instance is `terminating` from now on, so that sweeps pass it over
 * (leases R40); a terminated one stays terminated (I9) although something of it surfaced late. The caller holds the rows' locks.
 */
export const openRemovals = async (tx: Tx, ended: readonly Ended[]): Promise<void> => {
  if (ended.length === 0) return
  const before = await unfinishedRemovalsOf(
    tx,
    ended.map((one) => one.attempt.id),
  )
  // One that can't be read here stays as it is (leases R89); looking at it tells a person.
  const unreadable = before.filter((row) => whyUnreadable(row) !== null)
  for (const row of unreadable) await wakeRow(tx, 'removals', row.id)
  const open = new Set([...before.filter((row) => isOpenRemoval(row.state)), ...unreadable].map((row) => row.attempt_id))
  const givenUp = new Map(before.map((row) => [row.attempt_id, row]))
  const wanted = ended.filter((one) => !open.has(one.attempt.id))
  for (const one of wanted) {
    const row = givenUp.get(one.attempt.id)
    if (row) await continueRemoval(tx, row, one)
  }
  const fresh = wanted.filter((one) => !givenUp.has(one.attempt.id))
  await insertEach(
    tx,
    'removals',
    fresh.map(({ instance, lease, attempt, cause, members, ...ordered }) => ({
      id: `rm_${uuidv7Hex(tx.now)}` as RemovalId,
      version: 2,
      attempt_id: attempt.id,
      instance_id: instance.id,
      lease_id: lease?.id ?? null,
      project: instance.project,
      backend: attempt.backend,
      provider: instance.provider,
      ref: instance.ref,
      name: instance.name,
      scope: attempt.scope,
      location: attempt.location,
      cause,
      state: 'preparing',
      identity: null,
      planned: members ? JSON.stringify(members) : null,
      progress: '[]',
      opened_at: tx.now,
      started_at: null,
      accepted_at: null,
      gone_at: null,
      failures: 0,
      error: null,
      failed_at: null,
      retry_at: null,
      held_by: null,
      polls: 0,
      evidence: evidenceOf(ordered),
      begun_at: isFound(cause) ? tx.now : null,
      continued_at: null,
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
    })),
  )
  // A leftover of an earlier attempt: the instance itself goes on with a newer one.
  const living = wanted.filter((one) => one.instance.state !== 'terminated' && one.cause !== 'leftover' && !isFound(one.cause))
  await updateEach(
    tx,
    'instances',
    [
      ['id', 'text'],
      ['state', 'text'],
      ['changed_at', 'bigint'],
      ['due_at', 'bigint'],
    ],
    living.map((one) => [one.instance.id, 'terminating', tx.now, null]),
  )
  await appendEvents(
    tx,
    fresh.map(({ instance, lease, attempt, members, cause, actor }) =>
      event(
        tx,
        'removal.opened',
        { cause },
        {
          project: instance.project,
          targets: [
            ...(lease ? [leaseTarget(lease)] : []),
            instanceTarget(instance),
            ...resourceTargets(instance.provider, resourcesOf({ identity: null, planned: JSON.stringify(members ?? []) }, attempt)),
          ],
          ...(actor ? { actor } : {}),
        },
      ),
    ),
  )
}
