/** Two replicas on one PostgreSQL: what one does, the other hears of at once rather than at its next look. */
import { sql } from 'kysely'
import { expect, inject, it, onTestFinished } from 'vitest'
import { createNewsroom } from '../../src/engine/news.ts'
import { silentLog } from '../../src/engine/context.ts'
import { createSignals, type PipelineName, type Signals } from '../../src/engine/signals.ts'
import type { News, Store } from '../../src/store/store.ts'
import { leaseOn, makeEngine } from '../support/engine.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { postgresDatabase } from '../support/databases.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { serviceOr } from '../support/services/skip.ts'
import { until } from '../support/until.ts'

const { url } = inject('postgres')
/** Longer than any test: whoever resolves earlier has heard something. */
const long = 600_000

serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)('replicas on one database', () => {
  const open = async (): Promise<{ store: Store; other: Store }> => {
    const database = await postgresDatabase(url as string)
    onTestFinished(() => database.drop())
    const [store, other] = [await database.open(), await database.open()]
    onTestFinished(async () => {
      await store.close()
      await other.close()
    })
    return { store, other }
  }
  const replica = async (store: Store, id: string): Promise<Signals> => {
    const signals = createSignals()
    const newsroom = createNewsroom(store.news, id, signals, silentLog)
    await newsroom.start()
    onTestFinished(() => newsroom.stop())
    return signals
  }
  const wakes = (signals: Signals): PipelineName[] => {
    const heard: PipelineName[] = []
    for (const name of ['provision', 'remove'] as const) signals.onWake(name, () => heard.push(name))
    return heard
  }

  it('hear which pipelines may have work and which leases changed, and nobody hears itself twice', async () => {
    const { store, other } = await open()
    const [mine, theirs] = [await replica(store, 're_1'), await replica(other, 're_2')]
    const [here, there] = [wakes(mine), wakes(theirs)]
    const changed = theirs.nextChange('lh_1', long)
    mine.wake('provision')
    mine.changed('lh_1')
    await changed
    await until(() => there.length > 0, 'the other is woken')
    expect(there).toEqual(['provision'])
    expect(here).toEqual(['provision'])
  })

  it('go on after their connection was cut, and look at everything once, for news may have been lost', async () => {
    const { store, other } = await open()
    const [mine, theirs] = [await replica(store, 're_1'), await replica(other, 're_2')]
    const there = wakes(theirs)
    await store.read(({ db }) =>
      sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'leasehold news'`.execute(
        db,
      ),
    )
    await until(() => there.includes('provision') && there.includes('remove'), 'it looks at everything')
    const changed = theirs.nextChange('lh_2', long)
    mine.changed('lh_2')
    await changed
  })

  it('are not hurt by news that they do not understand', async () => {
    const { store, other } = await open()
    const [mine, theirs] = [await replica(store, 're_1'), await replica(other, 're_2')]
    const there = wakes(theirs)
    const news = store.news as News
    for (const text of [
      '',
      'no JSON',
      '[]',
      '{"from":7}',
      '{"from":"re_9","wake":["dance"],"changed":[7]}',
      '{"from":"re_9","wake":"remove"}',
    ])
      await news.publish(text)
    mine.wake('remove')
    await until(() => there.length > 0, 'it still hears')
    expect(there).toEqual(['remove'])
  })

  it('answer a request that waits on the one for what the other has done', async () => {
    const { store, other } = await open()
    const provider = scriptedProvider()
    const one = await makeEngine(store, provider)
    await one.start()
    onTestFinished(() => one.stop(0))
    // Serves requests, and takes no rows: only the news can tell it.
    const two = await createEngine({ store: other, providers: [provider], log: silentLog, version: 'test', watchClocks: false })
    const newsroom = createNewsroom(other.news, two.context.replicaId, two.context.signals, silentLog)
    await newsroom.start()
    onTestFinished(() => newsroom.stop())
    const lease = await leaseOn(one)
    const changed = two.context.signals.nextChange(lease.id, long)
    await one.context.store.write((tx) => tx.db.updateTable('leases').set({ due_at: tx.now, expires_at: tx.now }).execute())
    one.context.signals.wake('expire')
    await changed
  })
})
