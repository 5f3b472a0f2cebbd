/** Plans of removals: made on demand, looked through, and approved by their hash (I8, case C6). */
import { counted } from '../../lib/counted.ts'
import { sha256 } from '../../lib/sha256.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { mostApprovable, planId, type PlanEntry } from '../../model/limits.ts'
import { heldBy } from '../../model/removal.ts'
import type { PlanView } from '../../model/wire.ts'
import { appendEvents } from '../../store/events.ts'
import { listPlans as list, lockPlan, planById, plansByPrefix, type PlanRow } from '../../store/plans.ts'
import type { Session } from '../../store/store.ts'
import { requireApprover, requireFull, requireOperator, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { requireKnown } from '../known.ts'
import { event } from '../record.ts'
import { readObstacles } from '../../store/obstacles.ts'
import { droppedOf, entriesOf, planTargets, writePlan } from '../sweep/approved.ts'
import { dryRun } from '../sweep/dry-run.ts'
import { iso, isoOrNull } from '../views.ts'
import { eachBounded } from './bounded.ts'
import { auditOperator } from './operator-audit.ts'
import { askFor, backendsFor, workFor, type SweepInput } from './sweeps.ts'

const atOnce = 4
/** Of the id after `pl_`: fewer could name one that was not looked at. */
const shortestPrefix = 12

const view = (row: PlanRow): PlanView => ({
  id: row.id,
  project: row.project,
  backend: row.backend,
  provider: row.provider,
  scope: row.scope,
  state: row.state,
  why: row.why,
  removals: entriesOf(row),
  pending: JSON.parse(row.pending) as string[],
  dropped: droppedOf(row).map((one) => one.target),
  held: droppedOf(row).flatMap(({ target, by }) => (by === null ? [] : [{ target, by }])),
  oursInScope: row.ours,
  madeBy: row.made_by,
  madeAt: iso(row.made_at),
  seenAt: iso(row.seen_at),
  approvedBy: row.approved_by,
  approvedAt: isoOrNull(row.approved_at),
  approvalReason: row.approval_reason,
  settledAt: isoOrNull(row.settled_at),
})

const notFound = (key: string): LeaseholdError =>
  new LeaseholdError('not_found', `no plan "${key}" is visible to this token; "leasehold plans" lists them`)

/** By its whole id, or by what it begins with where that names one only. */
const resolvePlan = async (session: Session, actor: Actor, key: string): Promise<PlanRow> => {
  const hash = key.startsWith('pl_') ? key.slice(3) : key
  if (!/^[0-9a-f]{1,64}$/.test(hash)) throw notFound(key)
  if (hash.length < shortestPrefix)
    throw new LeaseholdError('bad_request', `"${key}" is too short: give at least ${shortestPrefix} characters of the plan's hash`)
  const rows = (await plansByPrefix(session, `pl_${hash}`, 3)).filter((row) => seesProject(actor, row.project))
  if (rows.length > 1) throw new LeaseholdError('bad_request', `"${key}" is the beginning of several plans: give more of the hash`)
  const [row] = rows
  if (!row) throw notFound(key)
  return row
}

/**
 * What could be taken back now, written down as plans that wait, with the proof of each removal; nothing is begun, whatever mode and limits say.
 * @returns one per backend that has something to take back
 * @throws LeaseholdError forbidden, not_found, sweep_disabled; whatever ended the signal
 */
export const makePlans = async (context: EngineContext, actor: Actor, input: SweepInput, signal: AbortSignal): Promise<PlanView[]> => {
  requireOperator(actor)
  const made = await eachBounded(await backendsFor(context, actor, input), atOnce, async (backend) => {
    const work = workFor(context, backend)
    const { eligible, certificate } = await dryRun(context, work, signal)
    if (eligible === null)
      throw new LeaseholdError(
        'sweep_disabled',
        `backend "${backend.name}" could not be listed: ${certificate.error ?? certificate.why.join('; ')}`,
      )
    if (eligible.entries.length === 0) return null
    if (eligible.entries.length > mostApprovable)
      throw new LeaseholdError(
        'bad_request',
        `backend "${backend.name}": ${eligible.entries.length} groups could be taken back, and a plan is of ${mostApprovable} at most: nobody can look through more`,
      )
    const id = planId(eligible.entries satisfies readonly PlanEntry[], sha256)
    return context.store.write(async (tx) => {
      await writePlan(tx, work, { ...eligible, id, why: null, madeBy: actor.name })
      return planById(tx, id)
    })
  })
  return made.flatMap((row) => (row ? [view(row)] : []))
}

export const listPlans = async (
  context: EngineContext,
  actor: Actor,
  input: { project?: string; backend?: string; state?: PlanRow['state']; limit: number },
): Promise<PlanView[]> => {
  requireFull(actor)
  const rows = await context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, input)
    return list(session, { project, backend: input.backend ?? null, state: input.state ?? null, limit: input.limit })
  })
  return rows.map(view)
}

