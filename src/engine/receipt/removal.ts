/** One removal in a receipt. */
import { counted } from '../../lib/counted.ts'
import { redact } from '../../lib/redact.ts'
import { proofTexts } from '../../model/ownership.ts'
import type { FoundEvidence, PlanApproval, RemovalEvidence } from '../../model/removal-evidence.ts'
import { verdictReasons } from '../../model/verdict-reasons.ts'
import type {
  ReceiptCallView,
  ReceiptFoundView,
  ReceiptProofView,
  ReceiptRecordView,
  ReceiptRemovalView,
  ReceiptResourceView,
  ReceiptVerdict,
} from '../../model/wire-audit.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import type { AuditRecord } from '../../store/audit.ts'
import type { RemovalRow } from '../../store/removals.ts'
import type { SweepRow } from '../../store/sweeps.ts'
import { bodyOf } from '../admin/audit.ts'
import { baselineOf, progressOf } from '../removal-row.ts'
import { iso, isoOrNull } from '../views.ts'
import { keyOf, membersOf } from './asked.ts'
import { missingRecords } from './missing.ts'
import { detailOf, inner, numberIn, resourceIn, textIn } from './bodies.ts'
import type { Chained } from './chained.ts'

export interface Told {
  removal: RemovalRow
  evidence: RemovalEvidence | null
  /** Its own, oldest first. */
  records: readonly AuditRecord[]
  /** Proofs of other removals of the same attempt. */
  siblingProofs: readonly AuditRecord[]
  chained: Chained
  attempt: AttemptRow | undefined
  /** The sweep that ordered it, where its row is kept. */
  sweep: SweepRow | undefined
}

const causes: Record<string, string> = {
  released: 'its holder gave the lease up',
  expired: "the lease's clock ran out",
  cancelled: 'its create was cancelled',
  'create-interrupted': 'its create was interrupted, and nobody could learn of it any more',
  leftover: 'an earlier attempt had left it behind',
  admin: 'an administrator ended the lease',
}
const reasonText = (reason: string): string =>
  Object.hasOwn(verdictReasons, reason) ? verdictReasons[reason as keyof typeof verdictReasons].text : ''
const causeText = (cause: string): string => causes[cause] ?? reasonText(cause)

const recordOf = (chained: Chained, record: AuditRecord): ReceiptRecordView => chained.get(record.id) as ReceiptRecordView

const tagsIn = (read: Record<string, unknown>, attempt: AttemptRow | undefined): ReceiptCallView['readTags'] => {
  if (read['tags'] === undefined) return null
  const tags = inner(read, 'tags')
  const token = tags['attempt']
  // A token is told by the attempt that it is of.
  const named = typeof token !== 'string' ? null : token === attempt?.token ? attempt.id : 'another attempt'
  return { ref: textIn(tags, 'ref'), installation: textIn(tags, 'installation'), attempt: named }
}

const callsOf = ({ records, chained, attempt }: Told): ReceiptCallView[] => {
  const answers = new Map(records.filter((record) => record.kind === 'outcome').map((record) => [record.intent_id, record]))
  return records
    .filter((record) => record.kind === 'intent')
    .map((intent) => {
      const body = bodyOf(intent)
      const read = inner(body, 'read')
      const answer = answers.get(intent.id)
      const answered = answer && bodyOf(answer)
      return {
        at: iso(intent.at),
        resource: resourceIn(inner(body, 'identity')),
        fence: numberIn(body, 'fence'),
        readState: textIn(read, 'state'),
        readTags: tagsIn(read, attempt),
        intent: recordOf(chained, intent),
        answer:
          answer && answered
            ? {
                at: iso(answer.at),
                kind: textIn(answered, 'kind') ?? 'unreadable',
                detail: detailOf(answered),
                requestID: textIn(answered, 'requestId'),
                record: recordOf(chained, answer),
              }
            : null,
      }
    })
}

const proofView = (chained: Chained, record: AuditRecord): ReceiptProofView => {
  const body = bodyOf(record)
  return {
    at: iso(record.at),
    resource: resourceIn(inner(body, 'absent')),
    proof: textIn(body, 'proof') ?? 'unreadable',
    record: recordOf(chained, record),
  }
}

const certificateOf = (sweep: SweepRow | undefined): ReceiptFoundView['certificate'] => {
  if (!sweep) return null
  const certificate = sweep.certificate === null ? {} : (JSON.parse(sweep.certificate) as Record<string, unknown>)
  return { outcome: sweep.outcome, guard: textIn(certificate, 'guard') }
}

