/**
 * Which account this process reaches. A row of another one (a box of another machine, an account whose credentials were swapped) is left to those
 * who reach it: not found *there* proves nothing about *here* (orphans U16, case leases 19).
 */
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import { passWaits } from './budget/waits.ts'
import type { Provider } from '../providers/contract.ts'

const rememberMs = 60_000
/** How soon a row that is out of reach is offered again. */
export const outOfReachMs = 5_000

export interface Unreached {
  why: string
  /** Nobody could say which account this is; false: it is another one, and its rows are left to those who reach it. */
  failed: boolean
}
/** @returns null when the scope is reached */
export type Reach = (provider: Provider, config: Record<string, unknown>, scope: string, signal: AbortSignal) => Promise<Unreached | null>

const elsewhere = (reached: string, scope: string): Unreached | null =>
  reached === scope ? null : { why: `this coordinator reaches ${reached}, not ${scope}`, failed: false }

export const createReach = (): Reach => {
  const known = new Map<string, { scope: string; until: number }>()
  return async (provider, config, scope, signal) => {
    const key = `${provider.name} ${JSON.stringify(config)}`
    const remembered = known.get(key)
    if (remembered && remembered.until > performance.now()) return elsewhere(remembered.scope, scope)
    const answer = await withDeadline(`reading the account of ${provider.name}`, provider.callDeadlineSeconds * 1000, signal, (inner) =>
      provider.scope(config, { signal: inner }),
    ).catch((error: unknown) => {
      passWaits(error)
      return { kind: 'unknown', error: errorText(error) } as const
    })
    if (answer.kind === 'unknown') return { why: `the account can't be read: ${answer.error}`, failed: true }
    known.set(key, { scope: answer.scope, until: performance.now() + rememberMs })
    return elsewhere(answer.scope, scope)
  }
}
