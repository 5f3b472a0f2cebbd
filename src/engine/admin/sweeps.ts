/** Sweeps on demand and their certificates: asked for, tried dry, read (orphans R28, R76-R79). */
import { LeaseholdError } from '../../model/errors.ts'
import type { SweepOrphanView, SweepView } from '../../model/wire.ts'
import { listBackends, type BackendRow } from '../../store/backends.ts'
import { enrol } from '../../store/cleanups.ts'
import { wakeRow } from '../../store/due.ts'
import { listFindings } from '../../store/findings.ts'
import { listSweeps as list, sweepById, type SweepRow } from '../../store/sweeps.ts'
import type { Session, Tx } from '../../store/store.ts'
import { projectFor, requireFull, requireOperator, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { refuseBackend, requireKnown } from '../known.ts'
import { standingOf, subjectsOf } from '../explain/judged.ts'
import { dryRun } from '../sweep/dry-run.ts'
import { unenrolledWork, type SweepWork } from '../sweep/load.ts'
import { eachBounded } from './bounded.ts'
import { certificateOfRow, certificateView, orphanView, pendingView, sweepRowView } from './sweep-views.ts'

const pollMs = 500
const dryRunsAtOnce = 4
/** More are not told of one sweep; `leasehold orphans` lists them. */
const mostOrphans = 200

export interface SweepInput {
  project?: string
  /** Missing: every backend of the project that can be swept. */
  backend?: string
}

const idOf = (backend: BackendRow): string => `${backend.project}/${backend.name}`
const aboutOf = (backend: BackendRow) => ({ project: backend.project, backend: backend.name, provider: backend.provider })

/** Why it can't be swept; null: it can. */
const obstacleOf = (context: EngineContext, backend: BackendRow): string | null => {
  const provider = context.providers.get(backend.provider)
  if (!provider) return `backend "${backend.name}": this coordinator has no provider "${backend.provider}"`
  if (!provider.list) return `backend "${backend.name}": provider "${backend.provider}" can not list, so nothing is ever found there`
  const { mode } = context.sweepSettings(backend.provider)
  return mode.value === 'off' ? `backend "${backend.name}": sweeps of "${backend.provider}" are off (${mode.origin})` : null
}

/**
 * The backends that are meant, also those that drain (orphans U7).
 * @throws LeaseholdError bad_request for one that is not there, not_found where there is none; sweep_disabled when the one that is named, or every one, can't be swept
 */
export const backendsFor = async (context: EngineContext, actor: Actor, input: SweepInput): Promise<BackendRow[]> => {
  const project = projectFor(actor, input.project)
  const backends = await context.store.read(async (session) => {
    // What is deleted is still swept, until it has drained.
    await requireKnown(context, session, actor, { project })
    const all = await listBackends(session, project)
    if (input.backend === undefined) return all
    const named = all.filter((one) => one.name === input.backend)
    return named.length > 0 ? named : refuseBackend(project, input.backend, all)
  })
  if (backends.length === 0) throw new LeaseholdError('not_found', `project "${project}" has no backend; "leasehold backend add" makes one`)
  const able = backends.filter((one) => obstacleOf(context, one) === null)
  if (able.length === 0)
    throw new LeaseholdError(
      'sweep_disabled',
      `${backends.map((one) => obstacleOf(context, one)).join('; ')}; "leasehold config" shows the settings`,
    )
  return able
}

/** Every backend is due at once, unless a sweep of it is under way: then again right after that one. @returns when it was asked for */
export const askFor = async (tx: Tx, backends: readonly Pick<BackendRow, 'project' | 'name'>[]): Promise<number> => {
  for (const { project, name } of backends) {
    await enrol(tx, project, name, tx.now)
    await tx.db.updateTable('cleanups').set({ requested_at: tx.now }).where('id', '=', `${project}/${name}`).execute()
    await wakeRow(tx, 'cleanups', `${project}/${name}`)
  }
  return tx.now
}

const orphansOf = (context: EngineContext, backend: BackendRow, now: number): Promise<SweepOrphanView[]> =>
  context.store.read(async (session) => {
    const filter = { project: backend.project, state: 'open', codes: ['orphan'], backend: backend.name, limit: mostOrphans } as const
    const subjects = await subjectsOf(session, await listFindings(session, filter))
    return (await standingOf(session, context, subjects, now)).map((one) => orphanView(one, now))
  })

/** A listing that began before the request does not answer it. */
const sweptSince = async (session: Session, backend: BackendRow, since: number): Promise<SweepRow | null> => {
  const [row] = await list(session, { project: backend.project, backend: backend.name, limit: 1 })
  return row && (certificateOfRow(row)?.startedAt ?? 0) >= since ? row : null
}

const answerOf = async (
  context: EngineContext,
  backend: BackendRow,
  since: number,
  end: number,
  signal: AbortSignal,
): Promise<SweepView> => {
  for (;;) {
    const left = end - performance.now()
    // Listen before looking: a sweep that ends between the two is not missed.
    const change = left > 0 && !signal.aborted ? context.signals.nextChange(`sweep:${idOf(backend)}`, Math.min(pollMs, left)) : null
    const row = await context.store.read((session) => sweptSince(session, backend, since))
    if (row) return sweepRowView(row, backend.provider, await orphansOf(context, backend, await context.store.now()))
    if (change === null) return pendingView(aboutOf(backend), context.sweepSettings(backend.provider).mode.value)
    await change
  }
}

/**
 * Asks for a sweep of each backend, whatever its gate says, and waits for its certificate, `waitMs` at most.
 * @returns one view per backend; `pending` where the sweep has not ended in time: it goes on
 * @throws LeaseholdError forbidden, not_found, sweep_disabled
 */
export const requestSweep = async (
  context: EngineContext,
  actor: Actor,
  input: SweepInput,
  waitMs: number,
  signal: AbortSignal,
): Promise<SweepView[]> => {
  requireOperator(actor)
  const backends = await backendsFor(context, actor, input)
  const end = performance.now() + waitMs
  const since = await context.store.write((tx) => askFor(tx, backends))
  context.signals.wake('sweep')
  return Promise.all(backends.map((backend) => answerOf(context, backend, since, end, signal)))
}

/** @throws LeaseholdError sweep_disabled */
export const workFor = (context: EngineContext, backend: BackendRow): SweepWork => {
  const work = unenrolledWork(context, backend)
  if (!work) throw new LeaseholdError('sweep_disabled', obstacleOf(context, backend) ?? `backend "${backend.name}" can not be listed`)
  return work
}

const tryOne = async (context: EngineContext, backend: BackendRow, signal: AbortSignal): Promise<SweepView> => {
  const work = workFor(context, backend)
  const { certificate, orphans } = await dryRun(context, work, signal)
  const now = await context.store.now()
  const standing = await context.store.read((session) =>
    standingOf(
      session,
      context,
      orphans.slice(0, mostOrphans).map(({ judged, quarantine }) => ({
        verdict: judged.verdict,
        judgedAt: now,
        target: judged.target,
        name: judged.group.members[0]?.name ?? judged.target,
        findingId: null,
        attemptId: (judged.verdict.kind === 'orphan' ? judged.verdict.proofs[0]?.attemptId : undefined) ?? null,
        project: backend.project,
        scope: certificate.scope,
        quarantine,
        plan: certificate.plan,
      })),
      now,
    ),
  )
  return certificateView(
    aboutOf(backend),
    certificate,
    null,
    standing.map((one) => orphanView(one, now)),
  )
}

/**
 * What a sweep would find and do now. Writes nothing, and calls the provider for scope, list and read only. In report mode the plan is the one of delete mode.
 * @throws LeaseholdError forbidden, not_found, sweep_disabled; whatever ended the signal
 */
export const dryRunSweep = async (context: EngineContext, actor: Actor, input: SweepInput, signal: AbortSignal): Promise<SweepView[]> => {
  requireOperator(actor)
  return eachBounded(await backendsFor(context, actor, input), dryRunsAtOnce, (backend) => tryOne(context, backend, signal))
}

const providersOf = async (session: Session, rows: readonly SweepRow[]): Promise<(row: SweepRow) => string | null> => {
  const projects = [...new Set(rows.map((row) => row.project))]
  const backends = (await Promise.all(projects.map((project) => listBackends(session, project)))).flat()
  const known = new Map(backends.map((row) => [idOf(row), row.provider]))
  return (row) => known.get(`${row.project}/${row.backend}`) ?? null
}

/** The certificates, newest first. */
export const listSweeps = async (
  context: EngineContext,
  actor: Actor,
  input: { project?: string; backend?: string; limit: number },
): Promise<SweepView[]> => {
  requireFull(actor)
  return context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, input)
    const rows = await list(session, { project, backend: input.backend ?? null, limit: input.limit })
    const providerOf = await providersOf(session, rows)
    return rows.map((row) => sweepRowView(row, providerOf(row)))
  })
}

/** @throws LeaseholdError not_found, also for one of another project */
export const getSweep = async (context: EngineContext, actor: Actor, id: string): Promise<SweepView> => {
  requireFull(actor)
  return context.store.read(async (session) => {
    const row = await sweepById(session, id)
    if (!row || !seesProject(actor, row.project))
      throw new LeaseholdError('not_found', `no sweep "${id}" is visible to this token; "leasehold sweeps" lists those that are`)
    return sweepRowView(row, (await providersOf(session, [row]))(row))
  })
}
