/**
 * Heartbeats at 1,000, 10,000 and 100,000 leases beside the twin route, in interleaved rounds: the ratio is what counts, the machine cancels out. At the largest
 * also while sweeps over all that there is follow one another.
 */
import { load, serve, type Served } from './served.ts'
import { median, type BenchDatabase, type Row } from './shared.ts'

const connections = 64
const rounds = Number(process.env['LEASEHOLD_BENCH_ROUNDS'] ?? 5)
const most = Number(process.env['LEASEHOLD_BENCH_LEASES'] ?? 100_000)
const roundSeconds = 4

const measure = async (served: Served): Promise<Record<string, number>> => {
  const beat = (ids: readonly string[], path: 'leases' | 'twin') => ids.map((id) => `/v1/${path}/${id}/heartbeat`)
  const twins = { method: 'POST', paths: beat(served.ids.slice(0, served.inMemory), 'twin'), connections } as const
  const leases = { method: 'POST', paths: beat(served.ids, 'leases'), connections } as const
  await load(served, { ...twins, seconds: 2 })
  // Whoever is beaten for the first time since the start is read once; from then on its beats are what is measured.
  await load(served, { ...leases, seconds: 'once' })
  const [twin, beats, p99]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < rounds; round++) {
    twin.push((await load(served, { ...twins, seconds: roundSeconds })).rate)
    const one = await load(served, { ...leases, seconds: roundSeconds })
    beats.push(one.rate)
    p99.push(one.p99)
  }
  return {
    beatsPerSecond: Math.round(median(beats)),
    twinPerSecond: Math.round(median(twin)),
    ratioToTwin: median(beats.map((rate, i) => rate / (twin[i] as number))),
    p99Ms: median(p99),
  }
}

/** @param open a fresh database for each size */
export const heartbeats = async (database: BenchDatabase, open: () => Promise<BenchDatabase>): Promise<Row[]> => {
  const rows: Row[] = []
  const target = `${database.name === 'sqlite' ? 0.65 : 0.5} of the twin, p99 100 ms`
  const row = (what: string, figures: Record<string, number>, aim = target): void =>
    void rows.push({ bench: 'heartbeats', database: database.name, what, target: aim, figures })
  for (const leases of [1_000, 10_000, 100_000].filter((size) => size <= most)) {
    const own = await open()
    const served = await serve(own.target, leases)
    try {
      const figures = await measure(served)
      const first = rows[0]?.figures['beatsPerSecond']
      const ratio = first === undefined ? {} : { ratioToThousand: (figures['beatsPerSecond'] ?? 0) / first }
      row(
        `${leases} leases, ${connections} connections`,
        { ...figures, ...ratio },
        leases === 100_000 ? `${target}, 0.8 of 1,000 leases` : target,
      )
      if (leases < most) continue
      served.say('sweep')
      const during = await measure(served)
      served.say('rest')
      row(`the same while sweeps of ${leases} run`, { ...during, ...(await served.heard()) })
    } finally {
      served.end()
      await own.drop()
    }
  }
  return rows
}
