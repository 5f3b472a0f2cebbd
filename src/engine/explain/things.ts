/** What is neither a resource nor its owner, explained: sweeps, holds, events, backends. */
import { counted } from '../../lib/counted.ts'
import { briefDuration } from '../../lib/duration.ts'
import type { ExplanationNode } from '../../model/explain.ts'
import { verdictReasons } from '../../model/verdict-reasons.ts'
import { findBackend, type BackendRow } from '../../store/backends.ts'
import { circuitOpenUntil, circuitText } from '../../model/sweep.ts'
import { cellsOf } from '../../store/cells.ts'
import { circuitOf } from '../../store/circuits.ts'
import type { HoldRow } from '../../store/holds.ts'
import { listSweeps, type SweepRow } from '../../store/sweeps.ts'
import type { Session } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import type { Certificate } from '../sweep/certificate.ts'
import { isoOrNull } from '../views.ts'
import { findingNode, freezeNode, holdNode } from './owner-tree.ts'
import { conclusionNode, node, stamp, type Told } from './told.ts'

const outcomes: Record<string, string> = {
  clean: 'Everything was listed, and everything found is dealt with or reported.',
  unsettled: 'Something must be looked at again soon.',
  failed: 'It failed, and is tried again with growing delay.',
}

const textOfReason = (code: string): string =>
  Object.hasOwn(verdictReasons, code) ? verdictReasons[code as keyof typeof verdictReasons].text : ''

const planNode = (plan: NonNullable<Certificate['plan']>, at: number): ExplanationNode =>
  node(
    'plan',
    at,
    plan.kind === 'wait'
      ? `plan ${plan.id} of ${counted(plan.waiting, 'removal')} is beyond the limits and waits: ${plan.why}`
      : `plan ${plan.id} began ${counted(plan.removals.length, 'removal')}${plan.why === null ? '' : `; ${plan.why}`}`,
    [...plan.removals.map((target) => node('plan', at, target)), plan.whatToDo == null ? null : node('plan', at, plan.whatToDo)],
  )

const certificateNodes = (certificate: Certificate): ExplanationNode[] => {
  const at = certificate.endedAt
  const { counts } = certificate
  const nodes = [
    node('gate', certificate.startedAt, `it listed because of: ${certificate.reasons.join(', ') || 'nothing'}`),
    node('mode', certificate.startedAt, `the mode was ${certificate.mode}`),
    certificate.error === null ? null : node('listing', at, `error: ${certificate.error}`),
    certificate.cells.length === 0
      ? null
      : node(
          'coverage',
          at,
          `${counted(counts.listed, 'resource')} listed; guard on counts: ${certificate.guard}`,
          certificate.cells.map((cell) =>
            node(
              'coverage',
              at,
              `${cell.location}, ${cell.kind}: ${cell.state}${cell.why === null ? '' : ` (${cell.why})`}, ${counted(cell.resources, 'resource')}, ${counted(cell.pages, 'page')}`,
            ),
          ),
        ),
    node(
      'ledger',
      at,
      `of ${counted(counts.expected, 'box', 'boxes')} that the ledger expects there ${counts.seen} ${counts.seen === 1 ? 'was' : 'were'} seen; of ours there ${counts.oursInScope === 1 ? 'is' : 'are'} ${counted(counts.oursInScope, 'group')} in the account`,
    ),
    ...Object.entries(certificate.verdicts).map(([reason, count]) => node('verdict', at, `${count} × ${reason}: ${textOfReason(reason)}`)),
    certificate.plan === null ? null : planNode(certificate.plan, at),
  ]
  return nodes.filter((one) => one !== null)
}

const cleanupOf = (session: Session, project: string, backend: string) =>
  session.db.selectFrom('cleanups').selectAll().where('id', '=', `${project}/${backend}`).executeTakeFirst()

/** @param leftAloneUntil the end of its account's circuit: a row that is due earlier waits for it */
const nextSweep = async (session: Session, project: string, backend: string, leftAloneUntil: number | null): Promise<string> => {
  const row = await cleanupOf(session, project, backend)
  if (!row || row.due_at === null) return 'a new sweep of its backend: leasehold sweep'
  return row.lock_owner === null
    ? `the next sweep of its backend, due at ${stamp(Math.max(row.due_at, leftAloneUntil ?? 0))}, or leasehold sweep`
    : 'the sweep of its backend that is under way'
}

const leftAloneUntil = async (session: Session, project: string, name: string, now: number): Promise<number | null> => {
  const backend = await findBackend(session, project, name)
  const circuit = backend?.scope == null ? undefined : await circuitOf(session, backend.provider, backend.scope)
  return circuitOpenUntil(circuit && { openUntil: circuit.open_until }, now)
}

export const explainSweep = async (session: Session, row: SweepRow, now: number): Promise<Told> => {
  const certificate = row.certificate === null ? null : (JSON.parse(row.certificate) as Certificate)
  const verdict = row.outcome ?? 'inFlight'
  const at = row.finished_at ?? row.started_at
  return {
    type: 'sweep',
    project: row.project,
    subject: `sweep ${row.id} of backend ${row.project}/${row.backend}`,
    verdict,
    reason: null,
    tree: conclusionNode(
      { verdict, reason: null, text: outcomes[verdict] ?? 'It is under way.' },
      at,
      certificate === null ? [] : certificateNodes(certificate),
    ),
    heldBack: (certificate?.why ?? []).map((what) => ({ what, until: null })),
    change: `nothing changes a certificate; ${await nextSweep(session, row.project, row.backend, await leftAloneUntil(session, row.project, row.backend, now))} makes another`,
  }
}

