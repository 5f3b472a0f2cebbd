/**
 * Tells waiting readers that the feed has grown. However many wait, one look at the database is made per interval, and none
 * while nobody waits. It asks the database rather than this process, so events of other replicas are seen alike.
 */
import { newestEvent } from '../../store/events.ts'
import type { Store } from '../../store/store.ts'

const everyMs = 250

export interface FeedWatch {
  /** Resolves once an event beyond `seq` exists, after `ms`, or when the signal ends; holds no connection meanwhile. */
  beyond(seq: number, ms: number, signal: AbortSignal): Promise<void>
}

interface Waiter {
  seq: number
  done: () => void
}

/** @param onError what is known of a failed look; the next one is made all the same */
export const createFeedWatch = (store: Store, onError: (error: unknown) => void): FeedWatch => {
  const waiters = new Set<Waiter>()
  let looking = false

  const look = async (): Promise<void> => {
    try {
      const newest = await newestEvent(store)
      for (const waiter of waiters) if (newest > waiter.seq) waiter.done()
    } catch (error) {
      onError(error)
    }
    if (waiters.size === 0) looking = false
    else setTimeout(() => void look(), everyMs)
  }

  return {
    beyond: (seq, ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted || ms <= 0) return resolve()
        const waiter: Waiter = {
          seq,
          done: () => {
            clearTimeout(timer)
            signal.removeEventListener('abort', waiter.done)
            waiters.delete(waiter)
            resolve()
          },
        }
        const timer = setTimeout(waiter.done, ms)
        signal.addEventListener('abort', waiter.done, { once: true })
        waiters.add(waiter)
        if (looking) return
        looking = true
        void look()
      }),
  }
}
