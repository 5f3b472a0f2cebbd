/** How long until a pipeline works on what was just written: by this process, which is told, and by somebody whom nobody heard, where only the tick finds it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLease } from '../../src/engine/leases/index.ts'
import { openStore } from '../../src/store/open.ts'
import { root } from '../support/engine.ts'
import { until } from '../support/until.ts'
import { commitsPerSecond, openCrowd, slowProvider } from './crowd.ts'
import { median, type BenchDatabase, type Row } from './shared.ts'

const times = 100
const unheardTimes = 20

export const pickup = async (database: BenchDatabase): Promise<Row[]> => {
  const provider = slowProvider(0)
  const begun = new Map<string, number>()
  provider.onCreate = async (request) => void begun.set(request.ref, performance.now())
  const crowd = await openCrowd(database.target, provider)
  const other = await openStore(database.target)
  const commitMs = 1000 / (await commitsPerSecond(crowd.store, 1))
  await crowd.engine.start()
  const own: number[] = []
  for (let i = 0; i < times; i++) {
    // Not in step with any tick.
    await sleep(Math.random() * 20)
    const { lease } = await createLease(crowd.engine.context, { ...root, project: 'default' }, {})
    const at = performance.now()
    const ref = (
      await crowd.store.read(({ db }) =>
        db
          .selectFrom('instances')
          .select('ref')
          .where('lease_id', '=', lease.id as never)
          .executeTakeFirstOrThrow(),
      )
    ).ref
    own.push(Math.max(0, (await until(() => begun.get(ref), 'its create')) - at))
  }
  const unheard: number[] = []
  const settled = await until(async () => {
    const rows = await crowd.store.read(({ db }) => db.selectFrom('leases').select('id').where('state', '=', 'active').execute())
    return rows.length === times ? rows : undefined
  }, 'all are active')
  for (const { id } of settled.slice(0, unheardTimes)) {
    await sleep(Math.random() * 1_000)
    const at = performance.now()
    await other.write((tx) => tx.db.updateTable('leases').set({ expires_at: tx.now, due_at: tx.now }).where('id', '=', id).execute())
    await until(
      () => crowd.store.read(({ db }) => db.selectFrom('removals').select('id').where('lease_id', '=', id).executeTakeFirst()),
      'its removal',
    )
    unheard.push(performance.now() - at)
  }
  await other.close()
  await crowd.close()
  const row = (what: string, all: number[], target: string): Row => ({
    bench: 'pick-up',
    database: database.name,
    what,
    target,
    figures: { medianMs: median(all), slowestMs: Math.max(...all), ratioToCommit: median(all) / commitMs },
  })
  return [
    row(`written by this process until its call begins, ${times} times`, own, 'at once'),
    row(`written by another that told nobody until it was worked on, ${unheardTimes} times`, unheard, 'a tick of 1 s'),
  ]
}
