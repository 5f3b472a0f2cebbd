/**
 * Taking one group back: fence, fresh read, written intent, call, outcome, proof. No other file calls `provider.remove`.
 * The steps of many removals share their transactions; their calls to providers do not wait for each other.
 */
import { coalesce } from '../lib/coalesce.ts'
import { withDeadline } from '../lib/deadline.ts'
import { errorText, redact } from '../lib/redact.ts'
import { sha256 } from '../lib/sha256.ts'
import { changedSince, protectedNow } from '../model/fresh-protection.ts'
import type { RemovalEvidence } from '../model/removal-evidence.ts'
import { heldBy, isFound, preflight, resourceKey } from '../model/removal.ts'
import { judgeLookUp } from '../model/provision.ts'
import { isLeftByFork } from '../model/stop.ts'
import { identityColumns, identityOf, updateAttempt } from '../store/attempts.ts'
import type { Contradiction, FoundResource, Provider, ReadOutcome, RemoveOutcome, ResourceIdentity } from '../providers/contract.ts'
import { providerOf, type EngineContext } from './context.ts'
import { stillStands, type Held, type PipelineSpec } from './pipeline.ts'
import { createReach, outOfReachMs } from './reach.ts'
import { rearm } from './rearm.ts'
import { applyGone, type Gone } from './remove-gone.ts'
import {
  applyAccepted,
  applyFailed,
  applyHeld,
  applyLook,
  applyPoll,
  applyPutOff,
  needsPerson,
  recordOutcome,
  writeIntents,
  type Accepted,
  type Failed,
  type IntentOf,
} from './remove-apply.ts'
import { applyDropped, applyGiveUp, budgetIsOver, kindOf, notProvedYet } from './remove-giveup.ts'
import { applyProgress, currentMember, isLastMember } from './remove-members.ts'
import { loadRemovals, type RemovalWork } from './remove-load.ts'

/** An accepted removal whose resource still stands after so long has failed. */
const acceptedButThereMs = 300_000

type Judged =
  | { kind: 'absent'; proof: string; contradictions: Contradiction[] }
  | {
      kind: 'present'
      existence: 'exists' | 'going' | 'gone'
      contradictions: Contradiction[]
      fingerprint: Record<string, unknown>
      /** What stands against taking it back now, if a sweep found it. */
      protectedBy: string | null
      /** What of it is not as the sweep saw it. */
      changed: string | null
    }
  | { kind: 'failed'; error: string; contradiction: boolean }

/** Only what a sweep found: what its holder gave up goes however it looks by now. */
const changedOf = ({ removal }: RemovalWork, identity: ResourceIdentity, found: FoundResource): string | null => {
  if (!isFound(removal.cause) || removal.evidence === null) return null
  const { found: stoodOn } = JSON.parse(removal.evidence) as RemovalEvidence
  // Names are given again to things of other kinds, and elsewhere.
  const then = stoodOn?.members?.find(
    (member) => member.nativeId === identity.nativeId && member.kind === identity.kind && member.location === identity.location,
  )
  return then ? changedSince(then, found, sha256) : null
}

const judge = (work: RemovalWork, identity: ResourceIdentity, read: ReadOutcome, installation: string): Judged => {
  switch (read.kind) {
    case 'absent':
      return read
    case 'unknown':
      return { kind: 'failed', error: `the fresh read failed: ${read.error}`, contradiction: false }
    case 'replaced':
      return { kind: 'failed', error: `what stands under its name is not what was made: ${read.why}`, contradiction: true }
    case 'present': {
      const { found } = read
      const bound = { resource: identity, ref: work.removal.ref, installation, attemptToken: work.attempt.token }
      const verdict = preflight(bound, found, found.existence === 'exists')
      if (verdict.kind === 'contradiction') return { kind: 'failed', error: verdict.why, contradiction: true }
      return {
        kind: 'present',
        existence: found.existence,
        contradictions: read.contradictions,
        fingerprint: { resource: found.resource, tags: found.tags, state: found.providerState },
        protectedBy: isFound(work.removal.cause) ? protectedNow(found) : null,
        changed: changedOf(work, identity, found),
      }
    }
  }
}

const failureOf = (outcome: RemoveOutcome): string | null => {
  switch (outcome.kind) {
    case 'accepted':
    case 'gone':
      return null
    case 'blocked':
      return `blocked by ${outcome.by}`
    case 'retryLater':
      return `the provider asks to try later: ${outcome.why}`
    case 'denied':
      return `permission denied: ${outcome.permission}`
    case 'unknown':
      return outcome.error
  }
}

