/**
 * The clock of leases. `due_at` says when to look, `expires_at` when it is over: a beat moves only the latter, so the look may find that there is nothing
 * to do yet and is put off. Also moves the dead-man clock of retained boxes and opens their reminder (leases R37).
 */
import { coalesce } from '../lib/coalesce.ts'
import { retainSeconds } from '../model/clocks.ts'
import { decideDue, type DueDecision } from '../model/lease.ts'
import { attemptsOf, identityOf } from '../store/attempts.ts'
import { findBackend } from '../store/backends.ts'
import { updateEach } from '../store/bulk.ts'
import { stillHeld, wakeRow, type Locked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { instancesByIds, lockInstances } from '../store/instances.ts'
import { leaseById, leasesByIds, type LeaseRow } from '../store/leases.ts'
import type { Tx } from '../store/store.ts'
import { providerOf, type EngineContext } from './context.ts'
import { leaseFacts } from './facts.ts'
import type { Ended } from './ended.ts'
import { openRemovals } from './open-removals.ts'
import type { Held, PipelineSpec } from './pipeline.ts'
import { rearm } from './rearm.ts'
import { event, leaseTarget, reportFinding, resolveAbout } from './record.ts'

const rearmEveryMs = 3_600_000
const settlePollMs = 5_000
const unboundPollMs = 60_000

interface Outcome {
  decision: DueDecision
  lease: LeaseRow | null
}

const columns = [
  ['id', 'text'],
  ['due_at', 'bigint'],
  ['lock_owner', 'text'],
  ['lock_until', 'bigint'],
  ['lock_fence', 'bigint'],
] as const

const nextDue = (decision: DueDecision, lease: LeaseRow, now: number): number | null => {
  switch (decision.kind) {
    case 'later':
    case 'warn-idle':
      return decision.at
    case 'expire-provisioning':
      return now + settlePollMs
    case 'retained':
      return decision.overdue || lease.retain_until === null ? now + rearmEveryMs : Math.min(now + rearmEveryMs, lease.retain_until)
    case 'expire':
    case 'nothing':
      return null
  }
}

/** Once for each idle period: a beat moves the end, and the new one has not been told. */
const warnIdle = async (tx: Tx, decided: readonly Outcome[]): Promise<void> => {
  const warned = decided.flatMap(({ decision, lease }) => (decision.kind === 'warn-idle' && lease ? [{ decision, lease }] : []))
  await updateEach(
    tx,
    'leases',
    [
      ['id', 'text'],
      ['idle_warned_for', 'bigint'],
    ],
    warned.map(({ lease }) => [lease.id, lease.expires_at]),
  )
  await appendEvents(
    tx,
    warned.map(({ decision, lease }) => {
      const payload = {
        idleSeconds: lease.idle_seconds,
        leftSeconds: decision.leftSeconds,
        endsAt: new Date(lease.expires_at).toISOString(),
      }
      return event(tx, 'lease.idle', payload, { project: lease.project, targets: [leaseTarget(lease)] })
    }),
  )
}

/** @param mine the rows that this transaction may write, by their ids */
const applyDue = async (tx: Tx, rows: readonly Locked[], mine: Iterable<string>): Promise<Outcome[]> => {
  const leases = new Map((await leasesByIds(tx, [...mine])).map((row) => [row.id as string, row]))
  const fences = new Map(rows.map((row) => [row.id, row.fence]))
  const decided = rows.map((one): Outcome => {
    const lease = leases.get(one.id) ?? null
    return { lease, decision: lease ? decideDue(leaseFacts(lease), tx.now) : { kind: 'nothing' } }
  })
  const of = (kind: DueDecision['kind']): LeaseRow[] =>
    decided.flatMap((one) => (one.decision.kind === kind && one.lease ? [one.lease] : []))
  const expiring = of('expire')
  const instances = new Map(
    (
      await lockInstances(
        tx,
        expiring.map((lease) => lease.instance_id),
      )
    ).map((row) => [row.id, row]),
  )
  const attempts = new Map((await attemptsOf(tx, [...instances.keys()])).map((row) => [row.id, row]))
  const ended = expiring.flatMap((lease): Ended[] => {
    const instance = instances.get(lease.instance_id)
    const attempt = instance?.attempt_id ? attempts.get(instance.attempt_id) : undefined
    return instance && instance.lease_id === lease.id && attempt ? [{ instance, lease, attempt, cause: 'expired' }] : []
  })
  await openRemovals(tx, ended)
  await warnIdle(tx, decided)
  const settled = new Set(ended.map((one) => one.lease?.id))
  for (const lease of of('expire-provisioning')) await wakeRow(tx, 'instances', lease.instance_id)
  await updateEach(
    tx,
    'leases',
    columns,
    decided.flatMap(({ decision, lease }) => {
      if (!lease) return []
      // An active lease without a recorded box can't be: should it be, it is looked at for ever rather than forgotten.
      const forgotten = decision.kind === 'expire' && !settled.has(lease.id)
      const dueAt = forgotten ? tx.now + unboundPollMs : nextDue(decision, lease, tx.now)
      return [[lease.id, dueAt, null, null, fences.get(lease.id) ?? lease.lock_fence]]
    }),
  )
  return decided
}

/** Its box is gone, by whatever hands: there is nothing to be reminded of. */
const nothingRetained = async (tx: Tx, lease: LeaseRow): Promise<void> => {
  await tx.db
    .updateTable('leases')
    .set({ retain_until: null, due_at: null })
    .where('id', '=', lease.id)
    .where('release_deletes', '=', 0)
    .execute()
  await resolveAbout(tx, 'lease', [lease.id], 'retained-overdue')
}

/** Moves the dead-man clock to 24 h from now; past the reminder's time the finding opens, and repeats as findings do. */
const retain = async (context: EngineContext, lease: LeaseRow, overdue: boolean, held: Held): Promise<void> => {
  const { instance, attempt, backend } = await context.store.read(async (session) => {
    const [row] = await instancesByIds(session, [lease.instance_id])
    const attempts = row ? await attemptsOf(session, [row.id]) : []
    return {
      instance: row,
      attempt: attempts.find((one) => one.id === row?.attempt_id),
      backend: await findBackend(session, lease.project, lease.backend),
    }
  })
  if (instance?.state === 'terminated') return context.store.write((tx) => nothingRetained(tx, lease))
  const identity = attempt ? identityOf(attempt) : null
  if (instance && identity && backend) {
    const config = JSON.parse(backend.config) as Record<string, unknown>
    await rearm(context, {
      provider: providerOf(context, instance.provider),
      identity,
      config,
      instanceId: instance.id,
      madeAt: instance.created_at,
      held,
      table: 'leases',
    })
  }
  if (!overdue) return
  await context.store.write(async (tx) => {
    const row = await leaseById(tx, lease.id)
    if (!row || row.release_deletes !== 0 || row.retained_at === null || row.retain_until === null) return
    const payload = { retainedAt: new Date(row.retained_at).toISOString(), retainUntil: new Date(row.retain_until).toISOString() }
    await reportFinding(tx, {
      code: 'retained-overdue',
      project: row.project,
      scope: instance?.scope ?? null,
      target: leaseTarget(row),
      message: `retained since ${payload.retainedAt}, past its reminder of ${payload.retainUntil}: "leasehold stop ${row.id}" removes it`,
      evidence: { lease: row.id, owner: row.owner, ...payload },
    })
    const dayOfReminder = Math.floor((tx.now - row.retain_until) / (retainSeconds * 1000))
    const firstHourOfDay = tx.now - row.retain_until - dayOfReminder * retainSeconds * 1000 < rearmEveryMs
    if (firstHourOfDay)
      await appendEvents(tx, [event(tx, 'retain.overdue', payload, { project: row.project, targets: [leaseTarget(row)] })])
  })
}

export const expirePipeline = (context: EngineContext): PipelineSpec => {
  const apply = coalesce((rows: Locked[]) => context.store.write(async (tx) => applyDue(tx, rows, await stillHeld(tx, 'leases', rows))), {
    largest: 100,
  })
  const wake = (outcomes: readonly Outcome[]): void => {
    const kinds = new Set(outcomes.map(({ decision, lease }) => lease && decision.kind))
    if (kinds.has('expire')) context.signals.wake('remove')
    if (kinds.has('expire-provisioning')) context.signals.wake('provision')
  }
  const goOn = async ({ decision, lease }: Outcome, held: Held): Promise<void> => {
    if (lease && decision.kind === 'retained') await retain(context, lease, decision.overdue, held)
  }
  return {
    name: 'expire',
    table: 'leases',
    capacity: 500,
    async take(tx, rows) {
      const outcomes = await applyDue(
        tx,
        rows,
        rows.map((row) => row.id),
      )
      return {
        committed: () => wake(outcomes),
        left: rows.flatMap((row, i) => {
          const outcome = outcomes[i] as Outcome
          return outcome.decision.kind === 'retained' ? [{ row, process: (held) => goOn(outcome, held) }] : []
        }),
      }
    },
    async process(held) {
      const outcome = await apply(held)
      wake([outcome])
      await goOn(outcome, held)
    },
  }
}
