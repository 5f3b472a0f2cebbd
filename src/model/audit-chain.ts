/**
 * The chain over the audit records: each has a number without gaps, and a hash over the hash before it and its own text. Whoever knows the last number and
 * hash knows that nothing before it was changed, left out, added or moved. A record that is committed late gets the next number: the order is that of the
 * sealing, and what is chained is never chained again.
 *
 * Not proved: that a record was written at all. What is committed and not sealed yet (seconds) can still be taken away unseen.
 */
import type { AuditKind, AuditProblemView } from './wire-audit.ts'

export interface ChainPoint {
  seq: number
  hash: string
}
/** Before the first record. */
export const chainStart: ChainPoint = { seq: 0, hash: '0'.repeat(64) }

/** What is hashed of a record. `body` is the stored text itself. */
export interface ChainedText {
  id: string
  at: number
  kind: AuditKind
  intent_id: string | null
  removal_id: string | null
  project: string | null
  scope: string | null
  ref: string | null
  actor: string
  body: string
}
export interface SealedText extends ChainedText, ChainPoint {}

/** SHA-256 of a text in UTF-8, as hex. */
export type Hash = (text: string) => string

/** One JSON list in this order, whatever database holds it: part of the format, and never changed. */
export const canonicalText = (record: ChainedText): string =>
  JSON.stringify([
    record.id,
    record.at,
    record.kind,
    record.intent_id,
    record.removal_id,
    record.project,
    record.scope,
    record.ref,
    record.actor,
    record.body,
  ])

/** The hash before it, a line break, its own text. */
export const chainHash = (before: string, record: ChainedText, hash: Hash): string => hash(`${before}\n${canonicalText(record)}`)

export interface Seal extends ChainPoint {
  id: string
}
/** The numbers and hashes that these records get behind `head`, in the order given. */
export const sealsFor = (head: ChainPoint, records: readonly ChainedText[], hash: Hash): Seal[] => {
  let last: ChainPoint = head
  return records.map((record) => {
    last = { seq: last.seq + 1, hash: chainHash(last.hash, record, hash) }
    return { id: record.id, ...last }
  })
}

const missing = (from: number, to: number): string => (from === to ? `record ${from} is missing` : `records ${from} to ${to} are missing`)

/** Does this record follow the point before it? Null: it does. */
export const linkProblem = (before: ChainPoint, record: SealedText, hash: Hash): AuditProblemView | null => {
  const next = before.seq + 1
  if (record.seq < next)
    return { what: 'changed', seq: record.seq, recordID: record.id, message: `number ${record.seq} stands on two records` }
  if (record.seq > next)
    return { what: 'gap', seq: next, recordID: null, message: `${missing(next, record.seq - 1)}: after ${before.seq} comes ${record.seq}` }
  if (chainHash(before.hash, record, hash) === record.hash) return null
  return {
    what: 'changed',
    seq: record.seq,
    recordID: record.id,
    message: `record ${record.seq} (${record.id}) is not what was sealed: its text, its hash or its place was changed`,
  }
}

/** What the row that remembers the end says, compared with the last record. Null: they agree. */
export const endProblem = (last: ChainPoint, head: ChainPoint, newest: number): AuditProblemView | null => {
  if (last.seq < head.seq)
    return {
      what: 'truncated',
      seq: last.seq + 1,
      recordID: null,
      message: `${missing(last.seq + 1, head.seq)} at the end: the chain was sealed up to ${head.seq}`,
    }
  if (newest > head.seq)
    return {
      what: 'beyond-head',
      seq: head.seq + 1,
      recordID: null,
      message: `record ${head.seq + 1} and on, up to ${newest}, lie beyond the end that the chain's own row remembers: that row was set back`,
    }
  if (last.hash !== head.hash)
    return {
      what: 'changed',
      seq: head.seq,
      recordID: null,
      message: `the hash that the chain's own row remembers for ${head.seq} is not that of the record`,
    }
  return null
}

/** A point that a person kept elsewhere, as `SEQ:HASH`. Null: it is none. */
export const parsePoint = (text: string): ChainPoint | null => {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/i.exec(text.trim()) ?? []
  return seq === undefined || hash === undefined ? null : { seq: Number(seq), hash: hash.toLowerCase() }
}
export const pointText = (point: ChainPoint): string => `${point.seq}:${point.hash}`

/**
 * Where somebody goes on from a point: is it one of this chain? Asked before anything else, so that a mistyped hash is not told as a change of the record after it.
 * @param hash of the record at its number; undefined: there is none
 */
export const startProblem = (from: ChainPoint, hash: string | undefined): AuditProblemView | null => {
  if (hash === from.hash) return null
  return {
    what: 'not-as-expected',
    seq: from.seq,
    recordID: null,
    message:
      hash === undefined
        ? `record ${from.seq}, from which to go on, is missing`
        : `record ${from.seq} has another hash than the one given to go on from: a hash that was copied wrong, that of another chain, or everything up to it was written anew; nothing after it was looked at`,
  }
}

/** @param reached what was verified at the expected number; null: the chain ends before it */
export const expectationProblem = (expected: ChainPoint, reached: ChainPoint | null, end: number): AuditProblemView | null => {
  if (reached === null)
    return {
      what: 'not-as-expected',
      seq: end + 1,
      recordID: null,
      message: `the chain ends at ${end}; ${expected.seq} was expected: its end was cut off, or it is another chain`,
    }
  if (reached.hash === expected.hash) return null
  return {
    what: 'not-as-expected',
    seq: expected.seq,
    recordID: null,
    message: `record ${expected.seq} has another hash than expected: everything up to it may have been written anew`,
  }
}
