/** The coordinator of `server.ts` as a child of a bench, and the load on it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import autocannon from 'autocannon'

export interface Served {
  port: number
  token: string
  ids: string[]
  /** So many of them, the first ones, the twin route has in memory. */
  inMemory: number
  say(line: 'sweep' | 'rest'): void
  heard(): Promise<Record<string, number>>
  end(): void
}

const nextLine = async (lines: Interface): Promise<string> => ((await once(lines, 'line')) as [string])[0]

/** @param how `spread`: made one after the other, not all at once */
export const serve = async (target: string, leases: number, how: 'spread' | 'at once' = 'at once'): Promise<Served> => {
  const child = spawn(process.execPath, [new URL('./server.ts', import.meta.url).pathname, target, String(leases), how], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface(child.stdout)
  const ready = JSON.parse(await nextLine(lines)) as Pick<Served, 'port' | 'token' | 'ids' | 'inMemory'>
  return {
    ...ready,
    say: (line) => void child.stdin.write(`${line}\n`),
    heard: async () => JSON.parse(await nextLine(lines)) as Record<string, number>,
    end: () => void child.kill('SIGKILL'),
  }
}

export interface Load {
  method: 'GET' | 'POST'
  paths: readonly string[]
  connections: number
  /** For so long, or each path about once. */
  seconds: number | 'once'
}

/** Each connection goes round its own part of the paths. */
export const load = async (
  served: Served,
  { method, paths, connections, seconds }: Load,
): Promise<{ rate: number; p50: number; p99: number }> => {
  let next = Math.floor(Math.random() * paths.length)
  const share = Math.ceil(paths.length / connections)
  const result = await autocannon({
    url: `http://127.0.0.1:${served.port}`,
    connections,
    ...(seconds === 'once' ? { amount: paths.length } : { duration: seconds }),
    method,
    headers: { authorization: `Bearer ${served.token}`, 'content-type': 'application/json' },
    ...(method === 'POST' ? { body: '{}' } : {}),
    setupClient(client) {
      client.setRequests(
        Array.from({ length: share }, () => {
          next = (next + 1) % paths.length
          return { method, path: paths[next] as string }
        }),
      )
    },
  })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${paths[0]}: ${result.non2xx} answers other than 2xx, ${result.errors} errors`)
  return { rate: result.requests.total / result.duration, p50: result.latency.p50, p99: result.latency.p99 }
}