const approvalView = (given: PlanApproval | undefined): ReceiptFoundView['planApproval'] =>
  given === undefined
    ? null
    : { approvedBy: given.by, approvedAt: iso(given.at), reason: given.reason === '' ? null : redact(given.reason), madeBy: given.madeBy }

const foundView = (found: FoundEvidence, { sweep }: Told): ReceiptFoundView => ({
  reason: found.reason,
  reasonText: reasonText(found.reason),
  findingID: found.finding,
  fingerprint: found.fingerprint,
  firstSeenAt: iso(found.firstSeenAt),
  lastSeenAt: iso(found.lastSeenAt),
  timesSeen: found.timesSeen,
  sweepID: found.sweep,
  listedAt: iso(found.listedAt),
  coverage: found.coverage,
  certificate: certificateOf(sweep),
  planID: found.plan?.id ?? null,
  planSize: found.plan?.size ?? null,
  planApproval: approvalView(found.plan?.approval),
  proofs: found.proofs.map((proof) => ({
    resource: `${proof.kind} ${proof.immutableId}`,
    attemptID: proof.attemptId,
    by: proof.by,
    text: proofTexts[proof.by] ?? proof.by,
  })),
  facts: found.facts.map(({ fact, source, at }) => ({ fact: redact(fact), source, at: isoOrNull(at) })),
})

const resourcesOf = ({ removal, attempt }: Told): ReceiptResourceView[] => {
  // What an earlier removal of the same attempt took away is in that one's receipt.
  const before = new Set(baselineOf(removal)?.before)
  const members = membersOf(removal).filter((one) => !before.has(one.immutableId))
  if (members.length > 0)
    return members.map((one) => ({ location: one.location, kind: one.kind, nativeID: one.nativeId, immutableID: one.immutableId }))
  if (!attempt || attempt.native_id === null) return []
  return [
    {
      location: attempt.location,
      kind: attempt.kind ?? 'resource',
      nativeID: attempt.native_id,
      immutableID: attempt.immutable_id ?? 'unknown',
    },
  ]
}

const takenOn = (call: ReceiptCallView): boolean => call.answer?.kind === 'accepted' || call.answer?.kind === 'gone'

const verdictOf = (removal: RemovalRow, calls: readonly ReceiptCallView[], missing: readonly string[]): ReceiptVerdict => {
  if (missing.length > 0) return 'unknown'
  if (removal.state !== 'gone') return calls.length > 0 ? 'called' : 'not-called'
  if (calls.length === 0) return 'already-absent'
  return calls.some(takenOn) ? 'deleted' : 'gone'
}

/** What our calls took away: asked for and taken on, or bound as going with such a one. */
const takenByUs = (
  removal: RemovalRow,
  resources: readonly ReceiptResourceView[],
  calls: readonly ReceiptCallView[],
): ReceiptResourceView[] => {
  const asked = new Set(calls.filter(takenOn).map((call) => call.resource?.immutableID))
  const members = baselineOf(removal)?.members ?? []
  const idOf = new Map(resources.map((one) => [one.nativeID, one.immutableID]))
  const ours = new Set(asked)
  // Also what went with one that went along itself: a set that is added to while it is walked hands out the new ones too.
  for (const id of ours)
    for (const along of members.find((one) => one.immutableId === id)?.takesAlong ?? []) ours.add(idOf.get(along) ?? along)
  return resources.filter((one) => ours.has(one.immutableID))
}

/** What the headline is about: never what others did, nor what is proved gone where the rest is not. */
const subjectsOf = (
  removal: RemovalRow,
  verdict: ReceiptVerdict,
  resources: readonly ReceiptResourceView[],
  calls: readonly ReceiptCallView[],
): { about: readonly ReceiptResourceView[]; byOthers: readonly ReceiptResourceView[] } => {
  const all = { about: resources, byOthers: [] }
  if (verdict === 'deleted') {
    const ours = takenByUs(removal, resources, calls)
    return ours.length === 0 ? all : { about: ours, byOthers: resources.filter((one) => !ours.includes(one)) }
  }
  if (verdict !== 'called') return all
  const proved = new Set(progressOf(removal))
  const left = resources.filter((one) => !proved.has(one.immutableID))
  return left.length === 0 ? all : { about: left, byOthers: [] }
}

