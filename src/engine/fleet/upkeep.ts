/**
 * Looking after a fleet's box that is made: one that waits is read and its dead-man clock moved, one that a lease has just taken gets the clock of that
 * lease, and one that was given back is wiped.
 */
import { retainSeconds } from '../../model/clocks.ts'
import { idleLifeMs, upkeepMs } from '../../model/fleet.ts'
import type { Provider, ResourceIdentity } from '../../providers/contract.ts'
import { attemptById, identityOf, type AttemptRow } from '../../store/attempts.ts'
import { unlocked } from '../../store/due.ts'
import type { InstanceRow } from '../../store/instances.ts'
import type { EngineContext } from '../context.ts'
import { openRemovals } from '../open-removals.ts'
import type { Held } from '../pipeline.ts'
import { clockOf, lifetimeMs, reload, type ProvisionWork } from '../provision-load.ts'
import { graceAfterCoordinatorSeconds, rearm } from '../rearm.ts'
import { disown, ownAgain } from './disown.ts'
import { lookAt } from './look.ts'
import { settle } from './settle.ts'
import { wakeFleet } from './wake.ts'
import { wipeBox } from './wipe.ts'

const retryMs = 30_000

/** Made already, so that the provision pipeline has nothing to make. */
export const isFleetUpkeep = (instance: Pick<InstanceRow, 'fleet' | 'state'>): boolean =>
  instance.fleet !== null && (instance.state === 'idle' || instance.state === 'busy')

const died = async (context: EngineContext, held: Held, work: ProvisionWork): Promise<void> => {
  await context.store.write(async (tx) => {
    const fresh = await reload(tx, held, work)
    const attempt =
      fresh?.instance.state === 'idle' && fresh.instance.attempt_id ? await attemptById(tx, fresh.instance.attempt_id) : undefined
    if (!fresh || !attempt) return
    await tx.db.updateTable('instances').set(unlocked(null)).where('id', '=', fresh.instance.id).execute()
    // It may have ended and still be there: only its absence, proved, is its end.
    await openRemovals(tx, [{ instance: fresh.instance, lease: null, attempt, cause: 'fleet-died' }])
  })
  context.signals.wake('remove')
}

const tendIdle = async (
  context: EngineContext,
  held: Held,
  work: ProvisionWork,
  provider: Provider,
  attempt: AttemptRow,
  identity: ResourceIdentity,
): Promise<void> => {
  const now = await context.store.now()
  const look = await lookAt(context, work, attempt, provider, identity, held.signal)
  if (look.kind === 'ended') return died(context, held, work)
  if (look.kind === 'contradiction') return disown(context, held, work, identity, look.why)
  // Not given out once the last good look is too old, and not touched.
  if (look.kind === 'unknown') return settle(context, held, work, { dueIn: retryMs })
  await ownAgain(context, work, identity)
  const moved = await rearm(context, clockOf(held, work, provider, identity), retainSeconds)
  return settle(context, held, work, { dueIn: upkeepMs, checked_at: now, ...(moved === 'moved' ? { dead_at: now + idleLifeMs } : {}) })
}

/** Its clock ends with its lease from here on; until that is done it lives longer, and the coordinator ends it all the same. */
const arm = async (
  context: EngineContext,
  held: Held,
  work: ProvisionWork,
  provider: Provider,
  identity: ResourceIdentity,
): Promise<void> => {
  const { lease } = work
  if (lease?.state !== 'active' || provider.rearm === undefined) return settle(context, held, work, { dueIn: null })
  const now = await context.store.now()
  const leftMs = lifetimeMs(lease, now)
  // Its clock has it: it is taken back.
  if (leftMs <= 0) return settle(context, held, work, { dueIn: null })
  const seconds = Math.max(1, Math.ceil(leftMs / 1000)) + graceAfterCoordinatorSeconds
  const moved = await rearm(context, clockOf(held, work, provider, identity), seconds)
  return settle(context, held, work, moved === 'moved' ? { dueIn: null, dead_at: now + seconds * 1000 } : { dueIn: retryMs })
}

export const tendFleetBox = async (context: EngineContext, held: Held, work: ProvisionWork, provider: Provider): Promise<void> => {
  const { instance } = work
  const attempt =
    instance.attempt_id === null ? undefined : await context.store.read((session) => attemptById(session, instance.attempt_id as string))
  const identity = attempt ? identityOf(attempt) : null
  if (!attempt || !identity) return settle(context, held, work, { dueIn: null })
  if (instance.state === 'idle') await tendIdle(context, held, work, provider, attempt, identity)
  else if (instance.wiping_since !== null) await wipeBox(context, held, work, provider, attempt, identity)
  else return arm(context, held, work, provider, identity)
  await wakeFleet(context, instance.project, instance.fleet as string)
}
