/** Reading findings: what was seen and needs time or a person. */
import type { FindingView } from '../../model/wire.ts'
import { listFindings as list, type FindingRow } from '../../store/findings.ts'
import { listedProject, requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso, isoOrNull } from '../views.ts'

const findingView = (row: FindingRow): FindingView => ({
  id: row.id,
  code: row.code,
  state: row.state,
  project: row.project,
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
  input: { state?: 'open' | 'resolved'; project?: string; limit: number },
): Promise<FindingView[]> => {
  requireFull(actor)
  const filter = { project: listedProject(actor, input.project), state: input.state ?? null, limit: input.limit }
  return (await context.store.read((session) => list(session, filter))).map(findingView)
}
