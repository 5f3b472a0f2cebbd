/**
 * The schedule of sweeps: one row per backend. A row that is due is listed only if there is a reason to; what was found is written under the row's fence, in
 * one transaction with its events (orphans R35-R41, R76-R83).
 */
import { errorText } from '../../lib/redact.ts'
import { uuidv7Hex } from '../../lib/ids.ts'
import { mostApprovable } from '../../model/limits.ts'
import { afterSweep, nextDue, sweepOutcome, type Ended, type SweepFacts } from '../../model/sweep.ts'
import type { SweepMode } from '../../model/sweep-settings.ts'
import { reasonOf } from '../../model/verdict-reasons.ts'
import { unlocked, stillHeld } from '../../store/due.ts'
import { setBackendScope } from '../../store/backends.ts'
import { lockScope, rememberScope } from '../../store/scopes.ts'
import { finishSweep, insertSweep } from '../../store/sweeps.ts'
import type { Tx } from '../../store/store.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { EngineContext } from '../context.ts'
import type { Held, PipelineSpec } from '../pipeline.ts'
import { reportFinding, resolveAbout, systemActor } from '../record.ts'
import { certificateOf } from './certificate.ts'
import { noteDenied } from './denied.ts'
import { noteFindings, remindStanding, type Noted } from './findings.ts'
import { noteCircuit } from './circuit.ts'
import { readGate, type Gate } from './gate.ts'
import { noteGuard } from './guard.ts'
import { settleIdle } from './idle.ts'
import { loadSweep, type SweepWork } from './load.ts'
import { approvalOf, holdsMet, loadApproved, settleGranted, writePlan } from './approved.ts'
import { beginPlan, beginsNow, countsIn, eligibleOrphans, planSweep, type OrphanEntry, type Planned } from './plan.ts'
import { dropDrained, isDrained, nothingOpen } from './drain.ts'
import { inspect, type Inspected, type Inspection } from './run.ts'
import { deniedKindReadable } from './probe.ts'
import { isStopped, noteRewound } from './rewound.ts'
import { noteVanished } from './vanished.ts'
import { noteCells, type Watermarks } from './watermarks.ts'

const nothingFound = {
  verdicts: {},
  deletionsFailed: 0,
  deletionsInProgress: 0,
  inQuarantine: 0,
  awaitingApproval: 0,
  awaitingLimit: 0,
  changed: 0,
  newlyDenied: 0,
}

type Values = Partial<{
  clean_at: number | null
  clean_mode: string | null
  failures: number
  listed_at: number
  outcome: string
  let_pass: null
}>

/** Only a sweep with a listing can have used what a person let pass, and only what was there when it began. */
const giveBack = async (tx: Tx, work: SweepWork, given: Values, failures: number, circuitUntil: number | null): Promise<void> => {
  const row = await tx.db.selectFrom('cleanups').select(['requested_at', 'let_pass']).where('id', '=', work.cleanup.id).executeTakeFirst()
  const { let_pass: used, ...values } = given
  // A request that came while this sweep was under way is not answered by it: the row is due again at once.
  const again = row !== undefined && row.requested_at !== null && row.requested_at !== work.cleanup.requested_at
  const due = again ? tx.now : nextDue(tx.now, work.settings.intervalMs.value, failures, Math.random(), circuitUntil)
  await tx.db
    .updateTable('cleanups')
    .set({ ...values, ...(used === null && row?.let_pass === work.cleanup.let_pass ? { let_pass: null } : {}), ...unlocked(due) })
    .where('id', '=', work.cleanup.id)
    .execute()
}

interface Recorded {
  facts: SweepFacts
  plan: Planned | null
}

