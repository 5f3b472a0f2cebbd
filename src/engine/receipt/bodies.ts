/** What audit records say. Written by several versions, and perhaps changed by somebody: whatever is not there is null, and nothing throws. */
import { redact } from '../../lib/redact.ts'
import type { RemovalEvidence } from '../../model/removal-evidence.ts'
import type { ReceiptResourceView } from '../../model/wire-audit.ts'
import type { AuditRecord } from '../../store/audit.ts'
import type { RemovalRow } from '../../store/removals.ts'
import { bodyOf } from '../admin/audit.ts'

type Loose = Record<string, unknown>
export const inner = (body: Loose, name: string): Loose => {
  const value = body[name]
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : {}
}
export const textIn = (body: Loose, name: string): string | null => (typeof body[name] === 'string' ? redact(body[name]) : null)
export const numberIn = (body: Loose, name: string): number | null => (typeof body[name] === 'number' ? body[name] : null)

export const resourceIn = (identity: Loose): ReceiptResourceView => ({
  location: textIn(identity, 'location') ?? 'unknown',
  kind: textIn(identity, 'kind') ?? 'resource',
  nativeID: textIn(identity, 'nativeId') ?? 'unknown',
  immutableID: textIn(identity, 'immutableId') ?? 'unknown',
})

/** What the provider answered, in one line. */
export const detailOf = (body: Loose): string | null => {
  const text = textIn(body, 'by') ?? textIn(body, 'why') ?? textIn(body, 'permission') ?? textIn(body, 'error')
  const seconds = numberIn(body, 'afterSeconds')
  return text === null || seconds === null ? text : `${text} (after ${seconds} s)`
}

const evidenceIn = (record: AuditRecord): RemovalEvidence | null => {
  const evidence = bodyOf(record)['evidence']
  return typeof evidence === 'object' && evidence !== null && 'orderedBy' in evidence ? (evidence as RemovalEvidence) : null
}

/**
 * What the chained records repeat goes before the removal's own row, which nothing seals. One that was given up and gone on with has a ground of its own since
 * then, which only later records repeat. Null: an older version opened it.
 */
export const evidenceOf = (
  removal: Pick<RemovalRow, 'evidence' | 'continued_at' | 'begun_at' | 'opened_at'>,
  records: readonly AuditRecord[],
): RemovalEvidence | null =>
  records
    .filter((record) => record.at >= (removal.continued_at ?? removal.begun_at ?? removal.opened_at))
    .map(evidenceIn)
    .find((one) => one !== null) ?? (removal.evidence === null ? null : (JSON.parse(removal.evidence) as RemovalEvidence))
