/** Requests of a client that lives with replicas that die, stand still and hang: each is asked for briefly, then another is asked the same. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from '../simulation/engine/random.ts'
import type { Answer } from '../support/coordinator.ts'

export interface Caller {
  /**
   * Asks one replica after the other until one answers with something that stands.
   * @returns null: the run is over, and nobody answered
   */
  call<T>(method: string, path: string, body?: unknown): Promise<Answer<T> | null>
}

/** Sent again: not there, not reachable, busy, or full for now. */
const passing = new Set([429, 500, 502, 503, 504])
const patienceMs = 4_000
/** Who did not answer is left alone for so long. */
const avoidMs = 10_000

export interface Callers {
  urls: readonly string[]
  token: string
  chance: Chance
  /** No more is asked for. */
  over: () => boolean
  /** An answer that is passed over: which status, of what. */
  passedOver: (status: number, what: string, body: unknown) => void
}

const askOnce = async <T>(url: string, token: string, method: string, path: string, body: unknown): Promise<Answer<T>> => {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(patienceMs),
  })
  return { status: response.status, body: (await response.json()) as T }
}

export const createCaller = ({ urls, token, chance, over, passedOver }: Callers): Caller => {
  const avoided = new Map<string, number>()
  const choose = (): string => {
    const likely = urls.filter((url) => (avoided.get(url) ?? 0) < performance.now())
    return chance.of(likely.length > 0 ? likely : urls)
  }
  return {
    async call<T>(method: string, path: string, body?: unknown) {
      for (;;) {
        const url = choose()
        try {
          const answer = await askOnce<T>(url, token, method, path, body)
          if (!passing.has(answer.status)) return answer
          passedOver(answer.status, `${method} ${path}`, answer.body)
        } catch (error) {
          // It died, stands still, or was cut off: what it did of this is not known, so the same is asked again.
          if ((error as Error).name === 'TimeoutError') avoided.set(url, performance.now() + avoidMs)
        }
        if (over()) return null
        await sleep(30 + chance.pick(100))
      }
    },
  }
}
