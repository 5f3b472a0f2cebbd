/** Many leases whose boxes are in memory: what the benches of drains share. */
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../../src/engine/context.ts'
import { createEngine, type Engine } from '../../src/engine/engine.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { scriptedProvider, testScope, type Scripted } from '../support/scripted-provider.ts'
import { seedLeases } from '../support/seed.ts'
import { until } from '../support/until.ts'

export interface Crowd {
  store: Store
  engine: Engine
  provider: Scripted
  /** Instances that are not proved gone. */
  left(): Promise<number>
  /** Starts the engine; how many seconds until nothing is left. */
  drain(deadlineMs: number): Promise<number>
  close(): Promise<void>
}

/** What its attempts recorded exists: each has to be removed. */
export const standUp = async ({ store, provider, engine }: Pick<Crowd, 'store' | 'provider' | 'engine'>): Promise<void> => {
  const attempts = await store.read(({ db }) => db.selectFrom('attempts').selectAll().where('outcome', '=', 'bound').execute())
  const installation = engine.context.installation.installation_id
  for (const row of attempts) {
    const [nativeId, immutableId] = [row.native_id ?? '', row.immutable_id ?? '']
    provider.boxes.set(nativeId, {
      resource: { scope: row.scope, location: row.location, kind: 'box', nativeId, immutableId, facts: {} },
      tags: { ref: row.ref, installation, attempt: row.token, mac: null },
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
}

/** @param latencyMs of each of its calls */
export const slowProvider = (latencyMs: number): Scripted => {
  const provider = scriptedProvider('process')
  if (latencyMs === 0) return provider
  provider.onRead = () => sleep(latencyMs, undefined)
  provider.onRemove = () => sleep(latencyMs, undefined)
  return provider
}

/** Opens the database and makes an engine on it, not started. */
export const openCrowd = async (target: string, provider: Scripted): Promise<Crowd> => {
  const store = await openStore(target)
  const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'bench' })
  await firstStart(engine.context)
  const left = async (): Promise<number> => {
    const count = store.read(({ db }) =>
      db
        .selectFrom('instances')
        .select((s) => s.fn.countAll().as('n'))
        .where('state', '<>', 'terminated')
        .executeTakeFirst(),
    )
    return Number((await count)?.n)
  }
  return {
    store,
    engine,
    provider,
    left,
    async drain(deadlineMs) {
      const start = performance.now()
      await engine.start()
      // Asked of the database only once the provider has nothing left: counting takes its time too.
      await until(async () => provider.boxes.size === 0 && (await left()) === 0, 'the drain', deadlineMs)
      return (performance.now() - start) / 1000
    },
    async close() {
      await engine.stop(0)
      await store.close()
    },
  }
}

/** @param endsInMs relative to now; negative: they are due */
export const fill = async (crowd: Crowd, count: number, endsInMs: number): Promise<void> => {
  const place = { owner: 'admin', provider: 'process', backend: 'local', scope: testScope }
  await seedLeases(crowd.store, { count, ...place, createdAgoMs: 100_000, endsInMs })
  await standUp(crowd)
}

/** Durable commits, one after the other, for so many seconds. */
export const commitsPerSecond = async (store: Store, seconds = 2): Promise<number> => {
  const start = performance.now()
  const end = start + seconds * 1000
  let commits = 0
  while (performance.now() < end) {
    await store.write((tx) => tx.db.updateTable('clock').set({ offset_ms: 0 }).where('id', '=', 1).execute())
    commits++
  }
  return (commits * 1000) / (performance.now() - start)
}
