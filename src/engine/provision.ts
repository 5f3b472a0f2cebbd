/**
 * Making what was reserved. Owner, ledger row and attempt are committed before this pipeline sees them (I1); it calls the provider, records what it
 * learned, and after a crash looks the attempt up by its ref before it does anything else (orphans R7, leases R8).
 */
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import { brokeredLabels, fleetLabels } from '../model/labels.ts'
import { judgeLookUp, nextStep } from '../model/provision.ts'
import type { CreateOutcome, FindOutcome, Provider } from '../providers/contract.ts'
import type { OperationClass } from '../model/budget.ts'
import { passWaits } from './budget/waits.ts'
import { leaseToken } from './lease-token.ts'
import { providerOf, type EngineContext } from './context.ts'
import { attemptFacts } from './facts.ts'
import { isFleetUpkeep, tendFleetBox } from './fleet/upkeep.ts'
import { wakeFleet } from './fleet/wake.ts'
import { stillStands, type Held, type PipelineSpec } from './pipeline.ts'
import { graceAfterCoordinatorSeconds } from './rearm.ts'
import { createReach, outOfReachMs } from './reach.ts'
import { closeUnmade, giveUp, openNextAttempt } from './provision-end.ts'
import { applyCreated, applyRejected, applyThrottled, applyUncertain, beginCall } from './provision-call.ts'
import { applyContradiction, applyFound, applyNotFound, applyUnclear, putOff } from './provision-lookup.ts'
import { lifetimeMs, loadProvision, type ProvisionWork } from './provision-load.ts'
import { pollReadiness, takeBackBound } from './provision-bound.ts'

const callCreate = async (
  context: EngineContext,
  provider: Provider,
  work: ProvisionWork,
  mac: string | null,
  deadlineMs: number,
  held: Held,
): Promise<CreateOutcome> => {
  const { instance, attempt, lease, fleet } = work
  if (!attempt) return { kind: 'rejected', code: 'internal', message: 'no attempt is open' }
  const now = await context.store.now()
  const request = {
    ref: instance.ref,
    installation: context.installation.installation_id,
    attemptNumber: attempt.number,
    attemptToken: attempt.token,
    mac,
    // A fleet's box has one holder after another, so nothing of one is written on it.
    leaseId: fleet ? null : (lease?.id ?? null),
    name: instance.name,
    project: instance.project,
    location: attempt.location,
    labels: fleet
      ? fleetLabels(
          { fleet: fleet.name, provider: instance.provider, createdAtMs: instance.created_at },
          JSON.parse(fleet.labels) as Record<string, string>,
        )
      : lease
        ? brokeredLabels(
            {
              leaseId: lease.id,
              slug: lease.slug,
              owner: lease.owner,
              provider: lease.provider,
              keep: lease.keep === 1,
              createdAtMs: lease.created_at,
              expiresAtMs: lease.expires_at,
              ttlSeconds: lease.ttl_seconds,
              idleSeconds: lease.idle_seconds,
            },
            JSON.parse(lease.labels) as Record<string, string>,
          )
        : {},
    secretEnvironment: lease && !fleet ? { LEASEHOLD_LEASE_TOKEN: leaseToken(context.installation.secret, lease.id) } : {},
    maximumLifetimeSeconds: Math.max(1, Math.ceil(lifetimeMs(lease, now) / 1000)) + graceAfterCoordinatorSeconds,
    config: work.config,
  }
  let creating: Promise<CreateOutcome> | undefined
  try {
    return await withDeadline(
      `creating ${instance.name}`,
      deadlineMs,
      held.signal,
      (signal) => (creating = provider.create(request, { signal })),
    )
  } catch (error) {
    // We go on without the answer, but should it still come, what it says is kept: it wins over whatever was concluded meanwhile.
    creating
      ?.then(
        async (late) => {
          if (late.kind === 'created') await context.store.write((tx) => applyCreated(tx, held, work, late.resource, late.ready))
        },
        () => {},
      )
      .catch((failure: unknown) =>
        context.log.error({ instance: instance.id, error: errorText(failure) }, 'a late answer could not be recorded'),
      )
    return { kind: 'uncertain', message: errorText(error), resource: null }
  }
}

const lookUp = async (provider: Provider, work: ProvisionWork, held: Held): Promise<FindOutcome> => {
  try {
    return await withDeadline('looking the attempt up', provider.callDeadlineSeconds * 1000, held.signal, (signal) =>
      provider.find(work.instance.ref, work.config, { signal }),
    )
  } catch (error) {
    passWaits(error)
    return { kind: 'incomplete', why: errorText(error) }
  }
}

