/** An attempt whose resource is known: made ready for its lease, kept for a release that said so, or taken back. */
import { retainSeconds } from '../model/clocks.ts'
import { upkeepMs } from '../model/fleet.ts'
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import { unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { identityOf, type AttemptRow } from '../store/attempts.ts'
import type { Tx } from '../store/store.ts'
import type { Provider } from '../providers/contract.ts'
import { passWaits } from './budget/waits.ts'
import type { EngineContext } from './context.ts'
import type { RemovalCause } from './ended.ts'
import { openRemovals } from './open-removals.ts'
import type { Held } from './pipeline.ts'
import { lifetimeMs, reload, type ProvisionWork } from './provision-load.ts'
import { event, fleetTarget, instanceTarget, leaseTarget, resolveAbout } from './record.ts'

const readyPollMs = 2_000
const endedCause = {
  cancelled: 'cancelled',
  released: 'released',
  expired: 'expired',
  failed: 'create-interrupted',
} as const satisfies Record<string, RemovalCause>

/** Gives the instance its bound attempt; the caller holds its locks and has just read `work`. */
export const bind = async (tx: Tx, work: ProvisionWork & { attempt: AttemptRow }, ready: boolean, adopted = false): Promise<void> => {
  const { instance, lease, attempt, wanted, fleet } = work
  await resolveAbout(tx, 'instance', [instance.id], 'contradiction')
  const set = { scope: attempt.scope, location: attempt.location, attempt_id: attempt.id, changed_at: tx.now }
  if (wanted.kind === 'ended' && !wanted.keepsBox) {
    await tx.db
      .updateTable('instances')
      .set({ ...set, ...unlocked(null) })
      .where('id', '=', instance.id)
      .execute()
    if (lease) await tx.db.updateTable('leases').set({ may_exist: 0, due_at: null }).where('id', '=', lease.id).execute()
    return openRemovals(tx, [{ instance, lease, attempt, cause: endedCause[wanted.cause] }])
  }
  const keeps = wanted.kind === 'ended'
  const done = ready || keeps
  const waits = lease === null
  await tx.db
    .updateTable('instances')
    .set({
      ...set,
      state: !done ? 'provisioning' : waits ? 'idle' : 'busy',
      ...unlocked(!done ? tx.now + readyPollMs : waits ? tx.now + upkeepMs : null),
      // Counted from before the call, so that the box outlives it.
      ...(fleet === null
        ? {}
        : { dead_at: (attempt.called_at ?? tx.now) + lifetimeMs(lease, attempt.called_at ?? tx.now), checked_at: tx.now }),
    })
    .where('id', '=', instance.id)
    .execute()
  if (!done) return
  const cloudId = attempt.native_id ?? attempt.ref
  if (!lease) {
    const about = { project: instance.project, targets: [...(fleet ? [fleetTarget(fleet)] : []), instanceTarget(instance)] }
    return appendEvents(tx, [event(tx, 'fleet.box-ready', { cloudId, adopted }, about)])
  }
  if (keeps) {
    const until = lease.retain_until ?? tx.now + retainSeconds * 1000
    await tx.db
      .updateTable('leases')
      .set({ may_exist: 0, retain_until: until, due_at: tx.now, updated_at: tx.now })
      .where('id', '=', lease.id)
      .execute()
    return
  }
  await tx.db.updateTable('leases').set({ state: 'active', may_exist: 0, updated_at: tx.now }).where('id', '=', lease.id).execute()
  const targets = [leaseTarget(lease), instanceTarget(instance)]
  await appendEvents(tx, [event(tx, 'lease.active', { cloudId, adopted }, { project: instance.project, targets })])
}

export const takeBackBound = async (tx: Tx, held: Held, work: ProvisionWork): Promise<void> => {
  const fresh = await reload(tx, held, work)
  if (fresh?.attempt?.outcome === 'bound') await bind(tx, { ...fresh, attempt: fresh.attempt }, false)
}

/** Is what was made ready by now? Read, never created again. */
export const pollReadiness = async (context: EngineContext, held: Held, work: ProvisionWork, provider: Provider): Promise<void> => {
  const identity = work.attempt ? identityOf(work.attempt) : null
  if (!identity) return
  const read = await withDeadline('reading readiness', provider.callDeadlineSeconds * 1000, held.signal, (signal) =>
    provider.read(identity, work.config, { signal }),
  ).catch((error: unknown) => {
    passWaits(error)
    return { kind: 'unknown', error: errorText(error) } as const
  })
  await context.store.write(async (tx) => {
    const fresh = await reload(tx, held, work)
    if (!fresh?.attempt) return
    await bind(tx, { ...fresh, attempt: fresh.attempt }, read.kind === 'present' && read.found.existence === 'exists')
  })
}