/** What an inspected sweep comes to. A dry run asks the same. */
export const factsOf = (
  inspected: Inspected,
  noted: readonly Noted[],
  decided: { eligible: number; plan: Planned | null; newlyDenied: number },
): SweepFacts => {
  const { plan } = decided
  const orphans = noted.filter((one) => one.judged.verdict.kind === 'orphan').length
  return {
    listing: 'listed',
    inventory: inspected.inventory,
    verdicts: inspected.verdicts,
    deletionsFailed: plan?.failing ?? 0,
    deletionsInProgress: (plan?.inProgress ?? 0) + (plan === null ? 0 : beginsNow(plan).length),
    inQuarantine: orphans - decided.eligible,
    awaitingApproval: plan?.decision.kind === 'wait' ? plan.decision.entries.length : 0,
    awaitingLimit: plan?.decision.kind === 'begin' ? plan.decision.later.length : 0,
    changed: noted.filter((one) => one.changed).length,
    newlyDenied: decided.newlyDenied,
    notSeen: inspected.vanished.filter((one) => !one.proved && one.absence !== null).length,
  }
}

export const factsWithout = (inspection: Exclude<Inspection, Inspected>): SweepFacts => ({
  ...nothingFound,
  listing: inspection.kind === 'stranded' ? 'stranded' : 'raised',
  inventory: null,
})

/** From the first listing on, another account behind the backend is noticed (orphans U16). */
const keepScope = async (tx: Tx, work: SweepWork, { scope, account }: Inspected): Promise<void> => {
  await rememberScope(tx, { name: scope as ScopeId, provider: work.backend.provider, description: account })
  await setBackendScope(tx, work.backend.project, work.backend.name, scope as ScopeId)
}

/** Plans, and begins what is approved or within the limits. */
const planOrphans = async (
  tx: Tx,
  work: SweepWork,
  inspected: Inspected,
  eligible: readonly OrphanEntry[],
  sweepId: string,
): Promise<Planned> => {
  const { scope, inventory, oursInScope } = inspected
  // Backends of one account share its limits: they plan one after the other.
  await lockScope(tx, scope)
  const approved = await loadApproved(tx, work)
  const counts = countsIn(work, inventory)
  const topology = work.provider.topology?.(work.config)
  const ground = { project: work.backend.project, scope, sweepId, inventory, topology }
  const plan = await planSweep(
    tx,
    { scope, ownerKind: work.provider.ownerKind, eligible, approved, counts, oursInScope, limits: work.limits },
    tx.now,
  )
  for (const one of plan.granted) {
    const approval = await approvalOf(tx, one.id)
    await beginPlan(tx, one.begin, { ...ground, plan: { id: one.id, size: one.begin.length, ...(approval ? { approval } : {}) } })
  }
  await settleGranted(tx, work, plan.granted, holdsMet(inspected.judged))
  const { decision } = plan
  if (decision.kind === 'begin')
    await beginPlan(tx, decision.entries, { ...ground, plan: { id: decision.id, size: decision.entries.length } })
  if (decision.kind === 'wait' && decision.entries.length <= mostApprovable)
    await writePlan(tx, work, { id: decision.id, scope, entries: decision.entries, oursInScope, why: decision.why, madeBy: systemActor })
  return plan
}

const noteInspected = async (tx: Tx, work: SweepWork, inspected: Inspected, sweepId: string): Promise<Recorded> => {
  if (work.backend.scope === null) await keepScope(tx, work, inspected)
  const noted = await noteFindings(
    tx,
    { sweepId, work, inventory: inspected.inventory, scope: inspected.scope },
    inspected.judged,
    inspected.listing.contradictions,
  )
  await noteVanished(tx, work, inspected.vanished)
  await noteGuard(tx, work, inspected)
  await noteRewound(tx, inspected)
  const newlyDenied = await noteDenied(tx, work, inspected)
  await resolveAbout(tx, 'backend', [`${work.backend.project}/${work.backend.name}`], 'scope-stranded')
  const eligible = eligibleOrphans(work, inspected.inventory, noted, tx.now)
  const plans = work.settings.mode.value === 'delete' && !(await isStopped(tx, inspected.scope))
  const plan = plans ? await planOrphans(tx, work, inspected, eligible, sweepId) : null
  const waiting = plan?.decision.kind === 'wait' ? plan.decision : null
  const planTarget = { type: 'backend', id: `${work.backend.project}/${work.backend.name}`, name: work.backend.name }
  if (waiting)
    await reportFinding(tx, {
      code: 'plan-waiting',
      project: work.backend.project,
      scope: inspected.scope,
      target: planTarget,
      message: `${waiting.why}: nothing was begun; ${waiting.whatToDo}`,
      evidence: { plan: waiting.id, targets: waiting.entries.map((entry) => entry.target) },
    })
  else await resolveAbout(tx, 'backend', [planTarget.id], 'plan-waiting')
  await remindStanding(tx, work)
  return {
    plan,
    facts: factsOf(inspected, noted, { eligible: eligible.length, plan, newlyDenied }),
  }
}

