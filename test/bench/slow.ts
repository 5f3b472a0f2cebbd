/** The drain where the provider is what takes long: beside what its latency alone would allow with as many rows in work as a project gets. */
import { shareAlone } from '../../src/model/fair.ts'
import { removePipeline } from '../../src/engine/remove.ts'
import { fill, openCrowd, slowProvider } from './crowd.ts'
import type { BenchDatabase, Row } from './shared.ts'

/** Read, remove, read. */
const callsEach = 3

const one = async (open: () => Promise<BenchDatabase>, latencyMs: number, leases: number): Promise<Row> => {
  const database = await open()
  const crowd = await openCrowd(database.target, slowProvider(latencyMs))
  const places = shareAlone(removePipeline(crowd.engine.context).capacity)
  await fill(crowd, leases, -1_000)
  const seconds = await crowd.drain(180_000)
  await crowd.close()
  await database.drop()
  const bound = Math.ceil(leases / places) * callsEach * (latencyMs / 1000)
  return {
    bench: 'slow provider',
    database: database.name,
    what: `${leases} due leases, ${callsEach} calls of ${latencyMs} ms each`,
    target: 'the provider is the bottleneck',
    figures: { leasesPerSecond: leases / seconds, seconds, secondsByLatencyAlone: bound, ratioToLatencyAlone: seconds / bound },
  }
}

export const slow = async (_: BenchDatabase, open: () => Promise<BenchDatabase>): Promise<Row[]> => [
  await one(open, 200, 2_000),
  await one(open, 2_000, 1_000),
]
