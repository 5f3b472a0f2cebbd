/** Reading findings: what was seen and needs time or a person. */
import { eligibleAt } from '../../model/quarantine.ts'
import type { FindingView } from '../../model/wire.ts'
import { shownBy, type ReportFilter, type Shown } from '../../model/report-filter.ts'
import { listFindings as list, type FindingFilter, type FindingRow } from '../../store/findings.ts'
import type { Session } from '../../store/store.ts'
import { requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { judgementOf, providerOfTarget } from '../explain/judged.ts'
import { quarantineOf } from '../sweep/findings.ts'
import { requireKnown, requireLabel } from '../known.ts'
import { conditionsOf, marked } from '../report-marks.ts'
import { iso, isoOrNull } from '../views.ts'
import { findingFacts, nothingKnown } from './finding-facts.ts'

const quarantineView = (context: EngineContext, row: FindingRow): FindingView['quarantine'] => {
  const quarantine = row.code === 'orphan' ? quarantineOf(row) : null
  if (quarantine === null) return null
  const grace = context.sweepSettings(providerOfTarget(row.target_id)).graceMs.value
  const { firstSeenAt, timesSeen, lastSeenAt } = quarantine
  return { since: iso(firstSeenAt), timesSeen, lastSeenAt: iso(lastSeenAt), eligibleAt: iso(eligibleAt(quarantine, grace)) }
}

const findingView = (context: EngineContext, row: FindingRow): FindingView => ({
  id: row.id,
  code: row.code,
  state: row.state,
  project: row.project,
  backend: row.backend,
  ref: row.ref,
  reason: judgementOf(row)?.verdict.reason ?? null,
  quarantine: quarantineView(context, row),
  target: { type: row.target_type, id: row.target_id, name: row.target_name },
  message: row.message,
  evidence: JSON.parse(row.evidence) as Record<string, unknown>,
  firstSeenAt: iso(row.first_seen_at),
  lastSeenAt: iso(row.last_seen_at),
  timesSeen: row.times_seen,
  resolvedAt: isoOrNull(row.resolved_at),
})

export interface FindingsInput extends ReportFilter {
  state?: 'open' | 'resolved'
  code?: string[]
  backend?: string
  project?: string
  limit: number
}

const pageSize = 500

/** Pages through the list until enough of it fits: what a finding is about stands in its evidence, and in no column. */
const fitting = async (session: Session, filter: FindingFilter, asked: ReportFilter): Promise<{ row: FindingRow; shown: Shown }[]> => {
  const found: { row: FindingRow; shown: Shown }[] = []
  for (let after: FindingRow | null = null; ;) {
    const rows: FindingRow[] = await list(session, { ...filter, after, limit: pageSize })
    const facts = await findingFacts(session, rows)
    for (const row of rows) {
      const shown = shownBy(asked, facts.get(row.id) ?? nothingKnown)
      if (shown !== null) found.push({ row, shown })
      if (found.length === filter.limit) return found
    }
    after = rows.at(-1) ?? null
    if (rows.length < pageSize) return found
  }
}

/** Last seen first. The age of a finding is how long it stands. */
export const listFindings = async (context: EngineContext, actor: Actor, input: FindingsInput): Promise<FindingView[]> => {
  requireFull(actor)
  const { state = null, code = [], backend = null, limit } = input
  const firstSeenUntil = conditionsOf(input, await context.store.now()).createdUntil
  return context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, input)
    const filter = { project, state, codes: code, backend, firstSeenUntil, limit }
    const plain = input.owner === undefined && input.kind === undefined && input.label === undefined
    if (plain) return (await list(session, filter)).map((row) => findingView(context, row))
    const found = await fitting(session, filter, input)
    if (found.length === 0 && input.label !== undefined) await requireLabel(session, project, input.label)
    return found.map(({ row, shown }) => marked(findingView(context, row), shown))
  })
}
