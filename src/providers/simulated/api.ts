/** The cloud as a client meets it: calls that answer late, with an error before or after the deed, or with a lie. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Rated } from '../contract.ts'
import type { Cloud } from './cloud.ts'
import { type Call, type Effect, strike } from './faults.ts'
import { permissionOf } from './words.ts'

/** Waits; rejects when the signal ends. */
export type Sleep = (milliseconds: number, signal: AbortSignal) => Promise<void>

export const realSleep: Sleep = async (milliseconds, signal) => {
  await pause(milliseconds, undefined, { signal })
}

/** `interrupted`: the caller went away, or waited as long as it waits. */
export type Failure =
  | { kind: 'denied'; permission: string }
  | { kind: 'throttled'; retryAfterMs: number | null }
  | { kind: 'failed' }
  | { kind: 'interrupted' }

export class CloudError extends Error {
  readonly failure: Failure

  constructor(failure: Failure, message: string) {
    super(message)
    this.failure = failure
  }
}

/** What an error says of the account's rate; nothing: it is another error. */
export const ratedBy = (error: unknown): Rated =>
  error instanceof CloudError && error.failure.kind === 'throttled'
    ? { rate: { throttled: true, retryAfterMs: error.failure.retryAfterMs, limit: null, remaining: null, resetMs: null } }
    : {}

/** What the deed itself must know of what strikes it. */
export interface Deed {
  /** The cloud does it so much later, also when its caller is gone by then. */
  delayMs: number
  lagMs: number
  lie: Effect | null
}

export interface Client {
  cloud: Cloud
  sleep: Sleep
  /** How long a client waits for an answer that does not come, ms. */
  patienceMs: number
}

const place = ({ operation, kind, location, page }: Call): string =>
  [operation, kind, location === null ? null : `in ${location}`, page === null ? null : `page ${page}`]
    .filter((one) => one !== null)
    .join(' ')

/**
 * One request. `slow` is the time until the deed is done, and the answer comes then; `hang`: neither deed nor answer.
 * @throws CloudError
 */
export const request = async <T>(client: Client, call: Call, signal: AbortSignal, work: (deed: Deed) => T): Promise<T> => {
  const { cloud, sleep, patienceMs } = client
  const wait = async (milliseconds: number): Promise<void> => {
    try {
      await sleep(milliseconds, signal)
    } catch {
      throw new CloudError({ kind: 'interrupted' }, `${place(call)}: the call was ended before its answer came`)
    }
  }
  if (signal.aborted) throw new CloudError({ kind: 'interrupted' }, `${place(call)}: the call was ended before it began`)
  const { hang, slowMs, lagMs, lie, retryAfterMs } = strike(cloud.database, call)
  if (hang !== null) {
    await wait(hang.lengthMs ?? patienceMs)
    throw new CloudError({ kind: 'interrupted' }, `${place(call)}: no answer came`)
  }
  // A read that is slow reads late; a change is taken at once and done late, whoever still waits for it.
  const reads = call.operation === 'list' || call.operation === 'get'
  if (slowMs > 0 && reads) await wait(slowMs)
  if (lie === 'denied') {
    const permission = permissionOf(call.operation, call.kind)
    throw new CloudError({ kind: 'denied', permission }, `${place(call)}: permission ${permission} is missing`)
  }
  if (lie === 'throttle') throw new CloudError({ kind: 'throttled', retryAfterMs }, `${place(call)}: too many requests`)
  // Of the place, and not of what was asked for: it proves nothing of that (leases R86).
  if (lie === 'not-found')
    throw new CloudError({ kind: 'failed' }, `${place(call)}: location ${call.location ?? 'of the account'} was not found`)
  if (lie === 'error-before') throw new CloudError({ kind: 'failed' }, `${place(call)}: internal error`)
  const answer = work({ delayMs: reads ? 0 : slowMs, lagMs, lie })
  if (slowMs > 0 && !reads) await wait(slowMs)
  if (lie === 'error-after') throw new CloudError({ kind: 'failed' }, `${place(call)}: internal error`)
  return answer
}
