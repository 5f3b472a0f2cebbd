/** The one thing that is needed of an Engine's client, and how its failures are told apart. */
import { redact } from '../../lib/redact.ts'

export interface EngineRequest {
  method: 'GET' | 'POST' | 'DELETE'
  /** Below the API's version; parts of it are encoded. */
  path: string
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  signal: AbortSignal
}

/** Throws what has a `status` and an `answer` where the Engine said no, and anything else where it said nothing. */
export interface EngineCalls {
  call<T>(request: EngineRequest): Promise<{ status: number; body: T }>
}

/** `none`: what was asked for may have been done. */
export type Failure = { kind: 'answer'; status: number; text: string } | { kind: 'none'; text: string }

export const failureOf = (error: unknown): Failure => {
  const { status, answer, message } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  if (typeof status === 'number' && status >= 400 && typeof answer === 'string') return { kind: 'answer', status, text: redact(answer) }
  return { kind: 'none', text: redact(typeof message === 'string' ? message : String(error)) }
}

const notFound = /\b(config|secret|service|network|node|task) .* ?not found|no such (volume|network|service|config|secret|node|task)/i

/** A 404 of a proxy or of a path says nothing of the object (leases R86). */
export const saysAbsent = (failure: Failure): boolean => failure.kind === 'answer' && failure.status === 404 && notFound.test(failure.text)

/** Measured (docker facts 3.5): a 500 with these words; other Engines answer 400 or 409. */
export const saysStale = (failure: Failure): boolean =>
  failure.kind === 'answer' && [400, 409, 500].includes(failure.status) && /update out of sequence/i.test(failure.text)

/** Measured: 409, and for a network that differs in case only a 500 with these words. */
export const saysTaken = (failure: Failure): boolean =>
  failure.kind === 'answer' && (failure.status === 409 || /name conflicts with an existing object|already exists/i.test(failure.text))

export const saysInUse = (failure: Failure): boolean =>
  failure.kind === 'answer' && [400, 409].includes(failure.status) && /\bin use\b/i.test(failure.text)

/** Measured (docker facts 3.4): the second deletion of a network that still drains on this node. */
export const saysDraining = (failure: Failure): boolean =>
  failure.kind === 'answer' && failure.status === 500 && /network .* not found/i.test(failure.text)
