/** One lease by its id, and a page of a hundred, at 100,000 leases beside 1,000: reads must not slow down with what there is. */
import { load, serve } from './served.ts'
import { type BenchDatabase, type Row } from './shared.ts'

const sizes = [1_000, 100_000]
const seconds = 4
const connections = 8

export const lists = async (database: BenchDatabase, open: () => Promise<BenchDatabase>): Promise<Row[]> => {
  const rows: Row[] = []
  const first = new Map<string, number>()
  for (const leases of sizes) {
    const own = await open()
    const served = await serve(own.target, leases, 'spread')
    try {
      const asked = { get: served.ids.map((id) => `/v1/leases/${id}`), list: ['/v1/leases?limit=100'] }
      for (const [name, paths] of Object.entries(asked)) {
        const request = { method: 'GET', paths, connections } as const
        await load(served, { ...request, seconds: 1 })
        const { rate, p50, p99 } = await load(served, { ...request, seconds })
        const before = first.get(name)
        first.set(name, before ?? rate)
        rows.push({
          bench: 'reads',
          database: database.name,
          what: `${name === 'get' ? 'a lease by its id' : 'the newest hundred'}, ${leases} leases`,
          figures: {
            perSecond: Math.round(rate),
            p50Ms: p50,
            p99Ms: p99,
            ...(before === undefined ? {} : { ratioToThousand: rate / before }),
          },
        })
      }
    } finally {
      served.end()
      await own.drop()
    }
  }
  return rows
}
