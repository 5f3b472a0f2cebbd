/** Sweeps as the wire shows them. */
import { eligibleAt } from '../../model/quarantine.ts'
import type { HeldBackView, SweepOrphanView, SweepView } from '../../model/wire.ts'
import type { SweepRow } from '../../store/sweeps.ts'
import { explainStanding, type Standing } from '../explain/judged.ts'
import type { HeldBack } from '../../model/explain.ts'
import type { Certificate } from '../sweep/certificate.ts'
import { iso, isoOrNull } from '../views.ts'

export const heldBackViews = (heldBack: readonly HeldBack[]): HeldBackView[] =>
  heldBack.map(({ what, until }) => ({ what, until: isoOrNull(until) }))

export interface About {
  project: string
  backend: string
  provider: string | null
}

const nothing = { listed: 0, expected: 0, seen: 0, groups: 0, oursInScope: 0 }

/** Asked for and not ended yet. */
export const pendingView = (about: About, mode: SweepView['mode']): SweepView => ({
  ...about,
  id: null,
  scope: null,
  mode,
  state: 'pending',
  reasons: [],
  startedAt: null,
  endedAt: null,
  outcome: null,
  why: [],
  error: null,
  guard: null,
  cells: [],
  counts: nothing,
  verdicts: {},
  plan: null,
  orphans: null,
})

export const certificateView = (
  about: About,
  certificate: Certificate,
  id: string | null,
  orphans: SweepOrphanView[] | null,
): SweepView => ({
  ...about,
  id,
  scope: certificate.scope,
  mode: certificate.mode as SweepView['mode'],
  state: id === null ? 'dry-run' : 'ended',
  reasons: [...certificate.reasons],
  startedAt: iso(certificate.startedAt),
  endedAt: iso(certificate.endedAt),
  outcome: certificate.outcome as SweepView['outcome'],
  why: [...certificate.why],
  error: certificate.error,
  guard: certificate.guard,
  cells: certificate.cells.map((cell) => ({
    ...cell,
    state: cell.state as SweepView['cells'][number]['state'],
    cleanAt: isoOrNull(cell.cleanAt ?? null),
  })),
  counts: certificate.counts,
  verdicts: certificate.verdicts,
  // Of certificates that an older version wrote a field may be missing.
  plan: certificate.plan && { ...certificate.plan, kind: certificate.plan.kind as 'begin', whatToDo: certificate.plan.whatToDo ?? null },
  orphans,
})

/** Null while it has no certificate. */
export const certificateOfRow = (row: SweepRow): Certificate | null =>
  row.certificate === null ? null : (JSON.parse(row.certificate) as Certificate)

export const sweepRowView = (row: SweepRow, provider: string | null, orphans: SweepOrphanView[] | null = null): SweepView => {
  const about = { project: row.project, backend: row.backend, provider }
  const certificate = certificateOfRow(row)
  return certificate === null ? pendingView(about, row.mode as SweepView['mode']) : certificateView(about, certificate, row.id, orphans)
}

export const orphanView = (one: Standing, now: number): SweepOrphanView => ({
  target: one.target,
  name: one.name,
  reason: one.verdict.reason,
  findingID: one.findingId,
  removalID: one.removal?.id ?? null,
  eligibleAt: one.quarantine === null ? null : iso(eligibleAt(one.quarantine, one.settings.graceMs.value)),
  heldBack: one.removal === null ? heldBackViews(explainStanding(one, one.target, now).heldBack) : [],
})
