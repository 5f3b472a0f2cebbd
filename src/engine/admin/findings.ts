/** Reading findings: what was seen and needs time or a person. */
import { eligibleAt } from '../../model/quarantine.ts'
import type { FindingView } from '../../model/wire.ts'
import { listFindings as list, type FindingRow } from '../../store/findings.ts'
import { listedProject, requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { judgementOf, providerOfTarget } from '../explain/judged.ts'
import { quarantineOf } from '../sweep/findings.ts'
import { iso, isoOrNull } from '../views.ts'

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

/** Last seen first. */
export const listFindings = async (
  context: EngineContext,
  actor: Actor,
  input: { state?: 'open' | 'resolved'; code?: string[]; backend?: string; project?: string; limit: number },
): Promise<FindingView[]> => {
  requireFull(actor)
  const { state = null, code = [], backend = null, limit } = input
  const filter = { project: listedProject(actor, input.project), state, codes: code, backend, limit }
  return (await context.store.read((session) => list(session, filter))).map((row) => findingView(context, row))
}
