/** 10,000 due leases through expiry and removal with a provider that answers at once, beside the durable commits that the database takes one after the other. */
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'
import { seedLeases } from '../support/seed.ts'
import { until } from '../support/until.ts'
import type { BenchDatabase, Row } from './shared.ts'

const leases = 10_000
const commitSeconds = 2

const commitsPerSecond = async (store: Store): Promise<number> => {
  const end = performance.now() + commitSeconds * 1000
  let commits = 0
  while (performance.now() < end) {
    await store.write((tx) => tx.db.updateTable('clock').set({ offset_ms: 0 }).where('id', '=', 1).execute())
    commits++
  }
  return commits / commitSeconds
}

const left = (store: Store): Promise<number> =>
  store.read(async ({ db }) =>
    Number(
      (
        await db
          .selectFrom('instances')
          .select((s) => s.fn.countAll().as('n'))
          .where('state', '<>', 'terminated')
          .executeTakeFirst()
      )?.n,
    ),
  )

export const drain = async (database: BenchDatabase): Promise<Row[]> => {
  const store = await openStore(database.target)
  const engine = await createEngine({ store, providers: [scriptedProvider('process')], log: silentLog, version: 'bench' })
  await firstStart(engine.context)
  const before = await commitsPerSecond(store)
  // The seeded boxes stand for ones that are gone already would not do: each has to be removed.
  const provider = engine.context.providers.get('process') as ReturnType<typeof scriptedProvider>
  await seedLeases(store, {
    count: leases,
    owner: 'admin',
    provider: 'process',
    backend: 'local',
    scope: testScope,
    createdAgoMs: 100_000,
    endsInMs: -1_000,
  })
  const attempts = await store.read(({ db }) => db.selectFrom('attempts').selectAll().execute())
  for (const row of attempts) {
    const resource = {
      scope: row.scope,
      location: row.location,
      kind: 'box',
      nativeId: row.native_id ?? '',
      immutableId: row.immutable_id ?? '',
      facts: {},
    }
    const tags = { ref: row.ref, installation: engine.context.installation.installation_id, attempt: row.token, mac: null }
    provider.boxes.set(resource.nativeId, {
      resource,
      tags,
      fixedAttemptToken: row.token,
      providerState: 'running',
      existence: 'exists',
      name: row.ref,
      createdAt: null,
      labels: {},
      attachedTo: [],
      reportOnly: null,
    })
  }
  const start = performance.now()
  await engine.start()
  // Asked of the database only once the provider has nothing left: counting takes its time too.
  await until(async () => provider.boxes.size === 0 && (await left(store)) === 0, 'the drain', 120_000)
  const seconds = (performance.now() - start) / 1000
  const after = await commitsPerSecond(store)
  await engine.stop()
  await store.close()
  const commits = (before + after) / 2
  const perSecond = leases / seconds
  return [
    {
      bench: 'expiry drain',
      database: database.name,
      what: `${leases} due leases, instant provider`,
      figures: {
        leasesPerSecond: Math.round(perSecond),
        commitsPerSecond: Math.round(commits),
        ratioToCommits: perSecond / commits,
        removed: leases - provider.boxes.size,
      },
    },
  ]
}
