/**
 * Is the chain whole? Reads it in pages, so that a chain of any length needs the same memory, and answers how far it came: whoever asks goes on from there.
 * It reads only, and it takes nobody's word: each hash is worked out anew.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { sha256 } from '../../lib/sha256.ts'
import {
  chainStart,
  endProblem,
  expectationProblem,
  linkProblem,
  parsePoint,
  type ChainPoint,
  startProblem,
  type SealedText,
} from '../../model/audit-chain.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { AuditDanglingView, AuditProblemView, AuditVerificationView } from '../../model/wire-audit.ts'
import {
  answeredIntents,
  chainEnd,
  countUnsealed,
  hashesAt,
  knownIntents,
  removalsOfIntents,
  sealedAfter,
  type RemovalOfIntent,
} from '../../store/audit-chain.ts'
import type { Session } from '../../store/store.ts'
import { requireGlobalAdmin, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso, isoOrNull } from '../views.ts'
import { bodyOf } from './audit.ts'

/** Few enough that a page takes a few ms: the API answers others in between. */
const pageSize = 250
const mostDangling = 100
const mostCounted = 10_000
/** The sealer needs seconds. */
const sealedWithinMs = 60_000

export interface VerifyInput {
  /** Verified before: `SEQ:HASH`. Missing: from the beginning. */
  from?: string
  /** What a person kept elsewhere: `SEQ:HASH`. */
  expect?: string
  /** Records to look at in one call. */
  limit: number
}

const pointOf = (name: string, text: string | undefined): ChainPoint | null => {
  if (text === undefined) return null
  const point = parsePoint(text)
  if (point === null) throw new LeaseholdError('bad_request', `${name}: must be a number and a hash of 64 hex digits, as SEQ:HASH`)
  return point
}

/** The longest prefix that follows from the point, and what breaks it. */
const followed = (before: ChainPoint, records: readonly SealedText[]): { good: SealedText[]; problem: AuditProblemView | null } => {
  let last = before
  const good: SealedText[] = []
  for (const record of records) {
    const problem = linkProblem(last, record, sha256)
    if (problem !== null) return { good, problem }
    good.push(record)
    last = { seq: record.seq, hash: record.hash }
  }
  return { good, problem: null }
}

interface Calls {
  dangling: AuditDanglingView[]
  problem: AuditProblemView | null
}

/** A removal that is gone without any word on how: nobody can say what became of that call. What an older version wrote said less, and is let be. */
const unexplained = (record: SealedText, removal: RemovalOfIntent | undefined): boolean =>
  removal?.state === 'gone' && !removal.explained && 'evidence' in bodyOf(record)

/** Intents without outcome, and outcomes without intent. */
const checkCalls = async (session: Session, records: readonly SealedText[]): Promise<Calls> => {
  const intents = records.filter((record) => record.kind === 'intent')
  const outcomes = records.filter((record) => record.kind === 'outcome')
  const known = await knownIntents(
    session,
    outcomes.flatMap((record) => (record.intent_id === null ? [] : [record.intent_id])),
  )
  const answered = await answeredIntents(
    session,
    intents.map((record) => record.id),
  )
  const open = intents.filter((record) => !answered.has(record.id))
  const removals = await removalsOfIntents(
    session,
    open.flatMap((record) => (record.removal_id === null ? [] : [record.removal_id])),
  )
  const problems = [
    ...outcomes
      .filter((record) => record.intent_id === null || !known.has(record.intent_id))
      .map((record): AuditProblemView => ({
        what: 'outcome-without-intent',
        seq: record.seq,
        recordID: record.id,
        message: `record ${record.seq} (${record.id}) is the outcome of intent ${record.intent_id ?? '(none)'}, which is not there`,
      })),
    ...open
      .filter((record) => unexplained(record, removals.get(record.removal_id ?? '')))
      .map((record): AuditProblemView => ({
        what: 'gone-without-outcome',
        seq: record.seq,
        recordID: record.id,
        message: `removal ${record.removal_id} is gone, and beside intent ${record.seq} (${record.id}) there is neither an outcome nor a proof of absence`,
      })),
  ].toSorted((a, b) => (a.seq ?? 0) - (b.seq ?? 0))
  return {
    dangling: open.map((record) => ({
      seq: record.seq,
      recordID: record.id,
      at: iso(record.at),
      removalID: record.removal_id,
      removalState: removals.get(record.removal_id ?? '')?.state ?? null,
    })),
    problem: problems[0] ?? null,
  }
}

