/** The coordinator's HTTP API by global fetch: every call has a deadline, and what goes wrong becomes one clear line. */
import type { ErrorAnswer } from '../../model/wire.ts'
import { CliError, exitCodes } from './errors.ts'
import { printable } from './text.ts'

/** The coordinator answered, with an error. */
export class ApiError extends CliError {
  readonly status: number
  readonly code: string
  readonly answer: ErrorAnswer

  constructor(status: number, answer: ErrorAnswer) {
    super(`${printable(answer.message)} (${printable(answer.error)})`, exitCodeOf(status))
    this.status = status
    this.code = answer.error
    this.answer = answer
  }
}

/** No answer came. `sent` is false only if the connection was never made, so that nothing can have happened. */
export class NoAnswer extends CliError {
  readonly sent: boolean

  constructor(what: string, sent: boolean, remedy: string | null = null) {
    super(what, exitCodes.failure, remedy)
    this.sent = sent
  }
}

export interface CallOptions {
  query?: Record<string, string | number | boolean | null | undefined>
  body?: unknown
  /** Milliseconds; 30 000 unless said. */
  deadlineMs?: number
  signal?: AbortSignal
}
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export interface Answer<T> {
  status: number
  body: T
}
export interface Client {
  /** Without a slash at the end. */
  url: string
  call<T>(method: Method, path: string, options?: CallOptions): Promise<Answer<T>>
  get<T>(path: string, options?: CallOptions): Promise<T>
}
export interface ClientOptions {
  url: string
  /** Where the address came from, for messages. */
  origin: string
  token: string | null
  /** What a 401 means here and what to do. */
  tokenHint: string
}

const exitCodeOf = (status: number): number => {
  if (status === 400 || status === 413 || status === 422) return exitCodes.usage
  return status === 403 || status === 404 ? exitCodes.notFound : exitCodes.failure
}

const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'EADDRNOTAVAIL',
])

const causeOf = (error: unknown): { code: string; message: string } => {
  const cause = (error as { cause?: { code?: string; message?: string; errors?: { code?: string; message?: string }[] } }).cause
  const first = cause?.errors?.[0] ?? cause
  return { code: first?.code ?? cause?.code ?? '', message: first?.message || cause?.message || (error as Error).message }
}

/** Asked for TLS, and what came is none: nothing of the request was sent. */
const plainHttp = (address: string, code: string): boolean =>
  address.startsWith('https:') && (code === 'EPROTO' || code.startsWith('ERR_SSL_WRONG_VERSION') || code.startsWith('ERR_SSL_PACKET'))

/** A part of a path from what somebody typed: it can't reach another route. */
export const segment = (text: string): string => encodeURIComponent(text).replace(/^\.{1,2}$/, (dots) => dots.replaceAll('.', '%2E'))

export const createClient = (options: ClientOptions): Client => {
  const place = `${options.url} (from ${options.origin})`
  const call = async <T>(
    method: Method,
    path: string,
    { query = {}, body, deadlineMs = 30_000, signal }: CallOptions = {},
  ): Promise<Answer<T>> => {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined) search.set(name, String(value))
    const address = `${options.url}${path}${search.size > 0 ? `?${search}` : ''}`
    const deadline = AbortSignal.timeout(deadlineMs)
    let response: Response
    let text: string
    try {
      response = await fetch(address, {
        method,
        // A redirect could carry the token to somewhere else.
        redirect: 'manual',
        headers: {
          accept: 'application/json',
          ...(options.token === null ? {} : { authorization: `Bearer ${options.token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([deadline, signal]) : deadline,
      })
      text = await response.text()
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (deadline.aborted) throw new NoAnswer(`the coordinator at ${place} did not answer within ${deadlineMs / 1000} s`, true)
      const cause = causeOf(error)
      // fetch refuses some ports itself ("bad port"), without a code.
      if (neverConnected.has(cause.code) || cause.message === 'bad port') {
        throw new NoAnswer(
          `no coordinator answers at ${place}: ${cause.message}`,
          false,
          'Start one with "npm start" or "leasehold serve", or name another with --url',
        )
      }
      if (plainHttp(address, cause.code))
        throw new NoAnswer(
          `no coordinator answers at ${place}: that port speaks plain http`,
          false,
          `Write ${options.url.replace('https:', 'http:')}`,
        )
      throw new NoAnswer(`the connection to the coordinator at ${place} broke: ${cause.message}`, true)
    }
    const parsed = parseAnswer(text)
    if (response.ok && parsed !== undefined) return { status: response.status, body: parsed as T }
    if (response.status >= 300 && response.status < 400) {
      throw new CliError(`${place} redirects elsewhere; set the url to where the coordinator itself is`)
    }
    if (!isErrorAnswer(parsed))
      throw new CliError(`what answers at ${place} is no Leasehold coordinator (HTTP ${response.status} without its JSON)`)
    const answer = response.status === 401 ? { ...parsed, message: `${parsed.message}: ${options.tokenHint}` } : parsed
    throw new ApiError(response.status, answer)
  }
  return { url: options.url, call, get: async <T>(path: string, rest?: CallOptions) => (await call<T>('GET', path, rest)).body }
}

const parseAnswer = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const isErrorAnswer = (value: unknown): value is ErrorAnswer =>
  typeof value === 'object' &&
  value !== null &&
  'error' in value &&
  typeof value.error === 'string' &&
  'message' in value &&
  typeof value.message === 'string'
