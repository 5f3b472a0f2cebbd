/** Moves the dead-man clock of a box that stays although its lease is over: retained, or held back from its removal. */
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import { retainSeconds } from '../model/clocks.ts'
import type { Provider, ResourceIdentity } from '../providers/contract.ts'
import type { EngineContext } from './context.ts'

/** The coordinator comes first: only without one does the box end itself, this much later. */
export const graceAfterCoordinatorSeconds = 1

/**
 * To 24 h from now: the coordinator's last word (leases R37). A failure is logged; the next look tries again.
 * @returns whether it was moved
 */
export const rearm = async (
  context: EngineContext,
  provider: Provider,
  identity: ResourceIdentity,
  config: Record<string, unknown>,
  signal: AbortSignal,
  lifetimeSeconds = retainSeconds,
): Promise<boolean> => {
  const move = provider.rearm?.bind(provider)
  if (!move) return false
  try {
    await withDeadline(`re-arming ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, signal, (inner) =>
      move(identity, lifetimeSeconds, config, { signal: inner }),
    )
    return true
  } catch (error) {
    context.log.warn({ box: identity.nativeId, error: errorText(error) }, 'the dead-man clock of a box that stays could not be moved')
    return false
  }
}
