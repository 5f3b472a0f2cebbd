/**
 * The receipt of a deletion: the evidence that it stood on, each call with its answer, the proof of absence, and where each record of it stands in the audit's
 * chain. Told from what is kept for ever: the removal, its audit records, the attempt. Reads only; calls no provider.
 */
import { LeaseholdError } from '../../model/errors.ts'
import type { ReceiptView } from '../../model/wire-audit.ts'
import { recordsOfRemovals } from '../../store/audit.ts'
import { rowsIn } from '../../store/bulk.ts'
import type { Session } from '../../store/store.ts'
import { requireFull, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso } from '../views.ts'
import { removalsAskedFor, type Asked } from './asked.ts'
import { evidenceOf } from './bodies.ts'
import { chainedRecords } from './chained.ts'
import { receiptOf } from './removal.ts'

/** More removals are not told in one receipt; each has its own by its id. */
const mostRemovals = 50

const tell = async (session: Session, { asked, all }: Asked): Promise<ReceiptView['removals']> => {
  const shown = asked.slice(0, mostRemovals)
  const attempts = new Set(shown.map((row) => row.attempt_id))
  // What gave up is closed by the proof of another removal of the same attempt.
  const near = all.filter((row) => attempts.has(row.attempt_id))
  const records = await recordsOfRemovals(
    session,
    near.map((row) => row.id),
  )
  const of = Map.groupBy(records, (record) => record.removal_id ?? '')
  const chained = await chainedRecords(session, records)
  const evidence = new Map(shown.map((row) => [row.id, evidenceOf(row, of.get(row.id) ?? [])]))
  const attemptRows = new Map((await rowsIn(session, 'attempts', 'id', [...attempts])).map((row) => [row.id, row]))
  const sweepIds = [...evidence.values()].flatMap((one) => one?.found?.sweep ?? [])
  const sweeps = new Map((await rowsIn(session, 'sweeps', 'id', sweepIds)).map((row) => [row.id, row]))
  return shown.map((removal) =>
    receiptOf({
      removal,
      evidence: evidence.get(removal.id) ?? null,
      records: of.get(removal.id) ?? [],
      siblingProofs: near
        .filter((row) => row.id !== removal.id && row.attempt_id === removal.attempt_id)
        .flatMap((row) => (of.get(row.id) ?? []).filter((record) => record.kind === 'proof')),
      chained,
      attempt: attemptRows.get(removal.attempt_id),
      sweep: sweeps.get(evidence.get(removal.id)?.found?.sweep ?? ''),
    }),
  )
}

/** Of what is shown: `audit verify` asks the same of everything. */
const isWhole = (removals: ReceiptView['removals']): boolean =>
  removals.every((one) => {
    const records = [
      ...one.calls.flatMap((call) => [call.intent, ...(call.answer ? [call.answer.record] : [])]),
      ...one.proofs.map((proof) => proof.record),
    ]
    return one.missing.length === 0 && records.every((record) => record.chain === 'verified' || record.chain === 'unsealed')
  })

const summaryOf = (removals: ReceiptView['removals'], more: number): string => {
  const [first] = removals
  if (!first) return 'nothing was deleted: no removal was ever ordered for it'
  if (removals.length === 1 && more === 0) return first.summary
  const deleted = removals.filter((one) => one.verdict === 'deleted').length
  const rest = more === 0 ? '' : `; ${more} older ones are told by their ids`
  const unknown = removals.filter((one) => one.verdict === 'unknown').length
  const torn = unknown === 0 ? '' : `, and of ${unknown} audit records are missing`
  return `${removals.length} removals, ${deleted} of which deleted something${torn}${rest}`
}

/**
 * @param key a removal, a lease by id or slug, an instance, an attempt, a ref, a finding, or `provider/location/native-id`
 * @throws LeaseholdError not_found, also for what belongs to another project
 */
export const readReceipt = async (context: Pick<EngineContext, 'store'>, actor: Actor, key: string): Promise<ReceiptView> => {
  requireFull(actor)
  const now = await context.store.now()
  return context.store.read(async (session) => {
    const asked = await removalsAskedFor(session, actor, key, now)
    if (!asked || asked.project === null || !seesProject(actor, asked.project))
      throw new LeaseholdError(
        'not_found',
        `nothing that "${key}" names has a receipt that is visible to this token; a receipt is asked for by a removal, a lease, an instance, a ref or provider/location/native-id`,
      )
    const removals = await tell(session, asked)
    return {
      key,
      subject: asked.subject,
      project: asked.project,
      at: iso(now),
      whole: isWhole(removals),
      summary: summaryOf(removals, asked.asked.length - removals.length),
      removals,
    }
  })
}
