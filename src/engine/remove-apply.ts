/** The guarded applies of a removal: each writes only under the fence of its lock, but for the answer to a call that was already made (I3, I7). */
import { sql } from 'kysely'
import { uuidv7Hex } from '../lib/ids.ts'
import { redact } from '../lib/redact.ts'
import { isLive } from '../model/lease.ts'
import { heldBy, resourceKey, heldRecheckMs, nextTryMs, pollDelayMs, removalKind } from '../model/removal.ts'
import type { RemovalEvidence } from '../model/removal-evidence.ts'
import type { RemovalState } from '../model/wire.ts'
import { appendAudit, type NewAudit } from '../store/audit.ts'
import { lockIn, updateEach } from '../store/bulk.ts'
import { stillHeld, unlocked } from '../store/due.ts'
import { appendEvents, type NewEvent } from '../store/events.ts'
import { lockLeases, type LeaseRow } from '../store/leases.ts'
import { readObstacles } from '../store/obstacles.ts'
import type { Tx } from '../store/store.ts'
import type { RemoveOutcome, ResourceIdentity } from '../providers/contract.ts'
import type { Held } from './pipeline.ts'
import { event, instanceTarget, leaseTarget, reportFinding, resourceTargets, systemActor, type Target } from './record.ts'
import type { RemovalWork } from './remove-load.ts'
import { identitiesOf, progressOf, resourcesOf } from './removal-row.ts'

export const targetsOf = (work: RemovalWork, lease?: LeaseRow): Target[] => [
  ...(lease ? [leaseTarget(lease)] : []),
  instanceTarget({ id: work.removal.instance_id, name: work.removal.name }),
  ...resourceTargets(work.removal.provider, resourcesOf(work.removal, work.attempt)),
]

export interface Locks {
  /** The removals whose lock is still the holder's. */
  mine: Set<string>
  leases: Map<string, LeaseRow>
}

/** Locks leases, instances, then removals: the order of every transaction, so that no two wait for each other. */
export const lockAll = async (tx: Tx, items: readonly { held: Held; work: RemovalWork }[]): Promise<Locks> => {
  const leases = await lockLeases(
    tx,
    items.flatMap((item) => (item.work.removal.lease_id ? [item.work.removal.lease_id] : [])),
  )
  await lockIn(
    tx,
    'instances',
    items.map((item) => item.work.removal.instance_id),
  )
  const mine = await stillHeld(
    tx,
    'removals',
    items.map((item) => item.held),
  )
  return { mine, leases: new Map(leases.map((row) => [row.id, row])) }
}

/** What the removal stands on, said again by each intent: the chain then holds it too. */
const evidenceOf = (removal: RemovalWork['removal']): RemovalEvidence | null =>
  removal.evidence === null ? null : (JSON.parse(removal.evidence) as RemovalEvidence)

/** Of several members: all that is bound, in its order, and what of it is gone already. */
const groupOf = (removal: RemovalWork['removal']): Record<string, unknown> => {
  const members = identitiesOf(removal)
  if (members.length < 2) return {}
  return { group: members.map(({ kind, nativeId, immutableId }) => ({ kind, nativeId, immutableId })), progress: progressOf(removal) }
}

const auditId = (tx: Tx): string => `au_${uuidv7Hex(tx.now)}`

const recordOf = (
  { removal }: RemovalWork,
  id: string,
  kind: NewAudit['kind'],
  intentId: string | null,
  body: NewAudit['body'],
): NewAudit => ({
  id,
  kind,
  intent_id: intentId,
  removal_id: removal.id,
  project: removal.project,
  scope: removal.scope,
  ref: removal.ref,
  actor: systemActor,
  body,
})

export interface IntentOf {
  held: Held
  work: RemovalWork
  identity: ResourceIdentity
  fingerprint: Record<string, unknown>
}

/** Only `written` lets the call happen. */
export type Intent = { kind: 'written'; id: string } | { kind: 'lost' } | { kind: 'held'; by: string }

/**
 * Binds the identity, and writes the intent, in one transaction before the call (I7). Holds and freezes are asked once more: the fresh read may have
 * taken long, and a hold that was answered before the intent wins.
 */
