import { setTimeout as sleep } from 'node:timers/promises'

/** Polls until `probe` answers something else than undefined, null or false; throws with `what` after `deadlineMs`. */
export const until = async <T>(probe: () => T | Promise<T>, what: string, deadlineMs = 10_000): Promise<NonNullable<T>> => {
  const end = performance.now() + deadlineMs
  for (;;) {
    const value = await probe()
    if (value !== undefined && value !== null && value !== false) return value
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await sleep(20)
  }
}
