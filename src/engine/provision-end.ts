/** Ends of a create that made nothing. */
import { isLive } from '../model/lease.ts'
import { attemptsOf, insertOpenAttempt, updateAttempt, type AttemptRow } from '../store/attempts.ts'
import { unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { closeOwners } from '../store/ledger.ts'
import { markGaveUp } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import { reload, type ProvisionWork } from './provision-load.ts'
import { event, leaseTarget, instanceTarget } from './record.ts'

/** orphans R93: `terminated` only where every attempt of its ref ended absent. What is left of an earlier one is being taken back, and that proof ends it. */
const terminate = async (tx: Tx, work: ProvisionWork): Promise<void> => {
  const left = (await attemptsOf(tx, [work.instance.id])).filter((one) => one.outcome !== 'absent')
  if (left.length > 0) {
    await tx.db
      .updateTable('instances')
      .set({ ...unlocked(null), state: 'terminating', changed_at: tx.now })
      .where('id', '=', work.instance.id)
      .execute()
    return markGaveUp(tx, [work.instance.id])
  }
  await tx.db
    .updateTable('instances')
    .set({ ...unlocked(null), state: 'terminated', changed_at: tx.now, terminated_at: tx.now })
    .where('id', '=', work.instance.id)
    .execute()
  await closeOwners(tx, [work.instance.ref])
}

/** The lease of a create that came to nothing; one that ended before stays what it is (I9). */
export const failLease = async (tx: Tx, work: ProvisionWork, code: string, error: string): Promise<void> => {
  const { lease } = work
  if (!lease) return
  if (!isLive(lease.state)) {
    // A release wanted to keep its box, and there is none: nothing is retained, and nobody needs reminding (leases R33, R37).
    await tx.db
      .updateTable('leases')
      .set({ may_exist: 0, due_at: null, retained_at: null, retain_until: null })
      .where('id', '=', lease.id)
      .execute()
    return
  }
  await tx.db
    .updateTable('leases')
    .set({ state: 'failed', failure_code: code, failure_error: error, may_exist: 0, due_at: null, ended_at: tx.now, updated_at: tx.now })
    .where('id', '=', lease.id)
    .execute()
  await appendEvents(tx, [
    event(tx, 'lease.failed', { code, error }, { project: lease.project, targets: [leaseTarget(lease), instanceTarget(work.instance)] }),
  ])
}

/** Nobody wants it, and no call was ever made for the open attempt: terminated without asking the provider (orphans R93). */
export const closeUnmade = async (tx: Tx, held: Held, work: ProvisionWork): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh) return
  // A worker may have begun the call between our look and this lock; then the attempt has to be looked up first.
  if (fresh.attempt?.outcome === 'open' && fresh.attempt.called_at !== null) {
    await tx.db.updateTable('instances').set(unlocked(tx.now)).where('id', '=', fresh.instance.id).execute()
    return
  }
  if (fresh.attempt?.outcome === 'open') await updateAttempt(tx, fresh.attempt.id, { outcome: 'absent', ended_at: tx.now })
  await terminate(tx, fresh)
  await failLease(tx, fresh, 'lease_expired', 'its time was over before it had a box')
}

/** Every attempt is proved absent, and no further one is made. */
export const giveUp = async (tx: Tx, held: Held, work: ProvisionWork, code: string, error: string): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh) return
  await terminate(tx, fresh)
  await failLease(tx, fresh, code, error)
}

/** One more attempt for the same ref: all before are proved absent, so nothing is made twice. */
export const openNextAttempt = async (tx: Tx, held: Held, work: ProvisionWork): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (fresh?.attempt?.outcome === 'absent') await insertNextAttempt(tx, { ...fresh, attempt: fresh.attempt })
}

/** The caller holds the instance's lock, and knows that no box of the attempt before can serve. */
export const insertNextAttempt = async (tx: Tx, fresh: ProvisionWork & { attempt: AttemptRow }): Promise<void> => {
  const last = fresh.attempt
  await insertOpenAttempt(tx, { ...last, number: last.number + 1 }, last.deadline_at - last.opened_at)
  await tx.db.updateTable('instances').set(unlocked(tx.now)).where('id', '=', fresh.instance.id).execute()
}
