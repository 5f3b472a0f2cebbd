/**
 * Between two holders: what the last one left is ended and taken away, and only a listing that shows nothing of it makes the box ready again. What fails, or
 * is not proved, is removed and never given out. The same care as for a removal: holds, a written intent, and the lock asked for once more, and before it a fresh read: what is not, or not provably, ours is not touched.
 */
import { withDeadline } from '../../lib/deadline.ts'
import { uuidv7Hex } from '../../lib/ids.ts'
import { errorText, redact } from '../../lib/redact.ts'
import { heldBy, heldRecheckMs, resourceKey } from '../../model/removal.ts'
import type { FoundResource, LeftoverOutcome, Provider, ResourceIdentity, Wipe, WipeOutcome } from '../../providers/contract.ts'
import { appendAudit, type NewAudit } from '../../store/audit.ts'
import { attemptById, type AttemptRow } from '../../store/attempts.ts'
import { unlocked } from '../../store/due.ts'
import { appendEvents } from '../../store/events.ts'
import { readObstacles } from '../../store/obstacles.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { openRemovals } from '../open-removals.ts'
import { stillStands, type Held } from '../pipeline.ts'
import { clockOf, reload, type ProvisionWork } from '../provision-load.ts'
import { rearm } from '../rearm.ts'
import { event, fleetTarget, instanceTarget, leaseTarget, systemActor } from '../record.ts'
import { disown, ownAgain } from './disown.ts'
import { lookAt } from './look.ts'
import { settle } from './settle.ts'

const rereadMs = 30_000

type Verdict = { kind: 'clean'; proof: string } | { kind: 'failed'; why: string }

const recordOf = (tx: Tx, work: ProvisionWork, kind: NewAudit['kind'], intentId: string | null, body: NewAudit['body']): NewAudit => ({
  id: `au_${uuidv7Hex(tx.now)}`,
  kind,
  intent_id: intentId,
  removal_id: null,
  project: work.instance.project,
  scope: work.instance.scope,
  ref: work.instance.ref,
  actor: systemActor,
  body,
})

type Intent = { kind: 'written'; id: string } | { kind: 'lost' } | { kind: 'held'; by: string }

/** Who says "not this" of the box, or of anything that it belongs to, means its contents too. */
const writeIntent = async (
  tx: Tx,
  held: Held,
  work: ProvisionWork,
  identity: ResourceIdentity,
  { tags, providerState }: FoundResource,
): Promise<Intent> => {
  const fresh = await reload(tx, held, work)
  if (!fresh || fresh.instance.wiping_since === null || fresh.instance.state !== 'busy') return { kind: 'lost' }
  const { holds, frozenScopes } = await readObstacles(tx, tx.now)
  const target = {
    resourceKeys: [resourceKey(fresh.instance.provider, identity.location, identity.nativeId)],
    instanceId: fresh.instance.id,
    leaseId: fresh.instance.lease_id,
    project: fresh.instance.project,
    scope: identity.scope,
    ...(fresh.attempt ? { madeAt: fresh.attempt.opened_at } : {}),
  }
  const by = heldBy(target, holds, frozenScopes)
  if (by !== null) return { kind: 'held', by }
  const { attempt, instance } = fresh
  const seen = { tags, state: providerState }
  const body = { call: 'wipe', cause: 'released', identity, seen, fence: held.fence, attempt: attempt?.id, lease: instance.lease_id }
  const record = recordOf(tx, fresh, 'intent', null, body)
  await appendAudit(tx, [record])
  return { kind: 'written', id: record.id }
}

/** What the provider answered, whoever has the lock now (I7). */
const recordAnswer = (tx: Tx, work: ProvisionWork, intentId: string, answer: WipeOutcome): Promise<void> =>
  appendAudit(tx, [
    recordOf(tx, work, 'outcome', intentId, { kind: answer.kind, ...(answer.kind === 'failed' ? { why: redact(answer.why) } : {}) }),
  ])

