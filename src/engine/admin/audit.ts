/** The audit as administrators read it. */
import type { AuditRecordView } from '../../model/wire-audit.ts'
import { listAudit, type AuditRecord } from '../../store/audit.ts'
import { listedProject, requireAdmin, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso } from '../views.ts'

/** A body that somebody changed may be no JSON any more: it is shown as it stands. */
export const bodyOf = (record: Pick<AuditRecord, 'body'>): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(record.body)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : { text: record.body }
  } catch {
    return { text: record.body }
  }
}

const view = (record: AuditRecord): AuditRecordView => ({
  id: record.id,
  seq: record.seq,
  at: iso(record.at),
  kind: record.kind,
  intentID: record.intent_id,
  removalID: record.removal_id,
  project: record.project,
  scope: record.scope,
  ref: record.ref,
  actor: record.actor,
  body: bodyOf(record),
  hash: record.hash,
})

/**
 * Newest first.
 * @throws LeaseholdError forbidden, not_found for another project
 */
export const readAudit = async (
  context: Pick<EngineContext, 'store'>,
  actor: Actor,
  input: { project?: string; removal?: string; limit: number },
): Promise<AuditRecordView[]> => {
  requireAdmin(actor)
  const filter = { project: listedProject(actor, input.project), removal: input.removal ?? null, limit: input.limit }
  return (await context.store.read((session) => listAudit(session, filter))).map(view)
}
