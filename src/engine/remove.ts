/**
 * Taking one group back: fence, fresh read, written intent, call, outcome, proof. The steps of many removals share their transactions; their calls to
 * providers do not wait for each other.
 */
import { coalesce } from '../lib/coalesce.ts'
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import type { OperationClass } from '../model/budget.ts'
import { heldBy, isFound, isOverRemoval, resourceKey } from '../model/removal.ts'
import { judgeLookUp } from '../model/provision.ts'
import { whyUnreadable } from '../model/removal-record.ts'
import { keyMismatch, type RemovalKey } from '../model/removal-key.ts'
import type { Seen } from '../model/stopped.ts'
import { identityColumns, identityOf, updateAttempt } from '../store/attempts.ts'
import type { Provider, ResourceIdentity } from '../providers/contract.ts'
import { passWaits } from './budget/waits.ts'
import type { EngineContext } from './context.ts'
import type { Held, PipelineSpec } from './pipeline.ts'
import { createReach, outOfReachMs } from './reach.ts'
import { rearm } from './rearm.ts'
import { applyHeld, applyPoll, applyPutOff } from './remove-apply.ts'
import { bindGroup, isGroup, nothingLeftOf } from './remove-bind.ts'
import { readMember } from './remove-calls.ts'
import { applyDropped, applyLook, kindOf } from './remove-giveup.ts'
import { allAbsent, readAll, stepGroup } from './remove-group.ts'
import { judge } from './remove-judge.ts'
import { currentMember } from './remove-members.ts'
import { loadRemovals, type RemovalWork } from './remove-load.ts'
import { needsPerson } from './remove-stop.ts'
import { createTools } from './remove-tools.ts'
import { seeLeft } from './removal-left.ts'
import { identitiesOf, plannedOf } from './removal-row.ts'

/** Another replica, or this one after an upgrade, may be able to read it by then. */
const unreadableAgainMs = 60_000

const keyOf = (row: { scope: string; ref: string; instance_id: string }, attemptId: string): RemovalKey => ({
  scope: row.scope,
  ref: row.ref,
  instanceId: row.instance_id,
  attemptId,
})

