import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseView } from '../../model/wire.ts'
import { ApiError, type Client } from './http.ts'
import { leasePath } from './leases.ts'

/** Seconds between heartbeats: a third of the idle time, from 0.3 to 60 (decisions, Defaults; leases R26). */
export const beatSeconds = (idleTimeoutSeconds: number): number => Math.min(60, Math.max(0.3, idleTimeoutSeconds / 3))

/** After a beat that got no answer, sooner than the next regular one. */
const retrySeconds = 5
const budgetMs = 20_000

/** One heartbeat, within its 20 s. */
export const beat = async (
  client: Client,
  leaseID: string,
  body: { idleTimeoutSeconds?: number; expectedProvider?: string } = {},
  signal?: AbortSignal,
): Promise<LeaseView> => {
  const options = { body, deadlineMs: budgetMs, ...(signal ? { signal } : {}) }
  return (await client.call<{ lease: LeaseView }>('POST', `${leasePath(leaseID)}/heartbeat`, options)).body.lease
}

/** Beats until stopped. `ended` is told once, when the coordinator says that there is nothing to beat for any more; all else is tolerated. */
export const keepBeating = (client: Client, lease: LeaseView, ended: (why: string) => void): { stop: () => void } => {
  const controller = new AbortController()
  const { signal } = controller
  const loop = async (): Promise<void> => {
    let seconds = beatSeconds(lease.idleTimeoutSeconds)
    for (;;) {
      await sleep(seconds * 1000, undefined, { signal })
      try {
        seconds = beatSeconds((await beat(client, lease.id, {}, signal)).idleTimeoutSeconds)
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof ApiError && (error.status === 409 || error.status === 404 || error.status === 403)) return ended(error.message)
        seconds = Math.min(beatSeconds(lease.idleTimeoutSeconds), retrySeconds)
      }
    }
  }
  // The only way out by an error is the stop itself.
  void loop().catch(() => {})
  return { stop: () => controller.abort() }
}
