/** Heartbeats at 10,000 leases beside the twin route, in interleaved rounds: the ratio is what counts, the machine cancels out. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { once } from 'node:events'
import autocannon from 'autocannon'
import { median, type BenchDatabase, type Row } from './shared.ts'

const leases = 10_000
const rounds = Number(process.env['LEASEHOLD_BENCH_ROUNDS'] ?? 5)
const roundSeconds = 4

interface Bench {
  port: number
  token: string
  ids: string[]
}

const load = async (
  bench: Bench,
  path: 'twin' | 'leases',
  connections: number,
  seconds: number,
): Promise<{ rate: number; p99: number }> => {
  let next = Math.floor(Math.random() * bench.ids.length)
  const share = 150
  const result = await autocannon({
    url: `http://127.0.0.1:${bench.port}`,
    connections,
    duration: seconds,
    method: 'POST',
    headers: { authorization: `Bearer ${bench.token}`, 'content-type': 'application/json' },
    body: '{}',
    setupClient(client) {
      client.setRequests(
        Array.from({ length: share }, () => {
          next = (next + 1) % bench.ids.length
          return { method: 'POST' as const, path: `/v1/${path}/${bench.ids[next] as string}/heartbeat` }
        }),
      )
    },
  })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${path}: ${result.non2xx} answers other than 2xx, ${result.errors} errors`)
  return { rate: result.requests.total / result.duration, p99: result.latency.p99 }
}

export const heartbeats = async (database: BenchDatabase): Promise<Row[]> => {
  const child = spawn(process.execPath, [new URL('./server.ts', import.meta.url).pathname, database.target, String(leases)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
    const bench = JSON.parse(line) as Bench
    const rows: Row[] = []
    for (const connections of [16, 64]) {
      await load(bench, 'twin', connections, 2)
      await load(bench, 'leases', connections, 2)
      const twin: number[] = []
      const beats: number[] = []
      const p99: number[] = []
      for (let round = 0; round < rounds; round++) {
        twin.push((await load(bench, 'twin', connections, roundSeconds)).rate)
        const beat = await load(bench, 'leases', connections, roundSeconds)
        beats.push(beat.rate)
        p99.push(beat.p99)
      }
      const ratio = median(beats.map((rate, i) => rate / (twin[i] as number)))
      rows.push({
        bench: 'heartbeats',
        database: database.name,
        what: `${leases} leases, ${connections} connections`,
        figures: {
          beatsPerSecond: Math.round(median(beats)),
          twinPerSecond: Math.round(median(twin)),
          ratioToTwin: ratio,
          p99Ms: median(p99),
        },
      })
    }
    return rows
  } finally {
    child.kill('SIGKILL')
  }
}
