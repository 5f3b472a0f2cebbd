/** Intents and outcomes of destructive calls, proofs of absence, and what operators did. Append-only, kept for ever (I7). */
import type { Selectable } from 'kysely'
import { insertEach, rowsIn } from './bulk.ts'
import type { AuditTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type AuditRecord = Selectable<AuditTable>
export type NewAudit = Omit<AuditRecord, 'at' | 'seq' | 'hash' | 'body'> & { body: Record<string, unknown> }

export const appendAudit = async (tx: Tx, records: readonly NewAudit[]): Promise<void> => {
  if (records.length === 0) return
  await insertEach(
    tx,
    'audit',
    records.map((record) => ({ ...record, body: JSON.stringify(record.body), at: tx.now, seq: null, hash: null })),
  )
}

/** The calls of a removal: intents and outcomes. */
export const auditOfRemoval = (session: Session, removalId: string): Promise<AuditRecord[]> =>
  session.db
    .selectFrom('audit')
    .selectAll()
    .where('removal_id', '=', removalId as NonNullable<AuditRecord['removal_id']>)
    .where('kind', 'in', ['intent', 'outcome'])
    .orderBy('at')
    .orderBy('id')
    .execute()

/** Immutable ids that this removal asked to be removed, with a recorded outcome that took it on: accepted or gone (leases R80). */
export const answeredMembers = async (session: Session, removalId: string): Promise<Set<string>> => {
  const records = await auditOfRemoval(session, removalId)
  const bodies = new Map(
    records.map((record) => [record.id, JSON.parse(record.body) as { identity?: { immutableId?: string }; kind?: string }]),
  )
  const taken = records.flatMap((record) => {
    const kind = bodies.get(record.id)?.kind
    if (record.kind !== 'outcome' || (kind !== 'accepted' && kind !== 'gone')) return []
    return bodies.get(record.intent_id ?? '')?.identity?.immutableId ?? []
  })
  return new Set(taken)
}

/** All that is kept of these removals, proofs included, oldest first. */
export const recordsOfRemovals = (session: Session, removalIds: readonly string[]): Promise<AuditRecord[]> =>
  rowsIn(session, 'audit', 'removal_id', removalIds, { order: ['at', 'id'] })

export interface AuditFilter {
  project: string | null
  removal: string | null
  limit: number
}

/** Newest first. */
export const listAudit = (session: Session, filter: AuditFilter): Promise<AuditRecord[]> =>
  session.db
    .selectFrom('audit')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project))
    .$if(filter.removal !== null, (query) => query.where('removal_id', '=', filter.removal as AuditRecord['removal_id']))
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()
