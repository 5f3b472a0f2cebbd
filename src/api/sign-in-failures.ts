/** Failed sign-ins per address: 20 at once, then 10 a minute. A valid token is never slowed down, so no heartbeat is lost to somebody else's mistakes. */

const burst = 20
const perMs = 10 / 60_000
const mostAddresses = 10_000

export interface SignInFailures {
  /** Counts one. @returns 0 while it is within bounds, else the seconds until the next one is */
  count(address: string): number
}

/** @param now monotonic, ms */
export const createSignInFailures = (now: () => number = () => performance.now()): SignInFailures => {
  const buckets = new Map<string, { left: number; at: number }>()
  return {
    count: (address) => {
      const at = now()
      const known = buckets.get(address)
      const left = known ? Math.min(burst, known.left + (at - known.at) * perMs) : burst
      // The oldest are forgotten first: an address that fails on stays.
      buckets.delete(address)
      if (buckets.size >= mostAddresses) buckets.delete(buckets.keys().next().value as string)
      const within = left >= 1
      buckets.set(address, { left: within ? left - 1 : left, at })
      return within ? 0 : Math.ceil((1 - left) / perMs / 1000)
    },
  }
}
