/** Giving a lease up: the box goes, or is retained; and the cancelling of a create (leases R29-R37, R10). */
import { retainSeconds } from '../../model/clocks.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { isLeaseId, isRequestKey, type LeaseId } from '../../model/ids.ts'
import { decideRelease, isLive } from '../../model/lease.ts'
import { isOverRemoval } from '../../model/removal.ts'
import type { LeaseView } from '../../model/wire.ts'
import { attemptsOf } from '../../store/attempts.ts'
import { wakeRow } from '../../store/due.ts'
import { appendEvents } from '../../store/events.ts'
import { leftByFork, readInstallation } from '../../store/installation.ts'
import { lockInstances } from '../../store/instances.ts'
import { cancelCreateRequest, createRequest, leaseById, lockLeases, type LeaseRow } from '../../store/leases.ts'
import { removalsOfLeases, retryGivenUp, type RemovalRow } from '../../store/removals.ts'
import type { LeasesTable } from '../../store/schema.ts'
import type { Tx } from '../../store/store.ts'
import { maySeeLease, projectFor, requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { leaseFacts } from '../facts.ts'
import type { RemovalCause } from '../ended.ts'
import { beginReturn, stopReturn, wouldReturn } from '../fleet/return.ts'
import { wakeFleet } from '../fleet/wake.ts'
import { openRemovals } from '../open-removals.ts'
import { event, instanceTarget, leaseTarget, resolveAbout } from '../record.ts'
import { leaseViews } from '../views.ts'
import { leaseNotFound, requireManage, resolveLease } from './find.ts'

const locked = async (tx: Tx, id: LeaseId): Promise<LeaseRow> => {
  const [lease] = await lockLeases(tx, [id])
  if (!lease) throw leaseNotFound(id)
  return lease
}

type LeaseChange = Partial<
  Pick<LeasesTable, 'state' | 'released_at' | 'ended_at' | 'release_deletes' | 'retained_at' | 'retain_until' | 'cancelled_at' | 'due_at'>
>

/** A holder's word wins over a worker that has the row: the fence moves on, and what the worker wanted to write is stale. */
const change = async (tx: Tx, lease: LeaseRow, values: LeaseChange): Promise<void> => {
  await tx.db
    .updateTable('leases')
    .set({ ...values, updated_at: tx.now, lock_owner: null, lock_until: null, lock_fence: lease.lock_fence + 1 })
    .where('id', '=', lease.id)
    .execute()
}

/** Orders the removal of what the lease has, or has the create settled if that is still under way (leases R33). */
const takeBack = async (tx: Tx, lease: LeaseRow, cause: RemovalCause, actor: string): Promise<void> => {
  const [instance] = await lockInstances(tx, [lease.instance_id])
  // Another lease's by now: nothing of this one is left in it (I10).
  if (!instance || (instance.lease_id !== null && instance.lease_id !== lease.id)) return
  const attempt = (await attemptsOf(tx, [instance.id])).find((one) => one.id === instance.attempt_id)
  if (attempt && instance.state !== 'provisioning') return openRemovals(tx, [{ instance, lease, attempt, cause, actor }])
  await wakeRow(tx, 'instances', instance.id)
}

const tryNow = async (tx: Tx, removal: RemovalRow): Promise<void> => {
  if (removal.state !== 'gave-up') return wakeRow(tx, 'removals', removal.id)
  await lockInstances(tx, [removal.instance_id])
  await retryGivenUp(tx, removal)
}

export interface ReleaseInput {
  delete?: boolean
  expectedProvider?: string
}

/** A fork left it to another installation: a removal of it would be held for ever, so none is opened, and no order of one is taken (decisions 6). */
const requireOwn = async (tx: Tx, lease: LeaseRow): Promise<void> => {
  const to = leftByFork(await readInstallation(tx), lease.created_at)
  if (to === null) return
  const [view] = await leaseViews(tx, [lease])
  // What was proved gone before the fork is gone.
  if (!isLive(lease.state) && view?.cleanup.leftTo === null) return
  throw new LeaseholdError(
    'lease_ended',
    `${lease.id} belongs to installation ${to} since this database was forked: release it at the coordinator of that one`,
  )
}

const release = async (
  context: EngineContext,
  tx: Tx,
  actor: Actor,
  lease: LeaseRow,
  remove: boolean | undefined,
  cause: RemovalCause,
): Promise<void> => {
  const removals = await removalsOfLeases(tx, [lease.id])
  const open = removals.find((row) => !isOverRemoval(row.state))
  const fleetTakes = remove === undefined && lease.fleet !== null && (await wouldReturn(context, tx, lease))
  const decision = decideRelease(leaseFacts(lease), open ? 'open' : removals.length > 0 ? 'gone' : 'none', remove, fleetTakes)
  const about = {
    project: lease.project,
    actor: actor.name,
    targets: [leaseTarget(lease), instanceTarget({ id: lease.instance_id, name: lease.slug })],
  }
  switch (decision.kind) {
    case 'refused':
      throw new LeaseholdError(decision.code, `${lease.id}: ${decision.message}`)
    case 'unchanged':
      // Asked for again in as many words: a removal that waits for its next try, or for a person, is tried now.
      if (remove === true) {
        await requireOwn(tx, lease)
        if (open) await tryNow(tx, open)
        else await stopReturn(tx, lease, actor.name)
      }
      return
    case 'return':
      await change(tx, lease, { state: 'released', released_at: tx.now, ended_at: tx.now, due_at: null })
      await beginReturn(tx, lease)
      return appendEvents(tx, [event(tx, 'lease.released', { retained: false, returned: true }, about)])
    case 'retain':
      await change(tx, lease, {
        state: 'released',
        released_at: tx.now,
        ended_at: tx.now,
        release_deletes: 0,
        retained_at: tx.now,
        retain_until: tx.now + retainSeconds * 1000,
        due_at: tx.now,
      })
      await wakeRow(tx, 'instances', lease.instance_id)
      return appendEvents(tx, [event(tx, 'lease.released', { retained: true }, about)])
    case 'remove':
      await requireOwn(tx, lease)
      await change(tx, lease, {
        ...(decision.endsNow ? { state: 'released' as const, released_at: tx.now, ended_at: tx.now } : {}),
        release_deletes: 1,
        retain_until: null,
        due_at: null,
      })
      // A removal that failed before is tried again at once: somebody asks for it.
      if (open) await tryNow(tx, open)
      else await takeBack(tx, lease, cause, actor.name)
      await resolveAbout(tx, 'lease', [lease.id], 'retained-overdue')
      return appendEvents(tx, [event(tx, 'lease.released', { retained: false }, about)])
  }
}

const wakeAll = (context: EngineContext, leaseId: string): void => {
  context.signals.wake('provision')
  context.signals.wake('expire')
  context.signals.wake('remove')
  context.signals.changed(leaseId)
}

/**
 * leases R30-R33. Safe to repeat; a lease that has ended is answered as it is.
 * @throws LeaseholdError not_found, forbidden, provider_mismatch, cleanup_in_progress, lease_ended for what a fork left to another installation
 */
export const releaseLease = async (context: EngineContext, actor: Actor, key: string, input: ReleaseInput): Promise<LeaseView> => {
  const now = await context.store.now()
  const { id } = await context.store.read((session) => resolveLease(session, actor, key, now))
  const view = await context.store.write(async (tx) => {
    const lease = await locked(tx, id)
    requireManage(actor, lease)
    if (input.expectedProvider !== undefined && input.expectedProvider !== lease.provider)
      throw new LeaseholdError(
        'provider_mismatch',
        `${lease.id} is of provider ${lease.provider}, not ${input.expectedProvider}: nothing was released; name the right one, or none`,
      )
    await release(context, tx, actor, lease, input.delete, 'released')
    return (await leaseViews(tx, [(await leaseById(tx, id)) as LeaseRow]))[0] as LeaseView
  })
  wakeAll(context, id)
  if (view.fleet !== null) await wakeFleet(context, view.project, view.fleet)
  return view
}

export interface CanceledCreate {
  canceledCreate: { version: 1; requestedLeaseID: string; createAttemptID: string; state: 'canceled' }
  lease?: LeaseView
}

/**
 * leases R10: before, during or after the create. The tombstone wins over a create that arrives late; what was made goes, in the same transaction.
 * @throws LeaseholdError bad_request, not_found, forbidden, lease_id_conflict
 */
export const cancelCreate = async (context: EngineContext, actor: Actor, id: string, createAttemptID: string): Promise<CanceledCreate> => {
  requireFull(actor)
  if (!isLeaseId(id)) throw new LeaseholdError('bad_request', `"${id}" is no lease id: lh_ and 12 lower-case hex digits`)
  if (!isRequestKey(createAttemptID)) throw new LeaseholdError('bad_request', 'createAttemptID: must be cat_ and 32 lower-case hex digits')
  const lease = await context.store.write(async (tx) => {
    const project = projectFor(actor, undefined)
    await cancelCreateRequest(tx, { project, request_key: createAttemptID, lease_id: id })
    const known = await createRequest(tx, createAttemptID)
    if (known?.lease_id !== id)
      throw new LeaseholdError(
        'lease_id_conflict',
        `createAttemptID ${createAttemptID} stands for another lease than ${id}; name the one that it made`,
      )
    const existing = await leaseById(tx, id)
    if (existing && !maySeeLease(actor, existing)) throw leaseNotFound(id)
    if (existing && existing.request_key !== createAttemptID)
      throw new LeaseholdError('lease_id_conflict', `${id} was made by another create`)
    if (existing) {
      const row = await locked(tx, id)
      requireManage(actor, row)
      // Retained is not gone: a cancel takes that box back too.
      if (isLive(row.state) || row.release_deletes === 0) {
        await release(context, tx, actor, row, true, 'cancelled')
        await tx.db.updateTable('leases').set({ cancelled_at: tx.now, updated_at: tx.now }).where('id', '=', id).execute()
        await appendEvents(tx, [event(tx, 'lease.cancelled', {}, { project: row.project, actor: actor.name, targets: [leaseTarget(row)] })])
      }
    }
    return existing ? ((await leaseViews(tx, [(await leaseById(tx, id)) as LeaseRow]))[0] as LeaseView) : undefined
  })
  wakeAll(context, id)
  return { canceledCreate: { version: 1, requestedLeaseID: id, createAttemptID, state: 'canceled' }, ...(lease ? { lease } : {}) }
}
