/** Before and after the call that creates. */
import { isLive } from '../model/lease.ts'
import { nextLookMs } from '../model/provision.ts'
import { redact } from '../lib/redact.ts'
import type { CreateOutcome, Provider, ResourceIdentity } from '../providers/contract.ts'
import { pinInstallation } from '../store/installation.ts'
import { currentKey } from '../store/keys.ts'
import { attemptById, identityColumns, updateAttempt, type AttemptRow } from '../store/attempts.ts'
import { stillHeld, unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { instancesByIds } from '../store/instances.ts'
import { leaseById } from '../store/leases.ts'
import type { Tx } from '../store/store.ts'
import { makeMac } from './keyring.ts'
import { openRemovals } from './open-removals.ts'
import type { Held } from './pipeline.ts'
import { bind } from './provision-bound.ts'
import { giveUp } from './provision-end.ts'
import { reload, type ProvisionWork } from './provision-load.ts'
import { event, instanceTarget, leaseTarget } from './record.ts'

/** How long a process takes to begin anew after a fork. */
const beginsAnewMs = 2_000

export interface Caller {
  replicaId: string
  /** The one that this process works for: after a fork it begins anew, and calls nothing until then. */
  installation: string
  deadlineMs: number
  writesMac: boolean
}

/**
 * Marks the attempt as called, under the fence and only while the lease still wants it: from here on something may exist. What it makes bears the current
 * key's tag, where there is room for it.
 * @returns null: do not call
 */
export const beginCall = async (tx: Tx, held: Held, work: ProvisionWork, caller: Caller): Promise<{ mac: string | null } | null> => {
  const own = await pinInstallation(tx)
  if (own?.installation_id !== caller.installation) {
    if ((await stillHeld(tx, 'instances', [held])).size > 0)
      await tx.db
        .updateTable('instances')
        .set(unlocked(tx.now + beginsAnewMs))
        .where('id', '=', work.instance.id)
        .execute()
    return null
  }
  const fresh = await reload(tx, held, work)
  if (!fresh?.attempt || fresh.attempt.id !== work.attempt?.id || fresh.attempt.outcome !== 'open' || fresh.attempt.called_at !== null)
    return null
  if (fresh.wanted.kind !== 'wanted') {
    await tx.db.updateTable('instances').set(unlocked(tx.now)).where('id', '=', fresh.instance.id).execute()
    return null
  }
  const key = caller.writesMac ? await currentKey(tx) : undefined
  await updateAttempt(tx, fresh.attempt.id, {
    called_at: tx.now,
    called_by: caller.replicaId,
    deadline_at: tx.now + caller.deadlineMs,
    mac_key: key?.id ?? null,
  })
  if (!key) return { mac: null }
  const { scope, ref, token } = fresh.attempt
  return { mac: makeMac(key, { installation: own.installation_id, scope, ref, attempt: token, epoch: own.epoch }) }
}

/**
 * The answer of a call that was begun is written on its own attempt whoever holds the lock now (I3); and it wins over an absence that
 * was concluded meanwhile: what surfaced late is taken back (leases R44, orphans R10).
 */
const learn = async (tx: Tx, attempt: AttemptRow, resource: ResourceIdentity): Promise<AttemptRow> => {
  await updateAttempt(tx, attempt.id, { ...identityColumns(resource), outcome: 'bound', ended_at: null, error: null })
  return (await attemptById(tx, attempt.id)) as AttemptRow
}

export const applyCreated = async (tx: Tx, held: Held, work: ProvisionWork, resource: ResourceIdentity, ready: boolean): Promise<void> => {
  const before = work.attempt as AttemptRow
  const fresh = await reload(tx, held, work)
  const stored = (await attemptById(tx, before.id)) as AttemptRow
  const attempt = await learn(tx, stored, resource)
  if (fresh) return bind(tx, { ...fresh, attempt }, ready)
  // Somebody else has the instance now. If it was closed as never made, this is a late arrival: it is ours by record, and it goes.
  const [instance] = await instancesByIds(tx, [work.instance.id])
  if (!instance || stored.outcome !== 'absent') return
  await appendEvents(tx, [
    event(
      tx,
      'attempt.late',
      { number: attempt.number, cloudId: resource.nativeId },
      { project: instance.project, targets: [instanceTarget(instance)] },
    ),
  ])
  // A live lease has a newer box: this removal is not its end, and does not show as its cleanup.
  const lease = instance.lease_id ? await leaseById(tx, instance.lease_id) : undefined
  await openRemovals(tx, [{ instance, lease: lease && !isLive(lease.state) ? lease : null, attempt, cause: 'leftover' }])
}

export const applyRejected = async (
  tx: Tx,
  held: Held,
  work: ProvisionWork,
  outcome: Extract<CreateOutcome, { kind: 'rejected' }>,
): Promise<void> => {
  const message = redact(outcome.message)
  await updateAttempt(tx, (work.attempt as AttemptRow).id, { outcome: 'absent', ended_at: tx.now, error: message })
  await giveUp(tx, held, work, outcome.code, message)
}

/** Refused for the account's rate, which proves that nothing was made: the same attempt is called again once there is room. */
export const applyThrottled = async (tx: Tx, held: Held, work: ProvisionWork): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh?.attempt || fresh.attempt.outcome !== 'open') return
  await updateAttempt(tx, fresh.attempt.id, { called_at: null, called_by: null })
  await tx.db.updateTable('instances').set(unlocked(tx.now)).where('id', '=', fresh.instance.id).execute()
}

/** leases R7: every identity known so far is kept, and the attempt is looked up before anything else happens. */
export const applyUncertain = async (
  tx: Tx,
  held: Held,
  work: ProvisionWork,
  provider: Provider,
  outcome: Extract<CreateOutcome, { kind: 'uncertain' }>,
): Promise<void> => {
  const attempt = work.attempt as AttemptRow
  const error = redact(outcome.message)
  await updateAttempt(tx, attempt.id, { error, ...(outcome.resource ? identityColumns(outcome.resource) : {}) })
  if (work.lease) await tx.db.updateTable('leases').set({ may_exist: 1, updated_at: tx.now }).where('id', '=', work.lease.id).execute()
  const fresh = await reload(tx, held, work)
  if (!fresh) return
  await tx.db
    .updateTable('instances')
    .set({ ...unlocked(tx.now + nextLookMs(provider.visibilitySeconds)), changed_at: tx.now })
    .where('id', '=', fresh.instance.id)
    .execute()
  const targets = [...(fresh.lease ? [leaseTarget(fresh.lease)] : []), instanceTarget(fresh.instance)]
  await appendEvents(tx, [event(tx, 'attempt.uncertain', { number: attempt.number, error }, { project: fresh.instance.project, targets })])
}