/** What a step asks of the provider, where it asks anything. */
const callOf: Partial<Record<ReturnType<typeof nextStep>['kind'], OperationClass>> = { call: 'create', 'look-up': 'read', poll: 'read' }

export const provisionPipeline = (context: EngineContext): PipelineSpec => {
  const { store, signals } = context
  const reach = createReach()

  const create = async (held: Held, work: ProvisionWork, provider: Provider): Promise<void> => {
    const deadlineMs = provider.createDeadlineSeconds * 1000
    const caller = {
      replicaId: context.replicaId,
      installation: context.installation.installation_id,
      deadlineMs,
      writesMac: provider.writesMac === true,
    }
    const begun = await store.write((tx) => beginCall(tx, held, work, caller))
    // Not ours any more, or no longer wanted: the provider is not called.
    if (begun === null || !stillStands(held)) return
    const outcome = await callCreate(context, provider, work, begun.mac, deadlineMs, held)
    switch (outcome.kind) {
      case 'created':
        return store.write((tx) => applyCreated(tx, held, work, outcome.resource, outcome.ready))
      case 'rejected':
        if (outcome.rate?.throttled === true) return store.write((tx) => applyThrottled(tx, held, work))
        return store.write((tx) => applyRejected(tx, held, work, outcome))
      case 'uncertain':
        return store.write((tx) => applyUncertain(tx, held, work, provider, outcome))
    }
  }

  const find = async (held: Held, work: ProvisionWork, provider: Provider): Promise<void> => {
    if (!work.attempt) return
    const found = await lookUp(provider, work, held)
    if (found.kind === 'incomplete') return store.write((tx) => applyUnclear(tx, held, work, found.why))
    const verdict = judgeLookUp(found.found, work.attempt.token, work.instance.ref, context.installation.installation_id)
    switch (verdict.kind) {
      case 'none':
        // Something carries the ref and is not what an attempt made, or can't be told: that is no absence, and nothing is made a second time (leases R9).
        if (found.contradictions.length > 0)
          return store.write((tx) =>
            applyContradiction(tx, held, work, found.contradictions.map((one) => `${one.nativeId}: ${one.why}`).join('; ')),
          )
        return store.write((tx) => applyNotFound(tx, held, work, provider))
      case 'contradiction':
        return store.write((tx) => applyContradiction(tx, held, work, verdict.why))
      case 'one': {
        const why = await context.keyring.whyNotOurs(verdict.candidate, work.attempt.mac_key)
        if (why !== null) return store.write((tx) => applyContradiction(tx, held, work, why))
        return store.write((tx) => applyFound(tx, held, work, verdict.candidate, verdict.adoptable))
      }
    }
  }

  const process = async (held: Held): Promise<void> => {
    const now = await store.now()
    const work = await store.read((session) => loadProvision(session, held.id, now))
    if (!work) return
    // Nothing that has ended is made again, whatever made it due (I9).
    if (work.instance.state === 'terminated') return store.write((tx) => putOff(tx, held, work, null))
    const provider = providerOf(context, work.instance.provider)
    const unreached = work.attempt ? await reach(provider, work.config, work.attempt.scope, held.signal) : null
    if (unreached !== null) {
      context.log.debug({ instance: work.instance.id, why: unreached.why }, 'an instance is out of reach')
      return store.write((tx) => putOff(tx, held, work, outOfReachMs))
    }
    if (isFleetUpkeep(work.instance)) return tendFleetBox(context, held, work, provider)
    const step = nextStep(work.attempt && attemptFacts(work.attempt), work.wanted)
    const operation = callOf[step.kind]
    if (operation !== undefined && work.attempt)
      await context.budgets.admit({ provider: provider.name, scope: work.attempt.scope }, operation)
    switch (step.kind) {
      case 'call':
        await create(held, work, provider)
        break
      case 'look-up':
        await find(held, work, provider)
        break
      case 'poll':
        await pollReadiness(context, held, work, provider)
        break
      case 'take-back':
        await store.write((tx) => takeBackBound(tx, held, work))
        break
      case 'close-unmade':
        await store.write((tx) => closeUnmade(tx, held, work))
        break
      case 'next-attempt':
        await store.write((tx) => openNextAttempt(tx, held, work))
        break
      case 'give-up':
        await store.write((tx) => giveUp(tx, held, work, 'create_interrupted', 'the create was interrupted, and nothing of it exists'))
        break
      default:
        step satisfies never
    }
    if (work.lease) signals.changed(work.lease.id)
    if (work.instance.fleet !== null) await wakeFleet(context, work.instance.project, work.instance.fleet)
    signals.wake('remove')
    signals.wake('provision')
  }

  return { name: 'provision', table: 'instances', capacity: 256, process }
}