export const writeIntents = async (tx: Tx, intents: readonly IntentOf[]): Promise<Intent[]> => {
  const mine = await stillHeld(
    tx,
    'removals',
    intents.map((intent) => intent.held),
  )
  const { holds, frozenScopes } = await readObstacles(tx, tx.now)
  const verdicts = intents.map(({ held, work, identity }): Intent => {
    if (!mine.has(held.id)) return { kind: 'lost' }
    // By the name that was looked up, too: what its attempt never recorded, nobody could have held under another.
    const name = resourceKey(work.removal.provider, identity.location, identity.nativeId)
    const by = heldBy({ ...work.target, resourceKeys: [...work.target.resourceKeys, name] }, holds, frozenScopes)
    return by === null ? { kind: 'written', id: auditId(tx) } : { kind: 'held', by }
  })
  const written = intents.flatMap((intent, i) => {
    const verdict = verdicts[i]
    return verdict?.kind === 'written' ? [{ ...intent, id: verdict.id }] : []
  })
  await updateEach(
    tx,
    'removals',
    [
      ['id', 'text'],
      ['state', 'text'],
      ['identity', 'text'],
      ['started_at', 'bigint'],
      ['held_by', 'text'],
      ['version', 'bigint'],
      ['stopped', 'text'],
    ],
    written.map(({ work, identity }) => [
      work.removal.id,
      'removing',
      work.removal.identity ?? JSON.stringify([identity]),
      work.removal.started_at ?? tx.now,
      null,
      // One of the first version is bound from here on (leases R90).
      2,
      null,
    ]),
  )
  await appendAudit(
    tx,
    written.map(({ id, work, identity, fingerprint, held }) =>
      recordOf(work, id, 'intent', null, {
        call: 'remove',
        cause: work.removal.cause,
        identity,
        read: fingerprint,
        fence: held.fence,
        attempt: work.attempt.id,
        lease: work.removal.lease_id,
        ...groupOf(work.removal),
        evidence: evidenceOf(work.removal),
      }),
    ),
  )
  return verdicts
}

export interface OutcomeOf {
  work: RemovalWork
  intentId: string
  answer: RemoveOutcome
}

/** What the provider answered, also when the lock was lost meanwhile. */
export const recordOutcome = (tx: Tx, outcomes: readonly OutcomeOf[]): Promise<void> =>
  appendAudit(
    tx,
    outcomes.map(({ work, intentId, answer }) => {
      const { rate: _rate, ...said } = answer
      const body = Object.entries(said).map(([key, value]) => [key, typeof value === 'string' ? redact(value) : (value as unknown)])
      return recordOf(work, auditId(tx), 'outcome', intentId, Object.fromEntries(body) as Record<string, unknown>)
    }),
  )

export interface Proved {
  work: RemovalWork
  identity: ResourceIdentity
  proof: string
}

/** By what the absence of a member was known, also where nothing was called: kept for ever, as the calls are. */
export const recordProofs = (tx: Tx, proved: readonly Proved[]): Promise<void> =>
  appendAudit(
    tx,
    proved.map(({ work, identity, proof }) => {
      const evidence = work.removal.started_at === null ? evidenceOf(work.removal) : null
      return recordOf(work, auditId(tx), 'proof', null, { absent: identity, proof: redact(proof), evidence })
    }),
  )

/** Does this removal end the lease itself? Any other only takes back what the lease has given up, or a leftover beside its box. */
export const endsLease = (work: RemovalWork, lease: LeaseRow | undefined): lease is LeaseRow =>
  lease !== undefined && work.removal.cause === 'expired' && isLive(lease.state)

/**
 * A live lease whose removal is under way for good becomes `expired`; one that was ended before stays what it is (leases R35, I9).
 * @returns its events, for the caller to append
 */
export const expireLive = async (tx: Tx, items: readonly { work: RemovalWork; lease: LeaseRow | undefined }[]): Promise<NewEvent[]> => {
  const ending = items.flatMap(({ work, lease }) => (endsLease(work, lease) ? [lease] : []))
  await updateEach(
    tx,
    'leases',
    [
      ['id', 'text'],
      ['state', 'text'],
      ['ended_at', 'bigint'],
      ['updated_at', 'bigint'],
      ['due_at', 'bigint'],
      ['may_exist', 'bigint'],
    ],
    ending.map((lease) => [lease.id, 'expired', tx.now, tx.now, null, 0]),
  )
  return ending.map((lease) =>
    event(
      tx,
      'lease.expired',
      { clock: lease.expires_at >= lease.created_at + lease.ttl_seconds * 1000 ? 'ttl' : 'idle' },
      { project: lease.project, targets: [leaseTarget(lease)] },
    ),
  )
}

export interface Accepted extends OutcomeOf {
  held: Held
}