const summaryOf = (
  removal: RemovalRow,
  verdict: ReceiptVerdict,
  what: string,
  calls: readonly ReceiptCallView[],
  proofs: readonly ReceiptProofView[],
): string => {
  const proof = proofs.at(-1)
  const proved = proof ? `its absence was proved at ${proof.at}: ${proof.proof}` : `its absence was proved at ${isoOrNull(removal.gone_at)}`
  const asked = `${counted(calls.length, 'call')}, the first at ${calls[0]?.at}`
  switch (verdict) {
    case 'deleted':
      return `${what} was deleted (${asked}); ${proved}`
    case 'gone':
      return `${what} is gone, and whether one of our calls did it is not known (${asked}); ${proved}`
    case 'already-absent':
      return `nothing was deleted: ${what} was absent already, and nothing was called; ${proved}`
    case 'called':
      return `${what} is not proved gone: its deletion was asked for (${asked}), and its removal is ${removal.state}`
    case 'not-called':
      return `nothing was deleted: no deletion of ${what} was called, and its removal is ${removal.state}`
    case 'unknown':
      return `what was done to ${what} can not be told: audit records of its removal are missing, and its removal is ${removal.state}`
  }
}

const openPoints = (told: Told, calls: readonly ReceiptCallView[], proofs: readonly ReceiptProofView[]): string[] => {
  const { removal, records, chained, evidence } = told
  const row = removal.evidence === null ? null : JSON.stringify(JSON.parse(removal.evidence))
  const own = records.map((record) => recordOf(chained, record))
  const unsealed = own.filter((record) => record.chain === 'unsealed').length
  return [
    removal.state === 'gone' ? null : `the removal is ${removal.state}${removal.error === null ? '' : `: ${redact(removal.error)}`}`,
    removal.state === 'closed'
      ? `${removal.closed_by ?? 'somebody'} closed it, and nothing is proved by that: ${redact(removal.closed_reason ?? '')}`
      : null,
    removal.state !== 'gone' && removal.held_by !== null ? `${removal.held_by} holds it back` : null,
    removal.state !== 'gone' && removal.retry_at !== null ? `the next try is at ${iso(removal.retry_at)}` : null,
    ...calls
      .filter((call) => call.answer === null)
      .map((call) => `what became of the call of ${call.at} is not known: its answer was never recorded`),
    removal.state === 'gone' && proofs.length === 0 && removal.evidence === null
      ? 'no record holds the proof of its absence: the version that found it wrote none'
      : null,
    evidence === null ? 'who ordered it, and on what ground, was not recorded by the version that opened it' : null,
    row !== null && row !== JSON.stringify(evidence)
      ? "the removal's own row says something else of its ground than its audit records: what is told here is theirs"
      : null,
    unsealed > 0 ? `${counted(unsealed, 'record')} of it ${unsealed === 1 ? 'is' : 'are'} not sealed yet` : null,
    ...own
      .filter((record) => record.chain === 'broken')
      .map((record) => `the chain does not hold at record ${record.seq} (${record.id}): its text, its hash or its place was changed`),
  ].filter((one) => one !== null)
}

export const receiptOf = (told: Told): ReceiptRemovalView => {
  const { removal, attempt, chained, evidence } = told
  const calls = callsOf(told)
  const own = told.records.filter((record) => record.kind === 'proof')
  const proofs = (own.length > 0 || removal.state !== 'gone' ? own : told.siblingProofs).map((record) => proofView(chained, record))
  const resources = resourcesOf(told)
  const missing = missingRecords(removal, told.records, told.siblingProofs, chained)
  const verdict = verdictOf(removal, calls, missing)
  const { about, byOthers } = subjectsOf(removal, verdict, resources, calls)
  const namesOf = (some: readonly ReceiptResourceView[]): string => some.map((one) => `${one.kind} ${keyOf(removal, one)}`).join(', ')
  const what = resources.length === 0 ? `what ${removal.name} was to have` : namesOf(about)
  const others = byOthers.length === 0 ? '' : `; by no call of ours: ${namesOf(byOthers)}`
  return {
    removalID: removal.id,
    state: removal.state,
    verdict,
    summary: `${summaryOf(removal, verdict, what, calls, proofs)}${others}`,
    name: removal.name,
    ref: removal.ref,
    project: removal.project,
    backend: removal.backend,
    provider: removal.provider,
    scope: removal.scope,
    location: removal.location,
    instanceID: removal.instance_id,
    leaseID: removal.lease_id,
    attemptID: removal.attempt_id,
    attemptNumber: attempt?.number ?? null,
    cause: removal.cause,
    causeText: causeText(removal.cause),
    orderedBy: evidence?.orderedBy ?? null,
    orderedAt: iso(removal.opened_at),
    resources,
    found: evidence?.found ? foundView(evidence.found, told) : null,
    calls,
    proofs,
    goneAt: isoOrNull(removal.gone_at),
    open: openPoints(told, calls, proofs),
    missing,
  }
}
