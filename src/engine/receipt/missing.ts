/**
 * Which audit records must have been there and are not. The removal's own row remembers that it began, was taken on and was proved gone: each of that was written
 * together with a record, so where the record is not found somebody has taken it away.
 */
import type { AuditRecord } from '../../store/audit.ts'
import type { RemovalRow } from '../../store/removals.ts'
import { bodyOf } from '../admin/audit.ts'
import { baselineOf, progressOf } from '../removal-row.ts'
import { iso } from '../views.ts'
import { inner, textIn } from './bodies.ts'
import type { Chained } from './chained.ts'

const callGaps = (removal: RemovalRow, records: readonly AuditRecord[]): string[] => {
  const intents = new Set(records.filter((record) => record.kind === 'intent').map((record) => record.id))
  const outcomes = records.filter((record) => record.kind === 'outcome')
  const gaps = outcomes
    .filter((record) => record.intent_id === null || !intents.has(record.intent_id))
    .map((record) => `the intent before the answer of ${iso(record.at)} is missing`)
  if (removal.started_at !== null && intents.size === 0 && gaps.length === 0)
    gaps.push(`the removal called the provider at ${iso(removal.started_at)} or later, and its intent is missing`)
  const takenOn = outcomes.some((record) => ['accepted', 'gone'].includes(textIn(bodyOf(record), 'kind') ?? ''))
  if (removal.accepted_at !== null && !takenOn)
    gaps.push(`the provider took its removal on at ${iso(removal.accepted_at)}, and the record of that answer is missing`)
  return gaps
}

/** A version that recorded no ground for a removal recorded no proof either. */
const proofGaps = (removal: RemovalRow, records: readonly AuditRecord[], elsewhere: readonly AuditRecord[]): string[] => {
  if (removal.evidence === null) return []
  const proofs = records.filter((record) => record.kind === 'proof')
  const proved = new Set(proofs.map((record) => textIn(inner(bodyOf(record), 'absent'), 'immutableId')))
  // What had gone by an earlier removal of the same attempt is proved by that one's records.
  const before = new Set(baselineOf(removal)?.before)
  const earlier = new Set(elsewhere.map((record) => textIn(inner(bodyOf(record), 'absent'), 'immutableId')))
  const gaps = progressOf(removal)
    .filter((id) => !proved.has(id) && !(before.has(id) && earlier.has(id)))
    .map((id) => `the proof that ${id} is absent is missing`)
  if (removal.state === 'gone' && gaps.length + proofs.length + elsewhere.length === 0)
    gaps.push(
      `its absence was proved at ${removal.gone_at === null ? 'some time' : iso(removal.gone_at)}, and the record of that is missing`,
    )
  return gaps
}

/** @param elsewhere proofs of other removals of the same attempt */
export const missingRecords = (
  removal: RemovalRow,
  records: readonly AuditRecord[],
  elsewhere: readonly AuditRecord[],
  chained: Chained,
): string[] => [
  ...callGaps(removal, records),
  ...proofGaps(removal, records, elsewhere),
  ...records
    .filter((record) => chained.get(record.id)?.chain === 'cut')
    .map((record) => `audit record ${(record.seq ?? 1) - 1}, the one before ${record.id}, is missing`),
]
