/** What a look for an attempt found: adopted, taken back, proved absent, or left alone (leases R8, R9; decisions 3). */
import { mostAttempts, nextLookMs, provedAbsent } from '../model/provision.ts'
import { redact } from '../lib/redact.ts'
import type { FoundResource, Provider } from '../providers/contract.ts'
import { attemptById, identityColumns, updateAttempt, type AttemptRow } from '../store/attempts.ts'
import { stillHeld, unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { isKnownDead } from '../store/replicas.ts'
import type { Tx } from '../store/store.ts'
import { openRemovals } from './open-removals.ts'
import type { Held } from './pipeline.ts'
import { bind } from './provision-bound.ts'
import { failLease, insertNextAttempt } from './provision-end.ts'
import { reload, type ProvisionWork } from './provision-load.ts'
import { event, instanceTarget, leaseTarget, reportFinding } from './record.ts'

const unclearRetryMs = 5_000
const contradictionRetryMs = 300_000

/** Gives the row back under its fence, to be looked at `ms` later; null: never by itself. */
export const putOff = async (tx: Tx, held: Held, work: ProvisionWork, ms: number | null): Promise<void> => {
  if ((await stillHeld(tx, 'instances', [held])).size === 0) return
  await tx.db
    .updateTable('instances')
    .set(unlocked(ms === null ? null : tx.now + ms))
    .where('id', '=', work.instance.id)
    .execute()
}

export const applyUnclear = async (tx: Tx, held: Held, work: ProvisionWork, why: string): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh?.attempt) return
  await updateAttempt(tx, fresh.attempt.id, { error: redact(why) })
  await putOff(tx, held, fresh, unclearRetryMs)
}

export const applyContradiction = async (tx: Tx, held: Held, work: ProvisionWork, why: string): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh?.attempt) return
  await putOff(tx, held, fresh, contradictionRetryMs)
  await reportFinding(tx, {
    code: 'contradiction',
    project: fresh.instance.project,
    scope: fresh.attempt.scope,
    target: instanceTarget(fresh.instance),
    message: why,
    evidence: { ref: fresh.instance.ref, attempt: fresh.attempt.id, why },
  })
}

export const applyNotFound = async (tx: Tx, held: Held, work: ProvisionWork, provider: Provider): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh?.attempt || fresh.attempt.outcome !== 'open') return
  const sighted = { ...fresh.attempt, absent_since: fresh.attempt.absent_since ?? tx.now, absent_count: fresh.attempt.absent_count + 1 }
  const callerDead = fresh.attempt.called_by !== null && (await isKnownDead(tx, fresh.attempt.called_by))
  const facts = { absentSince: sighted.absent_since, absentCount: sighted.absent_count, deadlineAt: sighted.deadline_at }
  const absent = provedAbsent(facts, provider.visibilitySeconds, callerDead, tx.now)
  await updateAttempt(tx, fresh.attempt.id, {
    absent_since: sighted.absent_since,
    absent_count: sighted.absent_count,
    ...(absent ? { outcome: 'absent' as const, ended_at: tx.now } : {}),
  })
  await putOff(tx, held, fresh, absent ? 0 : nextLookMs(provider.visibilitySeconds))
  if (!absent) return
  const targets = [...(fresh.lease ? [leaseTarget(fresh.lease)] : []), instanceTarget(fresh.instance)]
  await appendEvents(tx, [event(tx, 'attempt.absent', { number: fresh.attempt.number }, { project: fresh.instance.project, targets })])
}

/** It exists, and two facts say that this attempt made it. Adopted only for somebody who can still learn of it; else the lease fails and it goes. */
export const applyFound = async (tx: Tx, held: Held, work: ProvisionWork, found: FoundResource, adoptable: boolean): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (!fresh?.attempt || fresh.attempt.outcome !== 'open') return
  await updateAttempt(tx, fresh.attempt.id, { ...identityColumns(found.resource), outcome: 'bound', ended_at: null })
  const attempt = (await attemptById(tx, fresh.attempt.id)) as AttemptRow
  const adopt = adoptable && fresh.wanted.kind === 'wanted' && fresh.wanted.replayable
  const targets = [...(fresh.lease ? [leaseTarget(fresh.lease)] : []), instanceTarget(fresh.instance)]
  await appendEvents(tx, [
    event(
      tx,
      'attempt.found',
      { number: attempt.number, cloudId: found.resource.nativeId, verdict: adopt ? 'adopt' : 'take-back' },
      { project: fresh.instance.project, targets },
    ),
  ])
  if (adopt || fresh.wanted.kind === 'ended') return bind(tx, { ...fresh, attempt }, adopt, adopt)
  const { lease, instance } = fresh
  if (!adoptable && fresh.wanted.replayable && attempt.number < mostAttempts) {
    // It is not whole, so it is no box; its client still waits. What is left of it goes, and one more is made under the same ref.
    await openRemovals(tx, [{ instance, lease: null, attempt, cause: 'leftover' }])
    return insertNextAttempt(tx, { ...fresh, attempt })
  }
  await tx.db
    .updateTable('instances')
    .set({ ...unlocked(null), attempt_id: attempt.id, scope: attempt.scope, location: attempt.location, changed_at: tx.now })
    .where('id', '=', instance.id)
    .execute()
  const error = adoptable
    ? 'the create was interrupted before its answer, and nobody can learn of the box'
    : 'the box was found, but it was not whole'
  await failLease(tx, fresh, 'create_interrupted', error)
  await openRemovals(tx, [{ instance, lease, attempt, cause: 'create-interrupted' }])
}
