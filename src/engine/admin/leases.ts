/** What an administrator does to leases of others: by the same path as their holders (leases R29). */
import type { LeaseView } from '../../model/wire.ts'
import { requireAdmin, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { getLease, releaseLease } from '../leases/index.ts'

/** @throws LeaseholdError forbidden, not_found, cleanup_in_progress */
export const adminRelease = async (context: EngineContext, actor: Actor, key: string, remove: boolean | undefined): Promise<LeaseView> => {
  requireAdmin(actor)
  return releaseLease(context, actor, key, remove === undefined ? {} : { delete: remove })
}

const pollMs = 500

/**
 * Releases, kept or not, and waits for the proof that the box is gone.
 * @param ms how long to wait; the lease is answered as it then is
 * @param signal ends the wait earlier
 * @throws LeaseholdError forbidden, not_found
 */
export const adminDelete = async (
  context: EngineContext,
  actor: Actor,
  key: string,
  ms: number,
  signal: AbortSignal,
): Promise<LeaseView> => {
  const released = await adminRelease(context, actor, key, true)
  const end = performance.now() + ms
  for (;;) {
    const left = end - performance.now()
    // Listen before looking: a change between the two is not missed.
    const change = left > 0 && !signal.aborted ? context.signals.nextChange(released.id, Math.min(pollMs, left)) : undefined
    const lease = await getLease(context, actor, released.id)
    if (lease.cleanup.state === 'gone' || !change) return lease
    await change
  }
}