const noteStranded = (tx: Tx, work: SweepWork, stranded: Extract<Inspection, { kind: 'stranded' }>): Promise<void> =>
  reportFinding(tx, {
    code: 'scope-stranded',
    project: work.backend.project,
    scope: work.backend.scope,
    target: { type: 'backend', id: `${work.backend.project}/${work.backend.name}`, name: work.backend.name },
    message: `the credentials of backend ${work.backend.name} now reach ${stranded.reached}; ${stranded.openRefs.length} refs are still open in ${work.backend.scope ?? 'the old account'}, and nothing is judged`,
    evidence: { reached: stranded.reached, openRefs: stranded.openRefs },
  })

const apply = async (
  context: EngineContext,
  held: Held,
  work: SweepWork,
  inspection: Inspection,
  reasons: readonly string[],
): Promise<Ended | null> =>
  context.store.write(async (tx) => {
    // Who lost the lock writes nothing: no finding, no event, no watermark (orphans R83).
    if ((await stillHeld(tx, 'cleanups', [held])).size === 0) return null
    const mode: SweepMode = work.settings.mode.value
    const sweepId = `sw_${uuidv7Hex(tx.now)}`
    const { facts, plan } =
      inspection.kind === 'inspected' ? await noteInspected(tx, work, inspection, sweepId) : { facts: factsWithout(inspection), plan: null }
    if (inspection.kind === 'stranded') await noteStranded(tx, work, inspection)
    const ended = sweepOutcome(facts)
    const watermarks: Watermarks = inspection.kind === 'inspected' ? await noteCells(tx, work, inspection, ended) : new Map()
    const circuitUntil = await noteCircuit(tx, work, inspection)
    const certified =
      circuitUntil === null
        ? ended
        : { ...ended, why: [...ended.why, `the circuit of ${work.backend.scope} is open until ${new Date(circuitUntil).toISOString()}`] }
    const startedAt = inspection.kind === 'inspected' ? inspection.listing.startedAt : inspection.startedAt
    const before = {
      cleanAt: work.cleanup.clean_at,
      cleanMode: work.cleanup.clean_mode as SweepMode | null,
      failures: work.cleanup.failures,
    }
    const after = afterSweep(before, ended, startedAt, work.marginMs, mode)
    await insertSweep(tx, {
      id: sweepId,
      project: work.backend.project,
      backend: work.backend.name,
      scope: (inspection.kind === 'inspected' ? inspection.scope : null) as ScopeId | null,
      mode,
    })
    await finishSweep(
      tx,
      sweepId,
      ended.outcome,
      JSON.stringify(certificateOf(inspection, mode, reasons, plan, certified, tx.now, watermarks)),
    )
    const drained =
      inspection.kind === 'inspected' && ended.outcome === 'clean' && isDrained(work, inspection) && (await nothingOpen(tx, work))
    if (drained) await dropDrained(tx, work)
    else
      await giveBack(
        tx,
        work,
        {
          clean_at: after.cleanAt,
          clean_mode: after.cleanMode,
          failures: after.failures,
          listed_at: startedAt,
          outcome: ended.outcome,
          ...(inspection.kind === 'inspected' ? { let_pass: null } : {}),
        },
        after.failures,
        circuitUntil,
      )
    return ended
  })

