/** What the steps of a removal have in common: the batched transactions, failing, giving up, and the one call. */
import { coalesce } from '../lib/coalesce.ts'
import { redact } from '../lib/redact.ts'
import { resourceKey } from '../model/removal.ts'
import type { Provider, RemoveOutcome, ResourceIdentity } from '../providers/contract.ts'
import { heldNow } from '../store/due.ts'
import type { EngineContext } from './context.ts'
import { stillStands, type Held } from './pipeline.ts'
import { applyAnswers, proofBy, type Answered, type Proof } from './remove-answers.ts'
import { applyFailed, applyHeld, applyPoll, recordOutcome, writeIntents, type Failed, type IntentOf } from './remove-apply.ts'
import { callRemove, readMember } from './remove-calls.ts'
import { applyDropped, applyGiveUp, applyThrottled, budgetIsOver, notProvedYet } from './remove-giveup.ts'
import { applyGone, type Gone } from './remove-gone.ts'
import { failureOf, judge, type Judged } from './remove-judge.ts'
import type { RemovalWork } from './remove-load.ts'
import { applyQuickTry } from './remove-members.ts'
import { seeLeft } from './removal-left.ts'
import { progressOf } from './removal-row.ts'

/** An accepted removal whose resource still stands after so long has failed. */
const acceptedButThereMs = 300_000
/** And one that has been on its way out for so long is stuck: it is told, and asked for once more (case E4). */
const goingMs = 3_600_000
/** leases R87 */
const quickTries = 13
const quickTryMs = 15_000

export interface RemovalTools {
  context: EngineContext
  installation: string
  /** Every member is proved gone. */
  finish(one: Gone): Promise<void>
  failed(failure: Failed): Promise<void>
  giveUp(held: Held, work: RemovalWork, error: string, contradiction?: boolean): Promise<void>
  /** Whoever waits for its lease looks again. */
  settle(work: RemovalWork): void
  /**
   * Intent, call and outcome for one member that was read just now and is what was bound.
   * @param proof begun at an answer "gone"; what it shows by the time that the answer is written is written with it
   * @returns what was answered and taken on; undefined: nothing was called, or it failed, and the row is given back; or it is proved gone
   */
  take(
    held: Held,
    work: RemovalWork,
    provider: Provider,
    identity: ResourceIdentity,
    judged: Judged & { kind: 'present' },
    proof?: Proof,
  ): Promise<RemoveOutcome | undefined>
  /** What is there after an answer "gone" for all that there is of it. */
  proofOf(held: Held, work: RemovalWork, provider: Provider, identity: ResourceIdentity, before: Gone['contradictions']): Proof
}

/** Only what may still be seen as in use by a member that went a moment ago. */
const mayBeStale = (work: RemovalWork, answer: RemoveOutcome): boolean =>
  progressOf(work.removal).length > 0 && work.removal.tries < quickTries && (answer.kind === 'blocked' || answer.kind === 'retryLater')

