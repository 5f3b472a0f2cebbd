/** 10,000 due leases through expiry and removal with a provider that answers at once, beside the durable commits that the database takes one after the other. */
import { commitsPerSecond, fill, openCrowd, slowProvider } from './crowd.ts'
import type { BenchDatabase, Row } from './shared.ts'

const leases = 10_000

export const drain = async (database: BenchDatabase): Promise<Row[]> => {
  const crowd = await openCrowd(database.target, slowProvider(0))
  const before = await commitsPerSecond(crowd.store)
  await fill(crowd, leases, -1_000)
  const seconds = await crowd.drain(120_000)
  const after = await commitsPerSecond(crowd.store)
  await crowd.close()
  const commits = (before + after) / 2
  const perSecond = leases / seconds
  return [
    {
      bench: 'expiry drain',
      database: database.name,
      what: `${leases} due leases, instant provider`,
      target: '1,000/s, 0.1 of the commits',
      figures: { leasesPerSecond: Math.round(perSecond), commitsPerSecond: Math.round(commits), ratioToCommits: perSecond / commits },
    },
  ]
}