export const removePipeline = (context: EngineContext): PipelineSpec => {
  const { store, log } = context
  const tools = createTools(context)
  const { installation } = tools
  const reach = createReach()
  const load = coalesce((ids: string[]) => loadRemovals(store, ids), { largest: 100 })

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
      passWaits(error)
      return { error: errorText(error), final: false }
    }
  }

  const admit = ({ removal }: RemovalWork, operation: OperationClass): Promise<void> =>
    context.budgets.admit({ provider: removal.provider, scope: removal.scope }, operation)

  const putOff = async (held: Held, work: RemovalWork, why: string): Promise<void> => {
    log.debug({ removal: work.removal.id, why }, 'a removal is out of reach')
    await store.write(async (tx) => applyPutOff(tx, held, tx.now + outOfReachMs, why))
  }

  /** The mode governs what was found, also in the middle of a plan; what was ended by its holder or clock goes in every mode. */
  const stoppedByMode = ({ removal }: RemovalWork): string | null => {
    if (!isFound(removal.cause)) return null
    const { value } = context.sweepSettings(removal.provider).mode
    return value === 'delete' ? null : `mode ${value}`
  }

  /** Has it gone by other hands? Read, and nothing else: taking it back is the sweeps' matter now, or a person's. Of a group all must be gone. */
  const lookAtGivenUp = async (held: Held, work: RemovalWork): Promise<void> => {
    const { removal } = work
    const provider = context.providers.get(removal.provider)
    const later = (seen: Seen | null = null): Promise<void> => store.write((tx) => applyLook(tx, held, work, seen, provider))
    const recorded = identityOf(work.attempt)
    const bound = [...identitiesOf(removal), ...(removal.identity === null ? plannedOf(removal) : [])]
    // Also what its attempt recorded beside what is bound: only with that is it over.
    const members = recorded === null || bound.some((one) => one.immutableId === recorded.immutableId) ? bound : [...bound, recorded]
    if (!provider || members.length === 0 || work.backendMissing) return later()
    if ((await reach(provider, work.config, removal.scope, held.signal)) !== null) return later()
    await admit(work, 'read')
    const reads = await readAll(tools, work, provider, members, held.signal)
    const one = allAbsent(held, work, reads)
    // Where nothing is bound, its recorded machine is not all there may be.
    if (one === undefined || (removal.identity === null && !(await nothingLeftOf(work, provider, members, held.signal))))
      return later(isGroup(work, provider) ? await seeLeft(context, work, held.signal) : null)
    await tools.finish(one)
    tools.settle(work)
  }

  /** One resource is all there is: its exact not-found is the proof, and needs nobody (leases R80). */
  const stepOne = async (held: Held, work: RemovalWork, provider: Provider, identity: ResourceIdentity): Promise<void> => {
    const judged = judge(work, identity, await readMember(context.keyring, work, provider, identity, held.signal), installation)
    if (judged.kind === 'failed')
      return tools.failed({
        held,
        work,
        error: judged.error,
        contradiction: judged.contradiction ? resourceKey(work.removal.provider, identity.location, identity.nativeId) : null,
      })
    if (judged.kind === 'absent') {
      await tools.finish({ held, work, identity, proof: judged.proof, contradictions: judged.contradictions })
      return tools.settle(work)
    }
    // Nothing of it is a member but itself, so whatever goes along is somebody's.
    const [along] = judged.found.takesAlong ?? []
    if (along !== undefined && judged.existence === 'exists') {
      const why = `${identity.kind} ${identity.nativeId} would take ${along} along, which is not a part of what is taken back`
      if (isFound(work.removal.cause)) return store.write((tx) => applyDropped(tx, held, work, why))
      return tools.failed({
        held,
        work,
        error: why,
        contradiction: resourceKey(work.removal.provider, identity.location, identity.nativeId),
      })
    }
    const proof = tools.proofOf(held, work, provider, identity, judged.contradictions)
    const answer = await tools.take(held, work, provider, identity, judged, proof)
    if (answer?.kind !== 'gone') return
    const gone = await proof.wait()
    if (gone) await tools.finish(gone)
    else await store.write((tx) => applyPoll(tx, held, work))
    tools.settle(work)
  }

  const process = async (held: Held): Promise<void> => {
    const work = await load(held.id)
    if (!work || isOverRemoval(work.removal.state)) return store.write((tx) => applyPutOff(tx, held, null))
    const unreadable = whyUnreadable(work.removal)
    if (unreadable !== null) return store.write((tx) => needsPerson(tx, held, work, unreadable, null, tx.now + unreadableAgainMs))
    if (work.removal.state === 'gave-up') return lookAtGivenUp(held, work)
    if (work.backendMissing && kindOf(work) === 'unheld')
      return tools.giveUp(held, work, `backend ${work.removal.backend} does not exist any more`)
    const holder = heldBy(work.target, work.holds, work.frozenScopes) ?? stoppedByMode(work)
    const provider = context.providers.get(work.removal.provider)
    if (!provider) return putOff(held, work, `this coordinator has no provider "${work.removal.provider}"`)
    const unreached = await reach(provider, work.config, work.removal.scope, held.signal)
    // Another's row waits for those who reach it; where nobody can say which account this is, the try has failed (leases R40).
    // What is held is tried by nobody, so nothing of it fails, and no budget runs.
    if (unreached !== null && unreached.failed && holder === null)
      return tools.failed({ held, work, error: unreached.why, contradiction: null })
    if (unreached !== null) return putOff(held, work, unreached.why)
    if (holder !== null) {
      // "Not this" holds for the box's own clock too.
      const recorded = identityOf(work.attempt)
      const { config, attempt } = work
      const instanceId = attempt.instance_id
      const madeAt = attempt.opened_at
      if (recorded) await rearm(context, { provider, identity: recorded, config, instanceId, madeAt, held, table: 'removals' })
      return store.write((tx) => applyHeld(tx, held, work, holder))
    }
    const mismatch = keyMismatch(keyOf(work.removal, work.removal.attempt_id), {
      attempt: keyOf(work.attempt, work.attempt.id),
      members: [...identitiesOf(work.removal), ...plannedOf(work.removal)],
    })
    if (mismatch !== null) return store.write((tx) => needsPerson(tx, held, work, `nothing was touched: ${mismatch}`))
    await admit(work, work.removal.state === 'verifying' ? 'read' : 'delete')
    const members = identitiesOf(work.removal)
    // All of it is gone by its progress: what else its attempt recorded is no member, and is not taken for one.
    if (members.length > 1 || (members.length === 1 && currentMember(work.removal) === undefined))
      return stepGroup(tools, held, work, provider)
    const identity = await identityFor(work, provider, held.signal)
    if ('error' in identity) {
      if (identity.final) return store.write((tx) => needsPerson(tx, held, work, identity.error))
      return tools.failed({ held, work, error: identity.error, contradiction: null })
    }
    if (members.length === 1 || !isGroup(work, provider)) return stepOne(held, work, provider, identity)
    const planned = plannedOf(work.removal)
    const bound = await bindGroup(tools, held, work, provider, planned.length > 0 ? planned : [identity])
    if (bound === undefined) return
    const [only, ...others] = identitiesOf(bound.removal)
    if (only && others.length === 0) return stepOne(held, bound, provider, only)
    return stepGroup(tools, held, bound, provider)
  }

  return { name: 'remove', table: 'removals', capacity: 500, process }
}
