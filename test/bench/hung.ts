/** Leases that end all the time while one call to the provider hangs: how much later than without it does any other lease end? */
import { fill, openCrowd, slowProvider, type Crowd } from './crowd.ts'
import { until } from '../support/until.ts'
import type { BenchDatabase, Row } from './shared.ts'

const leases = 2_000
const overMs = 10_000
const hangsMs = 60_000

/** Their ends come one after the other. */
const spread = async ({ store }: Crowd): Promise<void> =>
  store.write(async (tx) => {
    const rows = await tx.db.selectFrom('leases').select('id').where('state', '=', 'active').orderBy('id').execute()
    for (const [i, { id }] of rows.entries()) {
      const at = tx.now + 3_000 + Math.round((i * overMs) / rows.length)
      await tx.db.updateTable('leases').set({ expires_at: at, due_at: at }).where('id', '=', id).execute()
    }
  })

/** How long after its end each was proved gone, in ms, but for the one that hangs. */
const lags = async (database: BenchDatabase, hangs: boolean): Promise<number[]> => {
  const provider = slowProvider(0)
  const hung = new Set<string>()
  if (hangs)
    provider.onRemove = async (resource) => {
      if (hung.size > 0) return undefined
      hung.add(resource.nativeId)
      await new Promise((resolve) => setTimeout(resolve, hangsMs).unref())
      return undefined
    }
  const crowd = await openCrowd(database.target, provider)
  await fill(crowd, leases, 3_600_000)
  await spread(crowd)
  await crowd.engine.start()
  const rest = hangs ? 1 : 0
  await until(async () => provider.boxes.size === rest && (await crowd.left()) === rest, 'all but the one that hangs', 60_000)
  const rows = await crowd.store.read(({ db }) =>
    db
      .selectFrom('removals')
      .innerJoin('leases', 'leases.id', 'removals.lease_id')
      .select(['removals.gone_at', 'leases.expires_at'])
      .where('removals.state', '=', 'gone')
      .execute(),
  )
  // The one that hangs is of no matter for the next run on the same database.
  provider.onRemove = undefined
  provider.boxes.clear()
  await crowd.store.write((tx) => tx.db.deleteFrom('removals').execute())
  await crowd.store.write((tx) => tx.db.updateTable('instances').set({ state: 'terminated' }).execute())
  await crowd.close()
  return rows.map((row) => (row.gone_at ?? 0) - row.expires_at)
}

export const hung = async (database: BenchDatabase): Promise<Row[]> => {
  const without = Math.max(...(await lags(database, false)))
  const withIt = Math.max(...(await lags(database, true)))
  return [
    {
      bench: 'hung call',
      database: database.name,
      what: `${leases} leases that end over ${overMs / 1000} s, one removal hangs for ${hangsMs / 1000} s`,
      target: 'no other 1 s later',
      figures: { latestMs: withIt, latestWithoutMs: without, laterMs: Math.max(0, withIt - without), ratio: withIt / without },
    },
  ]
}
