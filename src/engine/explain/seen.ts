/** Which sweeps have seen something, what they could not see, and under which settings a sweep acts. */
import { briefDuration } from '../../lib/duration.ts'
import type { ExplanationNode } from '../../model/explain.ts'
import { marginMs, type SweepSettings } from '../../model/sweep-settings.ts'
import type { FindingRow } from '../../store/findings.ts'
import type { Session } from '../../store/store.ts'
import { listSweeps, sweepById, type SweepRow } from '../../store/sweeps.ts'
import type { EngineContext } from '../context.ts'
import type { Certificate } from '../sweep/certificate.ts'
import type { Owner } from './owner.ts'
import { node } from './told.ts'

const certificateOf = (row: SweepRow | undefined): Certificate | null =>
  row === undefined || row.certificate === null ? null : (JSON.parse(row.certificate) as Certificate)

const newestOf = async (session: Session, project: string | null, backend: string | null): Promise<SweepRow | undefined> => {
  if (project === null || backend === null) return undefined
  const [row] = await listSweeps(session, { project, backend, limit: 1 })
  return row
}

/** Of a listing that had cells, each says by itself what it could not see. */
const raisedError = (certificate: Certificate): string | null => (certificate.cells.length === 0 ? certificate.error : null)

type Cell = Certificate['cells'][number]
const isWhole = (cell: Cell): boolean => cell.state === 'complete'

const whyText = (cell: Cell): string => (cell.state === 'denied' ? `permission ${cell.why} is missing` : (cell.why ?? 'nobody says why'))

/** What could not be listed; where everything was, one line that says so. */
const coverageNodes = (certificate: Certificate, location: string | null): ExplanationNode[] => {
  const at = certificate.endedAt
  const cells = certificate.cells.filter((cell) => location === null || cell.location === location)
  const missing = cells.filter((cell) => !isWhole(cell))
  const place = location ?? 'the account'
  const nodes = missing.map((cell) =>
    node(
      'coverage',
      at,
      `${cell.kind} in ${cell.location} was ${cell.state === 'denied' ? 'not listed' : 'listed in part'}: ${whyText(cell)}`,
    ),
  )
  if (missing.length === 0 && cells.length > 0)
    nodes.push(node('coverage', at, `everything in ${place} was listed: ${cells.map((cell) => cell.kind).join(', ')}`))
  if (certificate.guard !== 'passed' && certificate.guard !== 'none')
    nodes.push(node('coverage', at, `guard on counts: ${certificate.guard}`))
  return nodes
}

/** The sweep that judged it last, and the newest one where that is another: what that could not see neither counts nor resets (orphans I5). */
export const inventoryNodes = async (session: Session, row: FindingRow): Promise<ExplanationNode[]> => {
  if (row.sweep_id === null) return []
  const location = row.target_type === 'resource' ? (row.target_id.split('/')[1] ?? null) : null
  const judged = await sweepById(session, row.sweep_id)
  const sealed = certificateOf(judged)
  const newest = await newestOf(session, row.project, row.backend)
  const later = newest !== undefined && newest.id !== row.sweep_id ? certificateOf(newest) : null
  const nodes: ExplanationNode[] = []
  if (sealed)
    nodes.push(
      node(
        'sweep',
        sealed.startedAt,
        `sweep ${row.sweep_id} (${sealed.outcome}) was the last to judge it`,
        coverageNodes(sealed, location),
      ),
    )
  if (later && newest && row.state === 'open')
    nodes.push(
      node(
        'sweep',
        later.startedAt,
        raisedError(later) === null
          ? `the newest sweep, ${newest.id} (${later.outcome}), did not judge it`
          : `the newest sweep, ${newest.id}, failed: ${raisedError(later)}`,
        coverageNodes(later, location),
      ),
    )
  return nodes
}

export const settingsNode = (provider: string, { mode, intervalMs, graceMs }: SweepSettings, now: number): ExplanationNode =>
  node('mode', now, `the mode of sweeps of ${provider} is ${mode.value} (${mode.origin})`, [
    node('mode', now, `they come every ${briefDuration(intervalMs.value)} (${intervalMs.origin})`),
    node('mode', now, `an orphan must stand for ${briefDuration(graceMs.value)} (${graceMs.origin})`),
  ])

/** What the newest sweep of its backend says of what an active instance is bound to; null: an open finding says more. */
export const ownerSeenNode = async (session: Session, context: EngineContext, owner: Owner): Promise<ExplanationNode | null> => {
  const { instance, readAt } = owner
  if (instance === null || !['provisioning', 'idle', 'busy'].includes(instance.state)) return null
  if (owner.findings.some((row) => row.code === 'not-seen' || row.code === 'missing')) return null
  const newest = await newestOf(session, instance.project, instance.backend)
  const sealed = certificateOf(newest)
  if (newest === undefined || sealed === null) return node('sweep', readAt, 'no sweep of its backend has ended yet')
  const about = (fact: string): ExplanationNode => node('sweep', sealed.startedAt, `sweep ${newest.id} of its backend ${fact}`)
  if (raisedError(sealed) !== null) return about(`failed: ${sealed.error}`)
  const provider = context.providers.get(instance.provider)
  const visibleAt = instance.changed_at + marginMs(instance.provider, provider?.visibilitySeconds ?? 0)
  if (visibleAt > sealed.startedAt) return about('began before it could be sure to show it')
  const cell = sealed.cells.find((one) => one.location === instance.location && one.kind === provider?.ownerKind)
  if (cell === undefined) return about(`did not list ${instance.location}`)
  if (sealed.guard.startsWith('tripped')) return about(`proves no absence: ${sealed.guard}`)
  if (!isWhole(cell)) return about(`could not list ${cell.kind} in ${cell.location} completely: ${whyText(cell)}`)
  return about('listed its place completely, and it was there')
}