const unsealedProblem = (waiting: { count: number; oldestAt: number | null }, now: number): AuditProblemView | null =>
  waiting.oldestAt === null || waiting.oldestAt + sealedWithinMs >= now
    ? null
    : {
        what: 'unsealed',
        seq: null,
        recordID: null,
        message: `${waiting.count >= mostCounted ? `${mostCounted} or more` : waiting.count} audit records wait for their seal, the oldest since ${iso(waiting.oldestAt)}: no coordinator seals, or it is behind`,
      }

/**
 * Verifies up to `limit` records; the end of the chain, what was expected, and what waits for its seal are looked at by the call that gets there.
 * @throws LeaseholdError forbidden; bad_request for a malformed point
 */
export const verifyAudit = async (
  context: Pick<EngineContext, 'store'>,
  actor: Actor,
  input: VerifyInput,
  signal: AbortSignal,
): Promise<AuditVerificationView> => {
  requireGlobalAdmin(actor)
  const from = pointOf('from', input.from) ?? chainStart
  const expected = pointOf('expect', input.expect)
  const { store } = context
  const head = await store.read(chainEnd)
  let last: ChainPoint = { seq: from.seq, hash: from.hash }
  let problem: AuditProblemView | null = from.seq > head.seq ? expectationProblem(from, null, head.seq) : null
  if (problem === null && input.from !== undefined) {
    const hashes = await store.read((session) => hashesAt(session, [from.seq]))
    problem = startProblem(from, from.seq === 0 ? chainStart.hash : hashes.get(from.seq))
  }
  let complete = false
  let danglingCount = 0
  const dangling: AuditDanglingView[] = []
  const end = from.seq + input.limit
  while (problem === null && !complete && last.seq < end && !signal.aborted) {
    const records = await store.read((session) =>
      sealedAfter(session, last.seq, Math.max(head.seq, head.newest), Math.min(pageSize, end - last.seq)),
    )
    complete = records.length === 0
    const page = followed(last, records)
    const calls = await store.read((session) => checkCalls(session, page.good))
    dangling.push(...calls.dangling.slice(0, mostDangling - dangling.length))
    danglingCount += calls.dangling.length
    const reached = expected && page.good.find((record) => record.seq === expected.seq)
    const surprise = expected && reached ? expectationProblem(expected, reached, last.seq) : null
    problem =
      [calls.problem, surprise, page.problem].filter((one) => one !== null).toSorted((a, b) => (a.seq ?? 0) - (b.seq ?? 0))[0] ?? null
    const lastGood = page.good.at(-1)
    if (lastGood) last = { seq: lastGood.seq, hash: lastGood.hash }
    await yieldToOthers()
  }
  const waiting = await store.read((session) => countUnsealed(session, mostCounted))
  if (problem === null && complete) {
    problem = endProblem(last, head, head.newest)
    if (problem === null && expected && expected.seq > last.seq) problem = expectationProblem(expected, null, last.seq)
    problem ??= unsealedProblem(waiting, await store.now())
  }
  return {
    ok: problem === null,
    complete,
    from: { seq: from.seq, hash: from.hash },
    to: last,
    head: { seq: head.seq, hash: head.hash },
    sealedAt: isoOrNull(head.sealed_at),
    checked: last.seq - from.seq,
    problem,
    dangling,
    danglingCount,
    unsealed: { count: waiting.count, oldestAt: isoOrNull(waiting.oldestAt) },
  }
}