const clear = (provider: Provider, wipe: Wipe, work: ProvisionWork, identity: ResourceIdentity, held: Held): Promise<WipeOutcome> =>
  withDeadline(`wiping ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, held.signal, (signal) =>
    wipe.clear(identity, work.config, { signal, stands: () => !signal.aborted && stillStands(held) }),
  ).catch((error: unknown) => ({ kind: 'failed', why: errorText(error) }) as const)

const prove = async (provider: Provider, wipe: Wipe, work: ProvisionWork, identity: ResourceIdentity, held: Held): Promise<Verdict> => {
  const seen = await withDeadline(
    `listing what is left in ${identity.nativeId}`,
    provider.callDeadlineSeconds * 1000,
    held.signal,
    (signal) => wipe.leftovers(identity, work.config, { signal }),
  ).catch((error: unknown): LeftoverOutcome => ({ kind: 'incomplete', why: errorText(error) }))
  if (seen.kind === 'incomplete') return { kind: 'failed', why: `what is left in it could not be listed: ${seen.why}` }
  if (seen.left.length > 0)
    return { kind: 'failed', why: `still there: ${seen.left.slice(0, 5).join(', ')}${seen.left.length > 5 ? ', …' : ''}` }
  return { kind: 'clean', proof: `nothing is left in it: ${seen.looked}` }
}

const applyClean = async (tx: Tx, work: ProvisionWork, identity: ResourceIdentity, proof: string): Promise<void> => {
  const { instance, lease, fleet } = work
  await tx.db
    .updateTable('instances')
    // Seen alive and empty just now; its clock is still that of its last holder, and is moved before anybody gets it.
    .set({ ...unlocked(tx.now), state: 'idle', lease_id: null, wiping_since: null, changed_at: tx.now, checked_at: tx.now })
    .where('id', '=', instance.id)
    .execute()
  if (lease) await tx.db.updateTable('leases').set({ returned_at: tx.now, updated_at: tx.now }).where('id', '=', lease.id).execute()
  await appendAudit(tx, [recordOf(tx, work, 'proof', null, { wiped: identity, proof: redact(proof), lease: lease?.id ?? null })])
  const targets = [...(fleet ? [fleetTarget(fleet)] : []), ...(lease ? [leaseTarget(lease)] : []), instanceTarget(instance)]
  await appendEvents(tx, [event(tx, 'fleet.box-returned', { cloudId: identity.nativeId, proof }, { project: instance.project, targets })])
}

const applyFailed = async (tx: Tx, work: ProvisionWork & { bound: AttemptRow }, identity: ResourceIdentity, why: string): Promise<void> => {
  const { instance, lease, fleet, bound } = work
  await tx.db
    .updateTable('instances')
    .set({ ...unlocked(null), wiping_since: null })
    .where('id', '=', instance.id)
    .execute()
  const targets = [...(fleet ? [fleetTarget(fleet)] : []), ...(lease ? [leaseTarget(lease)] : []), instanceTarget(instance)]
  const payload = { cloudId: identity.nativeId, why: redact(why) }
  await appendEvents(tx, [event(tx, 'fleet.wipe-failed', payload, { project: instance.project, targets })])
  await openRemovals(tx, [{ instance, lease, attempt: bound, cause: 'wipe-failed' }])
}

const apply = (context: EngineContext, held: Held, work: ProvisionWork, identity: ResourceIdentity, verdict: Verdict): Promise<void> =>
  context.store.write(async (tx) => {
    const fresh = await reload(tx, held, work)
    // Somebody else's by now, or its holder wanted it gone: what we learned decides nothing.
    if (!fresh || fresh.instance.wiping_since === null || fresh.instance.state !== 'busy') return
    if (verdict.kind === 'clean') return applyClean(tx, fresh, identity, verdict.proof)
    const bound = fresh.instance.attempt_id === null ? undefined : await attemptById(tx, fresh.instance.attempt_id)
    if (bound) await applyFailed(tx, { ...fresh, bound }, identity, verdict.why)
  })

export const wipeBox = async (
  context: EngineContext,
  held: Held,
  work: ProvisionWork,
  provider: Provider,
  attempt: AttemptRow,
  identity: ResourceIdentity,
): Promise<void> => {
  const { wipe } = provider
  if (!wipe) {
    await apply(context, held, work, identity, { kind: 'failed', why: `provider ${provider.name} can't wipe` })
    return context.signals.wake('remove')
  }
  const look = await lookAt(context, work, attempt, provider, identity, held.signal)
  if (look.kind === 'contradiction') return disown(context, held, work, identity, look.why)
  // A failed read says nothing of the box: nobody gets it meanwhile, and it is read again.
  if (look.kind === 'unknown') return settle(context, held, work, { dueIn: rereadMs })
  if (look.kind === 'ended') {
    await apply(context, held, work, identity, { kind: 'failed', why: look.why })
    return context.signals.wake('remove')
  }
  await ownAgain(context, work, identity)
  const intent = await context.store.write((tx) => writeIntent(tx, held, work, identity, look.found))
  if (intent.kind === 'held') {
    // What is held stays, and its own clock must not end it meanwhile.
    await rearm(context, clockOf(held, work, provider, identity))
    return settle(context, held, work, { dueIn: heldRecheckMs })
  }
  if (intent.kind === 'lost' || !stillStands(held)) return
  const answer = await clear(provider, wipe, work, identity, held)
  await context.store.write((tx) => recordAnswer(tx, work, intent.id, answer))
  const verdict: Verdict = answer.kind === 'wiped' ? await prove(provider, wipe, work, identity, held) : answer
  // A lost lock or our own end says nothing of the box: whoever has the row next begins again.
  if (!stillStands(held)) return
  await apply(context, held, work, identity, verdict)
  if (work.lease) context.signals.changed(work.lease.id)
  context.signals.wake('remove')
  context.signals.wake('provision')
}
