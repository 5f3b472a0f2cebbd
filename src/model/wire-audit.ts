/** What the HTTP API answers of the audit, its chain and receipts; see `wire.ts`. */
import type { RemovalState } from './wire.ts'

/** intent: about to be asked for; outcome: what the provider answered; proof: absence was proved; operator: what a person did to a safety switch. */
export type AuditKind = 'intent' | 'outcome' | 'proof' | 'operator'
export const auditKinds: readonly AuditKind[] = ['intent', 'outcome', 'proof', 'operator']
export interface AuditRecordView {
  id: string
  /** Its place in the chain; null: not sealed yet. */
  seq: number | null
  at: string
  kind: AuditKind
  /** Of an outcome: the intent that it answers. */
  intentID: string | null
  removalID: string | null
  project: string | null
  scope: string | null
  ref: string | null
  actor: string
  body: Record<string, unknown>
  /** Hex SHA-256 over the hash before it and this record. */
  hash: string | null
}
/** A place in the chain, and the hash that stands there. */
export interface AuditPointView {
  seq: number
  hash: string
}
export type AuditProblem =
  | 'changed'
  | 'gap'
  | 'truncated'
  | 'beyond-head'
  | 'not-as-expected'
  | 'outcome-without-intent'
  | 'gone-without-outcome'
  | 'unsealed'
export interface AuditProblemView {
  what: AuditProblem
  /** Where it breaks first; null: the chain itself is whole. */
  seq: number | null
  recordID: string | null
  message: string
}
/** An intent without outcome: what became of that call was never learned. */
export interface AuditDanglingView {
  seq: number
  recordID: string
  at: string
  removalID: string | null
  /** null: there is no such removal. */
  removalState: RemovalState | null
}
export interface AuditVerificationView {
  /** Nothing is wrong as far as was looked. */
  ok: boolean
  /** The end of the chain was reached. */
  complete: boolean
  /** Verified from here, whose hash was taken as given, up to there. */
  from: AuditPointView
  to: AuditPointView
  /** Where the chain ends, as its own row remembers it. */
  head: AuditPointView
  sealedAt: string | null
  /** Records that were looked at. */
  checked: number
  problem: AuditProblemView | null
  /** The first 100. */
  dangling: AuditDanglingView[]
  danglingCount: number
  /** Not in the chain yet. `count` ends at 10 000. */
  unsealed: { count: number; oldestAt: string | null }
}
/** One audit record in a receipt, and whether the chain holds there. */
export interface ReceiptRecordView {
  id: string
  kind: AuditKind
  at: string
  seq: number | null
  hash: string | null
  /** verified: its hash follows from the record before it and its own text; broken: it does not; cut: the record before it is missing; unsealed: it is not chained yet. */
  chain: 'verified' | 'broken' | 'cut' | 'unsealed'
}
export interface ReceiptResourceView {
  location: string
  kind: string
  nativeID: string
  immutableID: string
}
/** What a sweep stood on when it ordered a removal. */
export interface ReceiptFoundView {
  reason: string
  reasonText: string
  findingID: string | null
  fingerprint: string
  firstSeenAt: string
  lastSeenAt: string
  timesSeen: number
  /** The sweep whose certificate names it. */
  sweepID: string
  listedAt: string
  /** The cells that it was seen in: location, kind, state. */
  coverage: { location: string; kind: string; state: string; resources: number }[]
  /** Of that certificate, where it is still kept. */
  certificate: { outcome: string | null; guard: string | null } | null
  planID: string | null
  planSize: number | null
  /** Who let that plan begin, and who made it; null: it was within the limits and needed nobody, or that was not recorded. */
  planApproval: { approvedBy: string; approvedAt: string; reason: string | null; madeBy: string } | null
  proofs: { resource: string; attemptID: string; by: string; text: string }[]
  facts: { fact: string; source: string; at: string | null }[]
}
export interface ReceiptCallView {
  at: string
  resource: ReceiptResourceView
  fence: number | null
  /** What the read just before showed. */
  readState: string | null
  readTags: { ref: string | null; installation: string | null; attempt: string | null } | null
  intent: ReceiptRecordView
  /** null: never learned. */
  answer: { at: string; kind: string; detail: string | null; requestID: string | null; record: ReceiptRecordView } | null
}
export interface ReceiptProofView {
  at: string
  resource: ReceiptResourceView
  proof: string
  record: ReceiptRecordView
}
/**
 * deleted: a call was taken on, and absence is proved; gone: calls were made, none is known to have been taken on, and absence is proved; already-absent: proved
 * absent, and nothing was called; called: calls were made, and nothing is proved; not-called: nothing was called; unknown: records of it are missing from the audit.
 */
export type ReceiptVerdict = 'deleted' | 'gone' | 'already-absent' | 'called' | 'not-called' | 'unknown'
export interface ReceiptRemovalView {
  removalID: string
  state: RemovalState
  verdict: ReceiptVerdict
  summary: string
  name: string
  ref: string
  project: string
  backend: string
  provider: string
  scope: string
  location: string
  instanceID: string
  leaseID: string | null
  attemptID: string
  attemptNumber: number | null
  cause: string
  causeText: string
  /** null: a version that did not record it opened it. */
  orderedBy: string | null
  orderedAt: string
  resources: ReceiptResourceView[]
  found: ReceiptFoundView | null
  calls: ReceiptCallView[]
  proofs: ReceiptProofView[]
  goneAt: string | null
  /** What is not settled yet, or was never recorded. */
  open: string[]
  /** Records that must have been there and are not. */
  missing: string[]
}
export interface ReceiptView {
  key: string
  subject: string
  project: string | null
  at: string
  /** Every record that must be there is there, and the chain holds at each that is sealed. */
  whole: boolean
  /** One sentence over all of them. */
  summary: string
  /** Newest first. Empty: no removal was ever ordered. */
  removals: ReceiptRemovalView[]
}
