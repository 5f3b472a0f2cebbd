/** A real Engine on a socket, asked as the fake one is: for suites that run on both. */
import { request } from 'node:http'
import type { EngineCalls, EngineRequest } from '../../src/providers/swarm/index.ts'
import { EngineSaysNo } from './swarm-engine.ts'

const api = '/v1.41'

const ask = (socketPath: string, { method, path, query, body, signal }: EngineRequest): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const pairs = Object.entries(query ?? {}).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, String(value)] as [string, string]],
    )
    const asked = request(
      {
        socketPath,
        method,
        path: `${api}${path}${pairs.length > 0 ? `?${new URLSearchParams(pairs).toString()}` : ''}`,
        signal,
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
      },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
        answer.on('error', reject)
      },
    )
    asked.on('error', reject)
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })

export const socketEngine = (socketPath: string): EngineCalls => ({
  async call<T>(wanted: EngineRequest) {
    const { status, text } = await ask(socketPath, wanted)
    const body = (text === '' ? null : JSON.parse(text)) as T & { message?: string }
    if (status >= 400) throw new EngineSaysNo(status, body?.message ?? text)
    return { status, body }
  },
})