const shut: Gate = { reasons: [], denied: false, circuitOpenUntil: null }

/** Only where nothing else opens the gate, and the account is not left alone, is asked for what was denied (orphans R102). */
const reasonsOf = async (context: EngineContext, work: SweepWork, gate: Gate, signal: AbortSignal): Promise<Gate['reasons']> => {
  if (gate.reasons.length > 0 || !gate.denied || gate.circuitOpenUntil !== null) return gate.reasons
  return (await deniedKindReadable(context, work, signal)) ? ['permission-appeared'] : []
}

/** orphans R53, R58, R87: an owner that is stuck, and an active one without provisioning data, are errors in the log, for as long as they stand. */
const logJudged = (context: EngineContext, work: SweepWork, { judged }: Inspected): void => {
  for (const { target, verdict, evidence } of judged)
    if (reasonOf(verdict.reason).level === 'error')
      context.log.error(
        { backend: work.cleanup.id, target, reason: verdict.reason, ref: evidence?.ref ?? null, owner: evidence?.ledger?.ownerId ?? null },
        reasonOf(verdict.reason).text,
      )
}

/** What can't be written down is a failed sweep like one that can't be listed: put off, not begun again at once (orphans R79). */
const applyOrFail = async (...given: Parameters<typeof apply>): Promise<Ended | null> => {
  const [context, held, work, inspection] = given
  try {
    return await apply(...given)
  } catch (error) {
    context.log.error({ backend: held.id, error: errorText(error) }, 'what a sweep found could not be written down')
    const failures = work.cleanup.failures + 1
    const listed = inspection.kind === 'inspected' ? inspection.listing.startedAt : inspection.startedAt
    await context.store.write(async (tx) => {
      if ((await stillHeld(tx, 'cleanups', [held])).size > 0)
        await giveBack(tx, work, { failures, listed_at: listed, outcome: 'failed' }, failures, null)
    })
    return null
  }
}

export const sweepPipeline = (context: EngineContext): PipelineSpec => ({
  name: 'sweep',
  table: 'cleanups',
  capacity: 8,
  patient: true,
  settle: (now) => settleIdle(context, now),
  async process(held) {
    const work = await loadSweep(context, held.id)
    if (!work)
      return context.store.write(async (tx) => {
        if ((await stillHeld(tx, 'cleanups', [held])).size > 0)
          await tx.db.updateTable('cleanups').set(unlocked(null)).where('id', '=', held.id).execute()
      })
    const now = await context.store.now()
    const gate = work.settings.mode.value === 'off' ? shut : await context.store.read((session) => readGate(session, work, now))
    const reasons = await reasonsOf(context, work, gate, held.signal)
    // A person who asks is answered also by an account that is left alone.
    const waits = gate.circuitOpenUntil !== null && !reasons.includes('requested')
    if (reasons.length === 0 || waits)
      return context.store.write(async (tx) => {
        if ((await stillHeld(tx, 'cleanups', [held])).size === 0) return
        if (reasons.length === 0) await giveBack(tx, work, {}, 0, null)
        else await tx.db.updateTable('cleanups').set(unlocked(gate.circuitOpenUntil)).where('id', '=', held.id).execute()
      })
    const { provider, scope } = work.backend
    if (scope !== null) await context.budgets.admit({ provider, scope }, 'read')
    const inspection = await inspect(context, work, held.signal)
    if (inspection.kind === 'raised') context.log.warn({ backend: held.id, error: inspection.error }, 'a sweep failed')
    const ended = await applyOrFail(context, held, work, inspection, reasons)
    if (ended !== null && inspection.kind === 'inspected') logJudged(context, work, inspection)
    context.log.info({ backend: held.id, outcome: ended?.outcome ?? 'lost its lock', why: ended?.why ?? [] }, 'sweep ended')
    context.signals.wake('remove')
    context.signals.changed(`sweep:${held.id}`)
  },
})
