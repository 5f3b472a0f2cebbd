/** The audit, its chain, and receipts. */
import { Type } from 'typebox'
import { auditKinds, type AuditProblemView, type ReceiptCallView, type ReceiptFoundView } from '../../model/wire-audit.ts'
import { removalStates } from '../../model/wire.ts'
import {
  anything,
  closed,
  component,
  flag,
  limit,
  may,
  oneOf,
  ref,
  text,
  textOrNull,
  time,
  timeOrNull,
  whole,
  wholeOrNull,
} from './kinds.ts'

const point = (description: string) => may(text({ pattern: '^\\d{1,15}:[0-9a-fA-F]{64}$', 'x-expected': 'SEQ:HASH', description }))

export const auditQuery = closed({
  removal: may(text({ minLength: 1, description: 'Only of this removal.' })),
  project: may(text({ minLength: 1, description: 'Only of this project.' })),
  limit: limit(),
})
export const verifyQuery = closed({
  from: point('Verified before: go on from here. Missing: from the beginning.'),
  expect: point('What was kept elsewhere: the chain must have this hash at this number.'),
  limit: may(whole({ minimum: 1, maximum: 1_000_000, default: 100_000, description: 'Look at so many records at most.' })),
})
export const defaultVerifyLimit = 100_000
export const receiptKey = closed({
  key: text({
    minLength: 1,
    description:
      'A removal, a lease by id or slug, an instance, an attempt, a ref, a finding, or `provider/location/native-id` (URL-encoded).',
  }),
})

const seqOrNull = () => wholeOrNull({ description: 'Its place in the chain; null: not sealed yet.' })

export const AuditRecord = component(
  'AuditRecord',
  {
    id: text(),
    seq: seqOrNull(),
    at: time(),
    kind: oneOf(auditKinds),
    intentID: textOrNull({ description: 'Of an outcome: the intent that it answers.' }),
    removalID: textOrNull(),
    project: textOrNull(),
    scope: textOrNull(),
    ref: textOrNull(),
    actor: text(),
    body: anything(),
    hash: textOrNull({ description: 'SHA-256 over the hash before it and this record.' }),
  },
  'What was about to be deleted, what came of it, or what an operator did. Kept for ever.',
)

const ChainPoint = Type.Object({ seq: whole(), hash: text() })
const problems = [
  'changed',
  'gap',
  'truncated',
  'beyond-head',
  'not-as-expected',
  'outcome-without-intent',
  'gone-without-outcome',
  'unsealed',
] as const

const problem = Type.Unsafe<AuditProblemView | null>({
  description: 'What breaks first; null: nothing.',
  type: ['object', 'null'],
  required: ['what', 'seq', 'recordID', 'message'],
  properties: {
    what: oneOf(problems),
    seq: wholeOrNull({ description: 'Null: the chain itself is whole.' }),
    recordID: textOrNull(),
    message: text(),
  },
})

export const AuditVerification = component(
  'AuditVerification',
  {
    ok: flag({ description: 'Nothing is wrong as far as was looked.' }),
    complete: flag({ description: 'The end of the chain was reached; else ask again with `from` set to `to`.' }),
    from: ChainPoint,
    to: ChainPoint,
    head: ChainPoint,
    sealedAt: timeOrNull(),
    checked: whole(),
    problem,
    dangling: Type.Array(
      Type.Object({
        seq: whole(),
        recordID: text(),
        at: time(),
        removalID: textOrNull(),
        removalState: Type.Unsafe<(typeof removalStates)[number] | null>({ enum: [...removalStates, null] }),
      }),
      { description: 'Intents without outcome, the first 100: what became of those calls was never learned.' },
    ),
    danglingCount: whole(),
    unsealed: Type.Object({ count: whole(), oldestAt: timeOrNull() }),
  },
  'How far the chain over the audit holds.',
)

export const ReceiptRecord = component(
  'ReceiptRecord',
  {
    id: text(),
    kind: oneOf(auditKinds),
    at: time(),
    seq: seqOrNull(),
    hash: textOrNull(),
    chain: oneOf(['verified', 'broken', 'cut', 'unsealed'], {
      description: 'Does its hash follow from the record before it and its own text? `cut`: the record before it is missing.',
    }),
  },
  'An audit record, and whether the chain holds there.',
)