/** @throws LeaseholdError not_found, bad_request for too little of a hash */
export const getPlan = async (context: EngineContext, actor: Actor, key: string): Promise<PlanView> => {
  requireFull(actor)
  return view(await context.store.read((session) => resolvePlan(session, actor, key)))
}

/** Why it may not be approved so; null: it may. */
const obstacle = (context: EngineContext, actor: Actor, row: PlanRow): string | null => {
  if (row.state !== 'waiting') return `it is ${row.state}${row.approved_by === null ? '' : `, approved by ${row.approved_by}`}`
  if (context.fourEyes && row.made_by === actor.name) return `${actor.name} made it, and fourEyes bars approving one's own plan`
  const mode = context.sweepSettings(row.provider).mode
  if (mode.value !== 'delete')
    return `sweeps of "${row.provider}" are in mode ${mode.value} (${mode.origin}): nothing found is taken back, approved or not`
  return null
}

/** What keeps it from taking anything back for now, though it is approved: a freeze, a stop, or holds. Null: nothing. */
const stoppedText = async (context: EngineContext, row: PlanRow): Promise<string | null> => {
  const now = await context.store.now()
  const { holds, frozenScopes } = await context.store.read((session) => readObstacles(session, now))
  const by = entriesOf(row).flatMap(({ target }) => {
    const about = { resourceKeys: [target], instanceId: '', leaseId: null, project: row.project, scope: row.scope }
    const stop = heldBy(about, holds, frozenScopes)
    return stop === null ? [] : [{ target, stop }]
  })
  if (by.length === 0) return null
  const which = [...new Set(by.map((one) => one.stop))].join(', ')
  return `${by.length} of ${counted(entriesOf(row).length, 'removal')} can not go on for now: stopped by ${which}`
}

/**
 * Begins exactly what the plan names at the next sweep, which is asked for at once; what changed since is dropped from it.
 * @throws LeaseholdError forbidden, not_found, bad_request, plan_not_waiting
 */
export const approvePlan = async (context: EngineContext, actor: Actor, key: string, reason: string): Promise<PlanView> => {
  requireApprover(actor)
  if (reason.trim() === '') throw new LeaseholdError('bad_request', 'reason: say why, for those who ask what was deleted afterwards')
  const { id } = await context.store.read((session) => resolvePlan(session, actor, key))
  const approved = await context.store.write(async (tx) => {
    const row = await lockPlan(tx, id)
    if (!row) throw notFound(key)
    const why = obstacle(context, actor, row)
    if (why !== null) throw new LeaseholdError('plan_not_waiting', `plan ${id}: ${why}`)
    await tx.db
      .updateTable('plans')
      .set({ state: 'approved', approved_by: actor.name, approved_at: tx.now, approval_reason: reason })
      .where('id', '=', id)
      .execute()
    const removals = entriesOf(row)
    const payload = { removals: removals.length, reason }
    await appendEvents(tx, [event(tx, 'plan.approved', payload, { project: row.project, actor: actor.name, targets: planTargets(row) })])
    await auditOperator(
      tx,
      actor,
      { project: row.project, scope: row.scope },
      {
        action: 'approve-plan',
        plan: id,
        backend: row.backend,
        madeBy: row.made_by,
        reason,
        removals: removals.map(({ target, rule, fingerprint, ref }) => ({ target, rule, fingerprint, ref })),
      },
    )
    await askFor(tx, [{ project: row.project, name: row.backend }])
    return (await planById(tx, id)) as PlanRow
  })
  context.signals.wake('sweep')
  const warning = await stoppedText(context, approved)
  return { ...view(approved), ...(warning === null ? {} : { warning }) }
}
