/** From the moment at which a lease's clock has provably ended until its deletion is accepted, for leases that end one by one. */
import { commitsPerSecond, fill, openCrowd, slowProvider } from './crowd.ts'
import { until } from '../support/until.ts'
import { median, type BenchDatabase, type Row } from './shared.ts'

const leases = 300
const everyMs = 25

export const obsolete = async (database: BenchDatabase): Promise<Row[]> => {
  const crowd = await openCrowd(database.target, slowProvider(0))
  const commitMs = 1000 / (await commitsPerSecond(crowd.store, 1))
  await fill(crowd, leases, 3_600_000)
  await crowd.engine.start()
  await crowd.store.write(async (tx) => {
    const rows = await tx.db.selectFrom('leases').select('id').execute()
    for (const [i, { id }] of rows.entries()) {
      const at = tx.now + 1_000 + i * everyMs
      await tx.db.updateTable('leases').set({ expires_at: at, due_at: at }).where('id', '=', id).execute()
    }
  })
  await until(async () => (await crowd.left()) === 0, 'all are gone', 60_000)
  const rows = await crowd.store.read(({ db }) =>
    db
      .selectFrom('removals')
      .innerJoin('leases', 'leases.id', 'removals.lease_id')
      .select(['removals.accepted_at', 'leases.expires_at'])
      .execute(),
  )
  await crowd.close()
  const all = rows.map((row) => (row.accepted_at ?? 0) - row.expires_at)
  return [
    {
      bench: 'obsolete to accepted',
      database: database.name,
      what: `${leases} leases that end one every ${everyMs} ms, instant provider`,
      figures: { medianMs: median(all), slowestMs: Math.max(...all), ratioToCommit: median(all) / commitMs },
    },
  ]
}
