/**
 * The Docker Engine's API, as far as it is used here: requests with a time limit, the API version negotiated, and errors that say what the Engine said.
 * Not in here: what the calls mean.
 */
import { Agent, type IncomingMessage, type RequestOptions, request as httpRequest } from 'node:http'
import type { Duplex } from 'node:stream'
import { type EngineAddress, addressText } from './address.ts'
import { connectEngine } from './connect.ts'
import { EngineError, EngineUnreachable } from './errors.ts'

/** The newest API that this client was written for, and the oldest that has all that it asks for. */
const newestApi = '1.47'
const oldestApi = '1.40'
const defaultLimitMs = 25_000
const largestAnswer = 64 * 2 ** 20
const atOnce = 8

export interface EngineCall {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Below the version, e.g. `/containers/json`; parts of it are encoded by the caller (`segment`). */
  path: string
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  signal: AbortSignal
  /** ms until an answer counts as not coming; default 25 s. */
  limitMs?: number
}

export interface EngineAnswer<T> {
  status: number
  body: T
}

export interface EngineClient {
  readonly address: EngineAddress
  /** @throws EngineError, EngineUnreachable; the signal's reason when that ended */
  call<T>(call: EngineCall): Promise<EngineAnswer<T>>
  /** The answer as it comes; whoever asks ends it. */
  stream(call: EngineCall): Promise<IncomingMessage>
  /** Takes the connection over after the Engine has agreed: what a command says and is told. */
  hijack(call: EngineCall): Promise<Duplex>
  /** The API version that both sides speak, e.g. `1.41`. */
  version(signal: AbortSignal): Promise<string>
  close(): void
}

/** One part of a path. */
export const segment = (text: string): string => encodeURIComponent(text)

/** The `filters` of a listing. */
export const filters = (wanted: Record<string, readonly string[]>): string => JSON.stringify(wanted)

const number = (version: string): number => {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major * 1000 + minor
}

class EngineAgent extends Agent {
  readonly #address: EngineAddress

  constructor(address: EngineAddress) {
    super({ keepAlive: true, maxSockets: atOnce, maxFreeSockets: address.kind === 'ssh' ? 1 : 4 })
    this.#address = address
  }

