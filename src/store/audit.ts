/** Intents and outcomes of destructive calls, and what operators did. Append-only, kept for ever (I7). */
import type { Selectable } from 'kysely'
import { insertEach } from './bulk.ts'
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

export const auditOfRemoval = (session: Session, removalId: string): Promise<AuditRecord[]> =>
  session.db
    .selectFrom('audit')
    .selectAll()
    .where('removal_id', '=', removalId as NonNullable<AuditRecord['removal_id']>)
    .orderBy('at')
    .orderBy('id')
    .execute()
