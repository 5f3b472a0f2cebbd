/** The audit as administrators read it. */
import { LeaseholdError } from '../../model/errors.ts'
import type { RemovalId } from '../../model/ids.ts'
import type { AuditRecordView } from '../../model/wire-audit.ts'
import { listAudit, type AuditRecord } from '../../store/audit.ts'
import type { Session } from '../../store/store.ts'
import { requireAdmin, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { requireKnown } from '../known.ts'
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

/** One that was never tried has no record yet. */
const requireRemoval = async (session: Session, actor: Actor, id: string): Promise<void> => {
  const row = await session.db
    .selectFrom('removals')
    .select('project')
    .where('id', '=', id as RemovalId)
    .executeTakeFirst()
  if (!row || !seesProject(actor, row.project))
    throw new LeaseholdError('not_found', `no removal ${JSON.stringify(id)} is visible to this token`)
}

/**
 * Newest first.
 * @throws LeaseholdError forbidden; bad_request for a project, not_found for a removal that nobody knows
 */
export const readAudit = async (
  context: Pick<EngineContext, 'store' | 'providers'>,
  actor: Actor,
  input: { project?: string; removal?: string; limit: number },
): Promise<AuditRecordView[]> => {
  requireAdmin(actor)
  const records = await context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, { project: input.project })
    const found = await listAudit(session, { project, removal: input.removal ?? null, limit: input.limit })
    if (found.length === 0 && input.removal !== undefined) await requireRemoval(session, actor, input.removal)
    return found
  })
  return records.map(view)
}