  override createConnection(_options: unknown, _callback?: unknown): Duplex {
    return connectEngine(this.#address)
  }
}

const textOf = async (answer: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > largestAnswer) throw new Error(`its answer is longer than ${largestAnswer / 2 ** 20} MB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const messageIn = (text: string): string => {
  try {
    const { message } = JSON.parse(text) as { message?: unknown }
    return typeof message === 'string' ? message : text
  } catch {
    return text
  }
}

const queryText = (query: EngineCall['query']): string => {
  const pairs = Object.entries(query ?? {}).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, String(value)] as [string, string]],
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}

export const createEngineClient = (address: EngineAddress): EngineClient => {
  const agent = new EngineAgent(address)
  const where = addressText(address)
  let negotiated: Promise<string> | null = null

  const send = (
    { method, body }: Pick<EngineCall, 'method' | 'body'>,
    path: string,
    signal: AbortSignal,
    upgrade: boolean,
  ): Promise<{ answer: IncomingMessage; socket: Duplex | null }> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? null : JSON.stringify(body)
      const options: RequestOptions = {
        method,
        path,
        signal,
        headers: {
          Host: 'docker',
          ...(text === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
          ...(upgrade ? { Connection: 'Upgrade', Upgrade: 'tcp' } : {}),
        },
        ...(upgrade ? { createConnection: () => connectEngine(address) } : { agent }),
      }
      const request = httpRequest(options)
      request.on('response', (answer) => resolve({ answer, socket: null }))
      request.on('upgrade', (answer, socket, head) => {
        if (head.length > 0) socket.unshift(head)
        resolve({ answer, socket })
      })
      request.on('error', (error: NodeJS.ErrnoException) => {
        const again = method === 'GET' && request.reusedSocket && error.code === 'ECONNRESET' && !signal.aborted
        // An idle connection of an Engine that was restarted meanwhile.
        if (again) send({ method, body }, path, signal, upgrade).then(resolve, reject)
        else reject(error)
      })
      request.end(text ?? undefined)
    })

  /** Every failure under its own name: no answer, or the caller's own end. */
  const guarded = async <T>(
    call: Pick<EngineCall, 'method' | 'path' | 'signal' | 'limitMs'>,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    call.signal.throwIfAborted()
    const limitMs = call.limitMs ?? defaultLimitMs
    const limit = AbortSignal.timeout(limitMs)
    try {
      return await work(AbortSignal.any([call.signal, limit]))
    } catch (error) {
      if (error instanceof EngineError || error instanceof EngineUnreachable) throw error
      if (call.signal.aborted) throw call.signal.reason
      if (limit.aborted) throw new EngineUnreachable(where, `none came to ${call.method} ${call.path} within ${limitMs / 1000} s`)
      const { message, code } = error as NodeJS.ErrnoException
      throw new EngineUnreachable(where, message || code || 'unknown', code)
    }
  }

  const failed = async (call: Pick<EngineCall, 'method' | 'path'>, answer: IncomingMessage): Promise<EngineError> => {
    const said = messageIn(await textOf(answer))
    // The Engine was replaced by another version meanwhile.
    if (/client version .* is too (new|old)/.test(said)) negotiated = null
    return new EngineError(`${call.method} ${call.path}`, answer.statusCode ?? 0, said)
  }

  const negotiate = async (signal: AbortSignal): Promise<string> => {
    const ping = { method: 'GET', path: '/_ping', signal } as const
    const theirs = await guarded(ping, async (limited) => {
      const { answer } = await send(ping, ping.path, limited, false)
      if ((answer.statusCode ?? 0) >= 400) throw await failed(ping, answer)
      await textOf(answer)
      const { 'api-version': version } = answer.headers
      return typeof version === 'string' ? version : null
    })
    if (theirs === null) throw new EngineError('GET /_ping', 0, `what answers at ${where} is no Docker Engine`)
    if (number(theirs) < number(oldestApi))
      throw new EngineError('GET /_ping', 0, `the Engine at ${where} speaks API ${theirs}, and at least ${oldestApi} is needed`)
    return number(theirs) < number(newestApi) ? theirs : newestApi
  }

  const version = async (signal: AbortSignal): Promise<string> => {
    // Shared by all that wait; a failure is asked for again, and one caller's end is not the others'.
    const own = (negotiated ??= negotiate(AbortSignal.timeout(defaultLimitMs)))
    own.catch(() => {
      if (negotiated === own) negotiated = null
    })
    signal.throwIfAborted()
    return own
  }

  const open = async (call: EngineCall, signal: AbortSignal, upgrade: boolean) =>
    send(call, `/v${await version(signal)}${call.path}${queryText(call.query)}`, signal, upgrade)

  return {
    address,
    version,
    call: <T>(call: EngineCall) =>
      guarded(call, async (signal): Promise<EngineAnswer<T>> => {
        const { answer } = await open(call, signal, false)
        const status = answer.statusCode ?? 0
        if (status >= 400) throw await failed(call, answer)
        const text = await textOf(answer)
        return { status, body: (text === '' ? null : /json/.test(answer.headers['content-type'] ?? '') ? JSON.parse(text) : text) as T }
      }),
    async stream(call) {
      // The limit is for the beginning of the answer: what follows may take its time, and ends with the caller's signal.
      const begun = new AbortController()
      const answer = await guarded(call, async (limited) => {
        const stop = (): void => begun.abort(limited.reason)
        limited.addEventListener('abort', stop, { once: true })
        try {
          const opened = await open(call, AbortSignal.any([begun.signal, call.signal]), false)
          if ((opened.answer.statusCode ?? 0) >= 400) throw await failed(call, opened.answer)
          return opened.answer
        } finally {
          limited.removeEventListener('abort', stop)
        }
      })
      return answer
    },
    hijack: (call) =>
      guarded(call, async (limited) => {
        const begun = new AbortController()
        const stop = (): void => begun.abort(limited.reason)
        limited.addEventListener('abort', stop, { once: true })
        try {
          const { answer, socket } = await open(call, begun.signal, true)
          if (socket === null) throw await failed(call, answer)
          return socket
        } finally {
          limited.removeEventListener('abort', stop)
        }
      }),
    close: () => agent.destroy(),
  }
}
