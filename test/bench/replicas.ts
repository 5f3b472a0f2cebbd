/** The drain of two replicas, each a process of its own on one PostgreSQL, beside that of one: where the provider is the bottleneck they should add up. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openCrowd, fill, slowProvider } from './crowd.ts'
import { until } from '../support/until.ts'
import type { BenchDatabase, Row } from './shared.ts'

const leases = 2_500
const latencyMs = 600

const startReplica = async (target: string): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [new URL('./replica.ts', import.meta.url).pathname, target, String(latencyMs)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return child
}

/** On a database of its own: to one that was at work before, what ended meanwhile would be downtime, and forgiven. */
const seconds = async (open: () => Promise<BenchDatabase>, count: number): Promise<number> => {
  const database = await open()
  const crowd = await openCrowd(database.target, slowProvider(0))
  await fill(crowd, leases, -1_000)
  const children = await Promise.all(Array.from({ length: count }, () => startReplica(database.target)))
  try {
    const start = performance.now()
    for (const child of children) child.stdin?.write('go\n')
    await until(async () => (await crowd.left()) === 0, 'the drain', 120_000)
    return (performance.now() - start) / 1000
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await crowd.close()
    await database.drop()
  }
}

export const replicas = async (database: BenchDatabase, open: () => Promise<BenchDatabase>): Promise<Row[]> => {
  // On SQLite there is one process at a time.
  if (database.name === 'sqlite') return []
  const alone = leases / (await seconds(open, 1))
  const together = leases / (await seconds(open, 2))
  return [
    {
      bench: 'two replicas',
      database: database.name,
      what: `${leases} due leases, 3 calls of ${latencyMs} ms each`,
      target: '1.5 of one',
      figures: { leasesPerSecond: together, ofOnePerSecond: alone, ratioToOne: together / alone },
    },
  ]
}
