/** What 10,000 enrolled backends in which nothing happens cost in one interval: statements, rows written, provider calls, and the time of all. */
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { settleIdle } from '../../src/engine/sweep/idle.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { seedIdleBackends } from '../support/idle-backends.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { statementsOf } from '../support/statements.ts'
import { until } from '../support/until.ts'
import type { BenchDatabase, Row } from './shared.ts'

const backends = 10_000
/** An interval in so many seconds: all that comes due in it, at the pace of the pipeline. */
const spreadSeconds = 20

const fences = async (store: Store): Promise<number> => {
  const row = await store.read(({ db }) =>
    db
      .selectFrom('cleanups')
      .select((s) => s.fn.sum('lock_fence').as('n'))
      .executeTakeFirst(),
  )
  return Number(row?.n)
}

export const idle = async (database: BenchDatabase): Promise<Row[]> => {
  const store = await openStore(database.target)
  const provider = scriptedProvider('process')
  let calls = 0
  const scope = provider.scope.bind(provider)
  provider.scope = (config, context) => {
    calls++
    return scope(config, context)
  }
  const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'bench' })
  await firstStart(engine.context)

  // All at once, and nothing else: what the work itself takes.
  await seedIdleBackends(store, 'process', backends)
  const now = await store.now()
  const start = performance.now()
  const statements = await statementsOf(store, async () => {
    while ((await settleIdle(engine.context, now)) === 'again');
  })
  const ms = performance.now() - start
  const written = await fences(store)

  // Spread over an interval, with all pipelines running: their own polling is in it.
  const rows = await store.read(({ db }) => db.selectFrom('cleanups').select('id').orderBy('id').execute())
  await store.write(async (tx) => {
    for (const [i, row] of rows.entries())
      await tx.db
        .updateTable('cleanups')
        .set({ due_at: tx.now + Math.round((i * spreadSeconds * 1000) / rows.length) })
        .where('id', '=', row.id)
        .execute()
  })
  const cpu = process.cpuUsage()
  const all = await statementsOf(store, async () => {
    await engine.start()
    await until(
      async () => (await fences(store)) === written + backends,
      'every backend is processed once more',
      (spreadSeconds + 30) * 1000,
    )
  })
  const used = process.cpuUsage(cpu)
  await engine.stop(0)
  await store.close()
  return [
    {
      bench: 'idle',
      database: database.name,
      what: `${backends} idle backends, one interval`,
      figures: {
        statements: statements.length,
        rowsWrittenEach: written / backends,
        providerCalls: calls + provider.calls.length,
        allMs: Math.round(ms),
        queriesSpread: all.filter((text) => /^\s*select c\.id/.test(text)).length,
        updatesSpread: all.filter((text) => /^\s*update "?cleanups"?/.test(text)).length,
        cpuMsSpread: Math.round((used.user + used.system) / 1000),
      },
    },
  ]
}