export const explainHold = (row: HoldRow, now: number): Told => {
  const over = row.removed_at !== null ? row.removed_at : row.until_at !== null && row.until_at <= now ? row.until_at : null
  const verdict = over === null ? 'held' : 'ended'
  const text = over === null ? `${row.target_type} ${row.target_id} is not taken back while it stands.` : 'It holds nothing any more.'
  return {
    type: 'hold',
    project: row.project,
    subject: `hold ${row.id} on ${row.target_type} ${row.target_id}`,
    verdict,
    reason: null,
    tree: conclusionNode({ verdict, reason: null, text }, over ?? now, [
      holdNode(row),
      row.removed_at === null ? null : node('hold', row.removed_at, `${row.removed_by ?? 'somebody'} removed it`),
    ]),
    heldBack: [],
    change:
      over === null
        ? `${row.until_at === null ? '' : `its end at ${stamp(row.until_at)}, or `}leasehold hold remove ${row.id}`
        : 'nothing: a new hold is another one',
  }
}

export interface EventFacts {
  id: string
  at: number
  code: string
  project: string | null
  actor: string
  message: string
  targets: readonly { type: string; id: string; name: string }[]
}

export const explainEvent = (event: EventFacts): Told => ({
  type: 'event',
  project: event.project,
  subject: `event ${event.id}`,
  verdict: 'ended',
  reason: null,
  tree: conclusionNode({ verdict: 'ended', reason: null, text: 'It has happened.' }, event.at, [
    node(
      'event',
      event.at,
      `${event.code}, by ${event.actor}: ${event.message}`,
      event.targets.map((target) => node('event', event.at, `about ${target.type} ${target.id} (${target.name})`)),
    ),
  ]),
  heldBack: [],
  change: 'nothing: what has happened has happened; explain what it is about to see how that stands now',
})

/** Why a backend is, or is not, swept. */
export const explainBackend = async (session: Session, context: EngineContext, row: BackendRow, now: number): Promise<Told> => {
  const id = `${row.project}/${row.name}`
  const settings = context.sweepSettings(row.provider)
  const cleanup = await cleanupOf(session, row.project, row.name)
  const [newest] = await listSweeps(session, { project: row.project, backend: row.name, limit: 1 })
  const findings = await session.db
    .selectFrom('findings')
    .selectAll()
    .where('project', '=', row.project)
    .where('target_type', '=', 'backend')
    .where('target_id', '=', id)
    .where('state', '=', 'open')
    .execute()
  const freezes = await session.db
    .selectFrom('freezes')
    .selectAll()
    .where('scope', 'in', ['*', row.scope ?? '*'])
    .execute()
  const cells = row.scope === null ? [] : await cellsOf(session, { project: row.project, backend: row.name, scope: row.scope })
  const circuit = row.scope === null ? undefined : await circuitOf(session, row.provider, row.scope)
  const openUntil = circuitOpenUntil(circuit && { openUntil: circuit.open_until }, now)
  const draining = row.deleted_at !== null
  const verdict = draining ? 'ended' : 'tracked'
  const text = draining
    ? 'It is deleted and drains: it is swept until nothing of ours is left there.'
    : `A backend of ${row.provider}, account ${row.scope ?? 'not read yet'}.`
  return {
    type: 'backend',
    project: row.project,
    subject: `backend ${id}`,
    verdict,
    reason: null,
    tree: conclusionNode({ verdict, reason: null, text }, row.deleted_at ?? row.created_at, [
      node('mode', now, `the mode of its sweeps is ${settings.mode.value} (${settings.mode.origin})`),
      node(
        'mode',
        now,
        `they come every ${briefDuration(settings.intervalMs.value)} (${settings.intervalMs.origin}); grace is ${briefDuration(settings.graceMs.value)} (${settings.graceMs.origin})`,
      ),
      cleanup
        ? node('cleanup', cleanup.enrolled_at, 'it was enrolled for sweeps')
        : node('cleanup', now, 'it is not enrolled for sweeps yet'),
      cleanup?.clean_at == null ? null : node('cleanup', cleanup.clean_at, 'up to then everything was provably seen'),
      cleanup?.listed_at == null
        ? null
        : node('cleanup', cleanup.listed_at, `the newest listing began; it ended ${cleanup.outcome ?? 'without an outcome'}`),
      ...cells.map((cell) =>
        node(
          'coverage',
          cell.listed_at,
          `${cell.location}, ${cell.kind}: ${cell.state}${cell.why === null ? '' : ` (${cell.why})`} at the newest listing; ${cell.clean_at === null ? 'never yet provably seen' : `provably seen up to ${stamp(cell.clean_at)}`}`,
        ),
      ),
      circuit === undefined
        ? null
        : node('circuit', circuit.failed_at, `its account: ${circuitText({ ...circuit, openUntil: isoOrNull(openUntil) })}`),
      newest ? node('sweep', newest.finished_at ?? newest.started_at, `its newest sweep is ${newest.id}`) : null,
      ...findings.map(findingNode),
      ...freezes.map(freezeNode),
    ]),
    heldBack:
      openUntil === null
        ? []
        : [{ what: `the circuit of account ${row.scope}: no sweep of it begins by itself until then`, until: openUntil }],
    change: await nextSweep(session, row.project, row.name, openUntil),
  }
}