export const removePipeline = (context: EngineContext): PipelineSpec => {
  const { store, log, signals } = context
  const installation = context.installation.installation_id
  const reach = createReach()
  const many = { largest: 100 }
  const load = coalesce((ids: string[]) => loadRemovals(store, ids), many)
  const intend = coalesce((intents: IntentOf[]) => store.write((tx) => writeIntents(tx, intents)), many)
  const outcome = coalesce((accepted: Accepted[]) => store.write((tx) => applyAccepted(tx, accepted)), many)
  const gone = coalesce((ended: Gone[]) => store.write((tx) => applyGone(tx, ended)), many)
  /** Proved absent: the next member's turn, or the end. */
  const finish = async (one: Gone): Promise<void> => {
    if (isLastMember(one.work.removal, one.identity)) {
      await gone(one)
      return
    }
    await store.write((tx) => applyProgress(tx, one))
    signals.wake('remove')
  }
  const settle = (work: RemovalWork): void => {
    if (work.removal.lease_id) signals.changed(work.removal.lease_id)
  }

  const giveUp = async (held: Held, work: RemovalWork, error: string, contradiction = false): Promise<void> => {
    const mode = context.sweepSettings(work.removal.provider).mode.value
    const provider = context.providers.get(work.removal.provider)
    await store.write((tx) => applyGiveUp(tx, { held, work, error, mode, provider, contradiction }))
    settle(work)
  }
  const failed = async (failure: Failed): Promise<void> => {
    const error = redact(failure.error)
    const { held, work, contradiction } = failure
    if (budgetIsOver(work, await store.now())) return giveUp(held, work, error, contradiction !== null)
    await store.write((tx) => applyFailed(tx, { ...failure, error }))
  }

  const read = async (work: RemovalWork, provider: Provider, identity: ResourceIdentity, signal: AbortSignal): Promise<ReadOutcome> => {
    try {
      const answer = await withDeadline(`reading ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, signal, (inner) =>
        provider.read(identity, work.config, { signal: inner }),
      )
      const why = answer.kind === 'present' ? await context.keyring.whyNotOurs(answer.found, work.attempt.mac_key) : null
      return why === null ? answer : { kind: 'replaced', why }
    } catch (error) {
      return { kind: 'unknown', error: errorText(error) }
    }
  }

  /** The identity that the attempt recorded, else what its own look-up finds, else null: then a person is asked. */
  const identityFor = async (
    work: RemovalWork,
    provider: Provider,
    signal: AbortSignal,
  ): Promise<ResourceIdentity | { error: string; final: boolean }> => {
    const member = currentMember(work.removal)
    if (member) return member
    const recorded = identityOf(work.attempt)
    if (recorded) return recorded
    try {
      const found = await withDeadline('looking the attempt up', provider.callDeadlineSeconds * 1000, signal, (inner) =>
        provider.find(work.removal.ref, work.config, { signal: inner }),
      )
      if (found.kind === 'incomplete') return { error: found.why, final: false }
      const verdict = judgeLookUp(found.found, work.attempt.token, work.removal.ref, installation)
      if (verdict.kind !== 'one')
        return { error: verdict.kind === 'none' ? 'no identity was recorded, and its look-up finds nothing' : verdict.why, final: true }
      await store.write((tx) => updateAttempt(tx, work.attempt.id, identityColumns(verdict.candidate.resource)))
      return verdict.candidate.resource
    } catch (error) {
      return { error: errorText(error), final: false }
    }
  }

  const call = async (held: Held, work: RemovalWork, provider: Provider, identity: ResourceIdentity): Promise<RemoveOutcome> => {
    try {
      return await withDeadline(`removing ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, held.signal, (inner) =>
        provider.remove(identity, work.config, { signal: inner }),
      )
    } catch (error) {
      return { kind: 'unknown', error: errorText(error) }
    }
  }

  const putOff = async (held: Held, work: RemovalWork, why: string): Promise<void> => {
    log.debug({ removal: work.removal.id, why }, 'a removal is out of reach')
    await store.write(async (tx) => applyPutOff(tx, held, tx.now + outOfReachMs))
  }

  /** The mode governs what was found, also in the middle of a plan; what was ended by its holder or clock goes in every mode. */
  const stoppedByMode = ({ removal }: RemovalWork): string | null => {
    if (!isFound(removal.cause)) return null
    const { value } = context.sweepSettings(removal.provider).mode
    return value === 'delete' ? null : `mode ${value}`
  }

  /** Has it gone by other hands? Read, and nothing else: taking it back is the sweeps' matter now, or a person's. */
  const lookAtGivenUp = async (held: Held, work: RemovalWork): Promise<void> => {
    const { removal } = work
    const later = (): Promise<void> => store.write((tx) => applyLook(tx, held, work))
    const provider = context.providers.get(removal.provider)
    const identity = currentMember(removal) ?? identityOf(work.attempt)
    if (!provider || !identity || work.backendMissing) return later()
    if ((await reach(provider, work.config, removal.scope, held.signal)) !== null) return later()
    const judged = judge(work, identity, await read(work, provider, identity, held.signal), installation)
    if (judged.kind !== 'absent') return later()
    await finish({ held, work, identity, proof: judged.proof, contradictions: judged.contradictions })
    settle(work)
  }

  const process = async (held: Held): Promise<void> => {
    const work = await load(held.id)
    if (!work || work.removal.state === 'gone') return store.write((tx) => applyPutOff(tx, held, null))
    if (work.removal.version !== 2)
      return store.write((tx) =>
        needsPerson(tx, held, work, `a removal of version ${work.removal.version} is not known here: nothing was touched`),
      )
    if (work.removal.state === 'gave-up') return lookAtGivenUp(held, work)
    if (work.backendMissing && kindOf(work) === 'unheld')
      return giveUp(held, work, `backend ${work.removal.backend} does not exist any more`)
    const holder = heldBy(work.target, work.holds, work.frozenScopes) ?? stoppedByMode(work)
    const provider = providerOf(context, work.removal.provider)
    const unreached = await reach(provider, work.config, work.removal.scope, held.signal)
    if (unreached !== null) return putOff(held, work, unreached)
    if (holder !== null) {
      // "Not this" holds for the box's own clock too.
      const recorded = identityOf(work.attempt)
      if (recorded && !isLeftByFork(holder)) await rearm(context, provider, recorded, work.config, held.signal)
      return store.write((tx) => applyHeld(tx, held, work, holder))
    }
    const identity = await identityFor(work, provider, held.signal)
    if ('error' in identity) {
      if (identity.final) return store.write((tx) => needsPerson(tx, held, work, identity.error))
      return failed({ held, work, error: identity.error, contradiction: null })
    }
    const judged = judge(work, identity, await read(work, provider, identity, held.signal), installation)
    if (judged.kind === 'failed')
      return failed({
        held,
        work,
        error: judged.error,
        contradiction: judged.contradiction ? resourceKey(work.removal.provider, identity.location, identity.nativeId) : null,
      })
    if (judged.kind === 'absent') {
      await finish({ held, work, identity, proof: judged.proof, contradictions: judged.contradictions })
      return settle(work)
    }
    const now = await store.now()
    if (work.removal.state === 'verifying' && work.removal.accepted_at !== null) {
      if (budgetIsOver(work, now)) return giveUp(held, work, notProvedYet)
      log.debug({ removal: held.id, state: judged.existence }, 'accepted, and not proved gone yet')
      const overdue = judged.existence === 'exists' && now - work.removal.accepted_at > acceptedButThereMs
      if (!overdue) return store.write((tx) => applyPoll(tx, held, work))
      return failed({ held, work, error: 'the provider accepted the removal, and the resource still stands', contradiction: null })
    }
    // It waits for a person, or for the label to go; what is not as it was found is judged afresh.
    const { protectedBy, changed } = judged
    if (protectedBy !== null) return store.write((tx) => applyHeld(tx, held, work, protectedBy))
    if (changed !== null) return store.write((tx) => applyDropped(tx, held, work, changed))
    const intent = await intend({ held, work, identity, fingerprint: judged.fingerprint })
    if (intent.kind === 'held') return store.write((tx) => applyHeld(tx, held, work, intent.by))
    // The fence was not ours any more: somebody else works on it, and nothing destructive is called (I3).
    if (intent.kind === 'lost' || !stillStands(held)) return
    const intentId = intent.id
    const answer = await call(held, work, provider, identity)
    const failure = failureOf(answer)
    if (failure !== null) {
      await store.write((tx) => recordOutcome(tx, [{ work, intentId, answer }]))
      return failed({ held, work, error: failure, contradiction: null })
    }
    await outcome({ held, work, intentId, answer })
    settle(work)
    if (answer.kind !== 'gone') return
    const after = judge(work, identity, await read(work, provider, identity, held.signal), installation)
    if (after.kind === 'absent') {
      // What the read before the call showed beside the box stands when the box's own record of it is gone.
      const contradictions = [...judged.contradictions, ...after.contradictions]
      const once = new Map(contradictions.map((one) => [resourceKey(provider.name, one.location, one.nativeId), one]))
      await finish({ held, work, identity, proof: after.proof, contradictions: [...once.values()] })
    } else await store.write((tx) => applyPoll(tx, held, work))
    settle(work)
  }

  return { name: 'remove', table: 'removals', capacity: 500, process }
}
