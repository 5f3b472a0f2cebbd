/**
 * The schedule of sweeps: one row per backend. A row that is due is listed only if there is a reason to; what was found is written under the row's fence, in
 * one transaction with its events (orphans R35-R41, R76-R83).
 */
import { uuidv7Hex } from '../../lib/ids.ts'
import { cellsNot } from '../../model/inventory.ts'
import { afterSweep, nextDue, sweepOutcome, type Ended, type SweepFacts } from '../../model/sweep.ts'
import type { SweepMode } from '../../model/sweep-settings.ts'
import { unlocked, stillHeld } from '../../store/due.ts'
import { finishSweep, insertSweep } from '../../store/sweeps.ts'
import type { Tx } from '../../store/store.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { EngineContext } from '../context.ts'
import type { Held, PipelineSpec } from '../pipeline.ts'
import { reportFinding, resolveAbout } from '../record.ts'
import { certificateOf } from './certificate.ts'
import { noteFindings } from './findings.ts'
import { gateReasons } from './gate.ts'
import { loadSweep, type SweepWork } from './load.ts'
import { beginPlan, eligibleOrphans, planSweep, type Planned } from './plan.ts'
import { inspect, isDrained, type Inspected, type Inspection } from './run.ts'
import { noteVanished } from './vanished.ts'

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

const giveBack = (
  tx: Tx,
  work: SweepWork,
  values: Partial<{ clean_at: number | null; clean_mode: string | null; failures: number; listed_at: number; outcome: string }>,
  failures: number,
) =>
  tx.db
    .updateTable('cleanups')
    .set({ ...values, ...unlocked(nextDue(tx.now, work.settings.intervalMs.value, failures, Math.random())) })
    .where('id', '=', work.cleanup.id)
    .execute()

/** Denied kinds are findings of their own: reported once, and over when they can be listed again (orphans R102). */
const noteDenied = async (tx: Tx, work: SweepWork, inspected: Inspected): Promise<number> => {
  const { name, project, provider } = work.backend
  const open = await tx.db
    .selectFrom('findings')
    .select('target_id')
    .where('code', '=', 'denied-kind')
    .where('state', '=', 'open')
    .where('project', '=', project)
    .where('backend', '=', name)
    .execute()
  const known = new Set(open.map((row) => row.target_id))
  const denied = cellsNot(inspected.inventory, 'complete').flatMap((cell) =>
    cell.state.kind === 'denied' ? [{ cell, permission: cell.state.permission }] : [],
  )
  const keyOf = (location: string, kind: string): string => `${provider}/${location}/${kind}`
  for (const { cell, permission } of denied) {
    const key = keyOf(cell.location, cell.kind)
    await reportFinding(tx, {
      code: 'denied-kind',
      project,
      scope: inspected.scope,
      target: { type: 'kind', id: key, name: key },
      message: `${cell.kind} in ${cell.location} may not be listed: ${permission}`,
      evidence: { permission },
      sweep: {
        backend: name,
        ref: null,
        attempt_id: null,
        standing_since: null,
        complete_sightings: 0,
        last_complete_at: null,
        sweep_id: null,
      },
    })
  }
  const now = new Set(denied.map(({ cell }) => keyOf(cell.location, cell.kind)))
  await resolveAbout(
    tx,
    'kind',
    [...known].filter((key) => !now.has(key)),
    'denied-kind',
  )
  return [...now].filter((key) => !known.has(key)).length
}

interface Noted {
  facts: SweepFacts
  plan: Planned | null
}

const noteInspected = async (tx: Tx, work: SweepWork, inspected: Inspected, sweepId: string): Promise<Noted> => {
  const noted = await noteFindings(tx, { sweepId, work, inventory: inspected.inventory, scope: inspected.scope }, inspected.judged)
  await noteVanished(tx, work, inspected.vanished)
  const newlyDenied = await noteDenied(tx, work, inspected)
  await resolveAbout(tx, 'backend', [`${work.backend.project}/${work.backend.name}`], 'scope-stranded')
  const orphans = noted.filter((one) => one.judged.verdict.kind === 'orphan')
  const eligible = eligibleOrphans(work, noted, tx.now)
  const plan = work.settings.mode.value === 'delete' ? await planSweep(tx, inspected.scope, eligible, inspected.oursInScope, tx.now) : null
  const begun = plan?.decision.kind === 'begin' ? plan.decision.entries : []
  await beginPlan(tx, begun)
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
  return {
    plan,
    facts: {
      listing: 'listed',
      inventory: inspected.inventory,
      verdicts: inspected.verdicts,
      deletionsFailed: plan?.failing ?? 0,
      deletionsInProgress: (plan?.inProgress ?? 0) + begun.length,
      inQuarantine: orphans.length - eligible.length,
      awaitingApproval: waiting?.entries.length ?? 0,
      awaitingLimit: plan?.decision.kind === 'begin' ? plan.decision.later.length : 0,
      changed: noted.filter((one) => one.changed).length,
      newlyDenied,
      notSeen: inspected.vanished.filter((one) => !one.proved && one.absence !== null).length,
    },
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

/** A drained backend's row and secrets go, and with them its schedule. */
const dropDrained = async (tx: Tx, work: SweepWork): Promise<void> => {
  await tx.db.deleteFrom('cleanups').where('id', '=', work.cleanup.id).execute()
  await tx.db.deleteFrom('backends').where('project', '=', work.backend.project).where('name', '=', work.backend.name).execute()
}

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
    let facts: SweepFacts = { ...nothingFound, listing: inspection.kind === 'stranded' ? 'stranded' : 'raised', inventory: null }
    let plan: Planned | null = null
    if (inspection.kind === 'inspected') ({ facts, plan } = await noteInspected(tx, work, inspection, sweepId))
    if (inspection.kind === 'stranded') await noteStranded(tx, work, inspection)
    const ended = sweepOutcome(facts)
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
      JSON.stringify(certificateOf(inspection, mode, reasons, plan?.decision ?? null, ended, tx.now)),
    )
    if (inspection.kind === 'inspected' && ended.outcome === 'clean' && isDrained(work, inspection)) await dropDrained(tx, work)
    else
      await giveBack(
        tx,
        work,
        { clean_at: after.cleanAt, clean_mode: after.cleanMode, failures: after.failures, listed_at: startedAt, outcome: ended.outcome },
        after.failures,
      )
    return ended
  })

export const sweepPipeline = (context: EngineContext): PipelineSpec => ({
  name: 'sweep',
  table: 'cleanups',
  capacity: 8,
  async process(held) {
    const work = await loadSweep(context, held.id)
    if (!work)
      return context.store.write(async (tx) => {
        if ((await stillHeld(tx, 'cleanups', [held])).size > 0)
          await tx.db.updateTable('cleanups').set(unlocked(null)).where('id', '=', held.id).execute()
      })
    const now = await context.store.now()
    const reasons = work.settings.mode.value === 'off' ? [] : await context.store.read((session) => gateReasons(session, work, now))
    if (reasons.length === 0)
      return context.store.write(async (tx) => {
        if ((await stillHeld(tx, 'cleanups', [held])).size > 0) await giveBack(tx, work, {}, 0)
      })
    const inspection = await inspect(context, work, held.signal)
    if (inspection.kind === 'raised') context.log.warn({ backend: held.id, error: inspection.error }, 'a sweep failed')
    const ended = await apply(context, held, work, inspection, reasons)
    context.log.info({ backend: held.id, outcome: ended?.outcome ?? 'lost its lock', why: ended?.why ?? [] }, 'sweep ended')
    context.signals.wake('remove')
    context.signals.changed(`sweep:${held.id}`)
  },
})
