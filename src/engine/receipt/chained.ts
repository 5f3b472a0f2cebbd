/** Does the chain hold at these records? Each is worked out anew from the one before it. That all the others hold too is the matter of `audit verify`. */
import { sha256 } from '../../lib/sha256.ts'
import { chainHash, chainStart, type ChainedText } from '../../model/audit-chain.ts'
import type { ReceiptRecordView } from '../../model/wire-audit.ts'
import type { AuditRecord } from '../../store/audit.ts'
import { hashesAt } from '../../store/audit-chain.ts'
import type { Session } from '../../store/store.ts'
import { iso } from '../views.ts'

export type Chained = ReadonlyMap<string, ReceiptRecordView>

const stateOf = (record: AuditRecord, before: ReadonlyMap<number, string>): ReceiptRecordView['chain'] => {
  if (record.seq === null) return 'unsealed'
  const previous = record.seq === 1 ? chainStart.hash : before.get(record.seq - 1)
  if (previous === undefined) return 'cut'
  return chainHash(previous, record as ChainedText, sha256) === record.hash ? 'verified' : 'broken'
}

export const chainedRecords = async (session: Session, records: readonly AuditRecord[]): Promise<Chained> => {
  const before = await hashesAt(
    session,
    records.flatMap((record) => (record.seq !== null && record.seq > 1 ? [record.seq - 1] : [])),
  )
  return new Map(
    records.map((record) => [
      record.id,
      { id: record.id, kind: record.kind, at: iso(record.at), seq: record.seq, hash: record.hash, chain: stateOf(record, before) },
    ]),
  )
}