/** The answers themselves are on record already. */
export const applyAccepted = async (tx: Tx, accepted: readonly Accepted[], { mine, leases }: Locks): Promise<void> => {
  const kept = accepted
    .filter((item) => mine.has(item.held.id))
    .map((item) => ({ ...item, lease: leases.get(item.work.removal.lease_id ?? '') }))
  await updateEach(
    tx,
    'removals',
    [
      ['id', 'text'],
      ['state', 'text'],
      ['accepted_at', 'bigint'],
      ['failures', 'bigint'],
      ['error', 'text'],
      ['failed_at', 'bigint'],
      ['retry_at', 'bigint'],
    ],
    kept.map(({ work }) => [work.removal.id, 'verifying', tx.now, 0, null, null, null]),
  )
  // One that was answered "gone" stays locked: the same worker reads it once more right away.
  await updateEach(
    tx,
    'removals',
    [
      ['id', 'text'],
      ['due_at', 'bigint'],
      ['lock_owner', 'text'],
      ['lock_until', 'bigint'],
    ],
    kept.filter(({ answer }) => answer.kind === 'accepted').map(({ work }) => [work.removal.id, tx.now + pollDelayMs(0), null, null]),
  )
  const expired = await expireLive(tx, kept)
  const told = kept
    .filter(({ answer }) => answer.kind === 'accepted')
    .map(({ work, lease }) =>
      event(
        tx,
        'removal.accepted',
        { cloudId: work.attempt.native_id ?? work.removal.ref },
        { project: work.removal.project, targets: targetsOf(work, lease) },
      ),
    )
  await appendEvents(tx, [...expired, ...told])
}

/** Gives the row back, to be looked at when `dueAt` comes; `why` it is not worked on shows with it. */
export const applyPutOff = async (tx: Tx, held: Held, dueAt: number | null, why?: string): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(dueAt), ...(why === undefined ? {} : { error: why }) })
    .where('id', '=', held.id as never)
    .execute()
}

/** Looked at again, ever less often; `afterMs`: at another time. */
export const applyPoll = async (tx: Tx, held: Held, work: RemovalWork, afterMs = pollDelayMs(work.removal.polls)): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now + afterMs), polls: work.removal.polls + 1, held_by: null })
    .where('id', '=', work.removal.id)
    .execute()
}

export const applyHeld = async (tx: Tx, held: Held, work: RemovalWork, by: string): Promise<void> => {
  const { mine, leases } = await lockAll(tx, [{ held, work }])
  if (mine.size === 0) return
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now + heldRecheckMs), held_by: by })
    .where('id', '=', work.removal.id)
    .execute()
  if (work.removal.held_by === by) return
  await appendEvents(tx, [
    event(tx, 'removal.held', { by }, { project: work.removal.project, targets: targetsOf(work, leases.get(work.removal.lease_id ?? '')) }),
  ])
}

export interface Failed {
  held: Held
  work: RemovalWork
  error: string
  /** The resource that contradicts what is bound: a finding about it opens. */
  contradiction: string | null
}

/**
 * leases R40, R47: the lease keeps its state, and shows error and retry time; the next try comes exactly `retryDelayMs` later. Where no lease holds the
 * instance it comes after 30 s (orphans R88), on one clock from the first failure or acceptance (R90).
 */
export const applyFailed = async (tx: Tx, { held, work, error, contradiction }: Failed): Promise<void> => {
  const { mine, leases } = await lockAll(tx, [{ held, work }])
  if (mine.size === 0) return
  const failures = work.removal.failures + 1
  const kind = removalKind({ cause: work.removal.cause, leaseId: work.removal.lease_id })
  const retryAt = tx.now + nextTryMs(kind, failures)
  const firstFailedAt = work.removal.first_failed_at ?? (kind === 'unheld' ? work.removal.accepted_at : null) ?? tx.now
  // Not what was loaded: the intent of this very try has moved it on.
  const state = sql<RemovalState>`case when started_at is null then 'preparing' else 'removing' end`
  await tx.db
    .updateTable('removals')
    .set({
      ...unlocked(retryAt),
      state,
      failures,
      first_failed_at: firstFailedAt,
      error,
      failed_at: tx.now,
      retry_at: retryAt,
      held_by: null,
      accepted_at: null,
      polls: 0,
    })
    .where('id', '=', work.removal.id)
    .execute()
  const about = { project: work.removal.project, targets: targetsOf(work, leases.get(work.removal.lease_id ?? '')) }
  await appendEvents(tx, [event(tx, 'removal.failed', { failures, error, retryAt: new Date(retryAt).toISOString() }, about)])
  if (contradiction === null) return
  await reportFinding(tx, {
    code: 'contradiction',
    project: work.removal.project,
    scope: work.removal.scope,
    target: { type: 'resource', id: contradiction, name: contradiction },
    message: error,
    evidence: { ref: work.removal.ref, removal: work.removal.id, instance: work.removal.instance_id, why: error },
  })
}
