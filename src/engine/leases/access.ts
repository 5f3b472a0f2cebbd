/**
 * What a beat does for the way into a box: after the touch is durable, outside every lock, and never as a reason to refuse it (leases R25). A box that can
 * no longer be entered is a warning on the lease, which the next beat or read shows.
 */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { isOverRemoval } from '../../model/removal.ts'
import { identityOf, type AttemptRow } from '../../store/attempts.ts'
import { findBackend } from '../../store/backends.ts'
import { removalsOfLeases } from '../../store/removals.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { ResourceIdentity } from '../../providers/contract.ts'
import { WaitsForBudget } from '../budget/waits.ts'
import { providerOf, type EngineContext } from '../context.ts'

/** A holder that beats faster than this asks no more of the provider. */
const everyMs = 60_000
const atOnce = 16
const remembered = 20_000

const ask = async (context: EngineContext, lease: LeaseRow, identity: ResourceIdentity): Promise<string | null | undefined> => {
  const provider = providerOf(context, lease.provider)
  const refresh = provider.refreshAccess?.bind(provider)
  const backend = await context.store.read((session) => findBackend(session, lease.project, lease.backend))
  // Nobody can be asked: what was known stays.
  if (!refresh || !backend) return undefined
  try {
    const answer = await withDeadline(
      `refreshing the access to ${identity.nativeId}`,
      provider.callDeadlineSeconds * 1000,
      new AbortController().signal,
      (signal) => refresh(identity, JSON.parse(backend.config) as Record<string, unknown>, { signal }),
    )
    return answer.warning
  } catch (error) {
    if (error instanceof WaitsForBudget) return undefined
    return `its access could not be refreshed: ${errorText(error)}`
  }
}

/** Only the one field, and only while the lease is active and nothing takes its box back. */
const merge = (context: EngineContext, lease: LeaseRow, warning: string | null): Promise<void> =>
  context.store.write(async (tx) => {
    if ((await removalsOfLeases(tx, [lease.id])).some((row) => !isOverRemoval(row.state))) return
    await tx.db
      .updateTable('leases')
      .set({ access_warning: warning, updated_at: tx.now })
      .where('id', '=', lease.id)
      .where('state', '=', 'active')
      .execute()
  })

/** @returns what a beat calls once it is durable; it waits for nothing */
export const createAccessRefresh = (context: EngineContext): ((lease: LeaseRow, attempt: AttemptRow | undefined) => void) => {
  const lastAsked = new Map<string, number>()
  let working = 0
  return (lease, attempt) => {
    if (lease.state !== 'active' || context.providers.get(lease.provider)?.refreshAccess === undefined) return
    const identity = attempt ? identityOf(attempt) : null
    const now = performance.now()
    if (!identity || working >= atOnce || now - (lastAsked.get(lease.id) ?? -Infinity) < everyMs) return
    lastAsked.delete(lease.id)
    lastAsked.set(lease.id, now)
    if (lastAsked.size > remembered) lastAsked.delete(lastAsked.keys().next().value as string)
    working++
    void ask(context, lease, identity)
      .then(async (warning) => {
        if (warning !== undefined && warning !== lease.access_warning) await merge(context, lease, warning)
      })
      .catch((error: unknown) => context.log.debug({ lease: lease.id, error: errorText(error) }, 'an access warning could not be noted'))
      .finally(() => {
        working--
      })
  }
}