export const ReceiptResource = component(
  'ReceiptResource',
  { location: text(), kind: text(), nativeID: text(), immutableID: text() },
  'A resource as it was bound or read.',
)

const nullable = <T>(properties: Record<string, unknown>, description: string) =>
  Type.Unsafe<T | null>({ description, type: ['object', 'null'], required: Object.keys(properties), properties })

const found = nullable<ReceiptFoundView>(
  {
    reason: text(),
    reasonText: text(),
    findingID: textOrNull(),
    fingerprint: text(),
    firstSeenAt: time(),
    lastSeenAt: time(),
    timesSeen: whole(),
    sweepID: text({ description: 'The sweep whose certificate names it.' }),
    listedAt: time(),
    coverage: Type.Array(Type.Object({ location: text(), kind: text(), state: text(), resources: whole() })),
    certificate: nullable({ outcome: textOrNull(), guard: textOrNull() }, 'Null: it is not kept any more.'),
    planID: textOrNull(),
    planSize: wholeOrNull(),
    planApproval: nullable(
      { approvedBy: text(), approvedAt: time(), reason: textOrNull(), madeBy: text() },
      'Who let that plan begin. Null: it was within the limits, or that was not recorded.',
    ),
    proofs: Type.Array(Type.Object({ resource: text(), attemptID: text(), by: text(), text: text() })),
    facts: Type.Array(Type.Object({ fact: text(), source: text(), at: timeOrNull() })),
  },
  'What a sweep stood on; null: no sweep ordered it.',
)

const ReceiptCall = Type.Object({
  at: time(),
  resource: ref(ReceiptResource),
  fence: wholeOrNull(),
  readState: textOrNull(),
  readTags: nullable<NonNullable<ReceiptCallView['readTags']>>(
    { ref: textOrNull(), installation: textOrNull(), attempt: textOrNull() },
    'The tags that the read just before showed.',
  ),
  intent: ref(ReceiptRecord),
  answer: nullable<NonNullable<ReceiptCallView['answer']>>(
    { at: time(), kind: text(), detail: textOrNull(), requestID: textOrNull(), record: ref(ReceiptRecord) },
    'Null: never learned.',
  ),
})

export const ReceiptRemoval = component(
  'ReceiptRemoval',
  {
    removalID: text(),
    state: oneOf(removalStates),
    verdict: oneOf(['deleted', 'gone', 'already-absent', 'called', 'not-called', 'unknown'], {
      description: '`unknown`: records of it are missing from the audit.',
    }),
    summary: text(),
    name: text(),
    ref: text(),
    project: text(),
    backend: text(),
    provider: text(),
    scope: text(),
    location: text(),
    instanceID: text(),
    leaseID: textOrNull(),
    attemptID: text(),
    attemptNumber: wholeOrNull(),
    cause: text(),
    causeText: text(),
    orderedBy: textOrNull({ description: 'A token’s name, or `system`; null: not recorded.' }),
    orderedAt: time(),
    resources: Type.Array(ref(ReceiptResource)),
    found,
    calls: Type.Array(ReceiptCall),
    proofs: Type.Array(Type.Object({ at: time(), resource: ref(ReceiptResource), proof: text(), record: ref(ReceiptRecord) })),
    goneAt: timeOrNull(),
    open: Type.Array(text(), { description: 'What is not settled yet, or was never recorded.' }),
    missing: Type.Array(text(), { description: 'Records that must have been there and are not.' }),
  },
  'One removal: what it stood on, what was called, and by what its absence was known.',
)

export const Receipt = component(
  'Receipt',
  {
    key: text(),
    subject: text(),
    project: textOrNull(),
    at: time(),
    whole: flag({ description: 'Every record that must be there is there, and the chain holds at each that is sealed.' }),
    summary: text(),
    removals: Type.Array(ref(ReceiptRemoval), { description: 'Newest first, 50 at most; empty: no removal was ever ordered.' }),
  },
  'The evidence that deletions stood on.',
)

export const auditComponents = [AuditRecord, AuditVerification, ReceiptRecord, ReceiptResource, ReceiptRemoval, Receipt]
