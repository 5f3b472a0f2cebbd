/** Moves the dead-man clock of a box: one that stays although its lease is over, and one of a fleet. No other file calls a provider's `rearm`. */
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import { retainSeconds } from '../model/clocks.ts'
import { anotherMayHave, type Stop } from '../model/stop.ts'
import type { Provider, ResourceIdentity } from '../providers/contract.ts'
import { heldNow, type QueueTable } from '../store/due.ts'
import { lookAgain } from '../store/fleets.ts'
import { instancesByIds } from '../store/instances.ts'
import { readObstacles, stopsAmong } from '../store/obstacles.ts'
import type { Session } from '../store/store.ts'
import type { EngineContext } from './context.ts'
import { stillStands, type Held } from './pipeline.ts'

/** The coordinator comes first: only without one does the box end itself, this much later. */
export const graceAfterCoordinatorSeconds = 1

export interface BoxClock {
  provider: Provider
  identity: ResourceIdentity
  config: Record<string, unknown>
  instanceId: string
  /** ms, when the box's record was made. */
  madeAt: number
  /** Whose row says that it is to be moved, and under which lock. */
  held: Held
  table: QueueTable
}

/**
 * - `stopped`: another database may have the box since (decisions 6). Its clock is left as that one set it.
 * - `none`: the provider has no clock to move.
 */
export type Moved = 'moved' | 'failed' | 'stopped' | 'none'

/** By the lock of the instance, which grows with each holder; null: the lock is not ours any more. */
const look = async (session: Session, { held, table, instanceId }: BoxClock): Promise<{ stops: Stop[]; order: number | null }> => {
  // Holds are asked for by whoever wants to remove: none of them bars a clock.
  const stops = stopsAmong(await readObstacles(session, 0))
  if (table === 'instances') return { stops, order: (await heldNow(session, table, [held])).size === 0 ? null : held.fence }
  const [instance] = await instancesByIds(session, [instanceId])
  return { stops, order: instance?.lock_fence ?? null }
}

/** A call that nobody waited for any more has ended: it may have landed behind that of a later holder, so a fleet's box is looked at afresh. */
const afterLate = async ({ store, signals, log }: EngineContext, { instanceId, identity }: BoxClock): Promise<void> => {
  try {
    await store.write((tx) => lookAgain(tx, instanceId))
    signals.wake('provision')
  } catch (error) {
    log.debug({ box: identity.nativeId, error: errorText(error) }, 'a clock that was moved late could not be looked at')
  }
}

/**
 * To 24 h from now: the coordinator's last word (leases R37). A failure is logged; the next look tries again.
 */
export const rearm = async (context: EngineContext, clock: BoxClock, lifetimeSeconds = retainSeconds): Promise<Moved> => {
  const { provider, identity, config, held } = clock
  const move = provider.rearm?.bind(provider)
  if (!move) return 'none'
  const { stops, order } = await context.store.read((session) => look(session, clock))
  if (anotherMayHave({ scope: identity.scope, at: clock.madeAt }, stops) !== null) return 'stopped'
  const stands = (): boolean => stillStands(held)
  if (order === null || !stands()) return 'failed'
  let moving: Promise<void> | undefined
  let answered = false
  try {
    await withDeadline(`re-arming ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, held.signal, (signal) => {
      const context = { signal, stands: () => !signal.aborted && stands(), order }
      return (moving = move(identity, lifetimeSeconds, config, context).finally(() => (answered = true)))
    })
    return 'moved'
  } catch (error) {
    if (!answered) void moving?.catch(() => {}).then(() => afterLate(context, clock))
    context.log.warn({ box: identity.nativeId, error: errorText(error) }, 'the dead-man clock of a box that stays could not be moved')
    return 'failed'
  }
}