export const createTools = (context: EngineContext): RemovalTools => {
  const { store, log, signals } = context
  const installation = context.installation.installation_id
  const many = { largest: 100 }
  const intend = coalesce((intents: IntentOf[]) => store.write((tx) => writeIntents(tx, intents)), many)
  const isOurs = coalesce(async (held: Held[]) => {
    const ours = await store.read((session) => heldNow(session, 'removals', held))
    return held.map((one) => ours.has(one.id))
  }, many)
  const meter = (work: RemovalWork, tookMs: number | null): void => {
    if (tookMs !== null) context.meter.reclaimed(work.removal.provider, work.removal.cause, tookMs / 1000)
  }
  const outcome = coalesce(async (answered: (Omit<Answered, 'gone'> & { proof: Proof | undefined })[]) => {
    // The same however often the transaction is tried.
    const known = answered.map(({ proof, ...one }) => ({ ...one, gone: proof?.come() }))
    const tookMs = await store.write((tx) => applyAnswers(tx, known))
    return known.map((one, index) => {
      if (one.gone === undefined) return false
      meter(one.gone.work, tookMs[index] ?? null)
      return true
    })
  }, many)
  const finish = coalesce(async (ended: Gone[]) => {
    const tookMs = await store.write((tx) => applyGone(tx, ended))
    for (const [index, { work }] of ended.entries()) meter(work, tookMs[index] ?? null)
    return ended.map(() => undefined)
  }, many)

  const settle = (work: RemovalWork): void => {
    if (work.removal.lease_id) signals.changed(work.removal.lease_id)
  }
  const giveUp: RemovalTools['giveUp'] = async (held, work, error, contradiction = false) => {
    const mode = context.sweepSettings(work.removal.provider).mode.value
    const provider = context.providers.get(work.removal.provider)
    // Of a group that was never bound only its owner is on record, and a person has to end all of it.
    const isUnbound = provider?.inspect !== undefined && work.removal.identity === null
    const seen = isUnbound ? await seeLeft(context, work, held.signal) : null
    await store.write((tx) => applyGiveUp(tx, { held, work, error, mode, provider, contradiction, seen }))
    settle(work)
  }
  const failed: RemovalTools['failed'] = async (failure) => {
    const error = redact(failure.error)
    const { held, work, contradiction } = failure
    if (budgetIsOver(work, await store.now())) return giveUp(held, work, error, contradiction !== null)
    await store.write((tx) => applyFailed(tx, { ...failure, error }))
  }

  const take: RemovalTools['take'] = async (held, work, provider, identity, judged, proof) => {
    const { removal } = work
    const giveBack = async (given: Promise<void>): Promise<undefined> => {
      await given
      return undefined
    }
    if (removal.state === 'verifying' && removal.accepted_at !== null) {
      const now = await store.now()
      if (budgetIsOver(work, now)) return giveBack(giveUp(held, work, notProvedYet))
      log.debug({ removal: held.id, state: judged.existence }, 'accepted, and not proved gone yet')
      const stands = judged.existence === 'exists'
      if (now - removal.accepted_at <= (stands ? acceptedButThereMs : goingMs))
        return giveBack(store.write((tx) => applyPoll(tx, held, work)))
      const error = stands
        ? 'the provider accepted the removal, and the resource still stands'
        : 'the provider has said for an hour that it is being deleted, and it is still there'
      return giveBack(failed({ held, work, error, contradiction: null }))
    }
    // It waits for a person, or for the label to go; what is not as it was found is judged afresh.
    const { protectedBy, changed } = judged
    if (protectedBy !== null) return giveBack(store.write((tx) => applyHeld(tx, held, work, protectedBy)))
    if (changed !== null) return giveBack(store.write((tx) => applyDropped(tx, held, work, changed)))
    const intent = await intend({ held, work, identity, fingerprint: judged.fingerprint })
    if (intent.kind === 'held') return giveBack(store.write((tx) => applyHeld(tx, held, work, intent.by)))
    // The fence was not ours any more: somebody else works on it, and nothing destructive is called (I3). Asked once more, because the commit of the intent may
    // have taken longer than the lock stands.
    if (intent.kind === 'lost' || !(await isOurs(held)) || !stillStands(held)) return undefined
    const intentId = intent.id
    const { version } = judged.found
    const answer = await callRemove(held, work, provider, identity, version === undefined ? {} : { version })
    const failure = failureOf(answer)
    if (failure !== null) {
      await store.write((tx) => recordOutcome(tx, [{ work, intentId, answer }]))
      // Read afresh at once: only what the next read shows says whether it still goes (leases R91).
      if (answer.kind === 'changed' && work.removal.tries < quickTries) {
        await store.write((tx) => applyQuickTry(tx, held, work, redact(failure), 0))
        signals.wake('remove')
        return undefined
      }
      // Nothing was done, and nothing failed: once there is room the whole step is taken anew. What is given up after a time is so all the same.
      if (answer.rate?.throttled === true) {
        if (budgetIsOver(work, await store.now())) return giveBack(giveUp(held, work, failure))
        return giveBack(store.write((tx) => applyThrottled(tx, held, work)))
      }
      if (mayBeStale(work, answer)) return giveBack(store.write((tx) => applyQuickTry(tx, held, work, redact(failure), quickTryMs)))
      return giveBack(failed({ held, work, error: failure, contradiction: null }))
    }
    if (answer.kind === 'gone') proof?.begin()
    const proved = await outcome({ held, work, intentId, answer, proof })
    settle(work)
    return proved ? undefined : answer
  }

  return {
    context,
    installation,
    settle,
    giveUp,
    failed,
    take,
    finish: async (one) => {
      await finish(one)
    },
    proofOf: (held, work, provider, identity, before) =>
      proofBy(async () => {
        const after = judge(work, identity, await readMember(context.keyring, work, provider, identity, held.signal), installation)
        if (after.kind !== 'absent') return undefined
        // What the read before the call showed beside the box stands when the box's own record of it is gone.
        return { held, work, identity, proof: after.proof, contradictions: onceEach(provider.name, [...before, ...after.contradictions]) }
      }),
  }
}

/** The contradictions of several reads, each once. */
export const onceEach = (provider: string, contradictions: Gone['contradictions']): Gone['contradictions'] => [
  ...new Map(contradictions.map((one) => [resourceKey(provider, one.location, one.nativeId), one])).values(),
]
