/** A real coordinator started on 100,000 leases that are all past their end: how long until `/v1/ready` says yes (case G10). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { openStore } from '../../src/store/open.ts'
import { freePort, startCoordinator } from '../support/coordinator.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'
import { seedLeases } from '../support/seed.ts'
import { median, type BenchDatabase, type Row } from './shared.ts'

const leases = 100_000
const starts = 3

export const start = async (database: BenchDatabase): Promise<Row[]> => {
  const data = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const target = database.name === 'sqlite' ? join(data, 'leasehold.db') : database.target
  const store = await openStore(target)
  const engine = await createEngine({ store, providers: [scriptedProvider('process')], log: silentLog, version: 'bench' })
  await firstStart(engine.context)
  // A database that nothing ever worked on: its first start is the same, without leases.
  const options = async () => ({ data, port: await freePort(), ...(database.name === 'sqlite' ? {} : { databaseUrl: target }) })
  const timed = async (): Promise<number> => {
    const at = performance.now()
    const coordinator = await startCoordinator(await options())
    const ms = performance.now() - at
    await coordinator.kill()
    return ms
  }
  const empty: number[] = []
  for (let i = 0; i < starts; i++) empty.push(await timed())
  await seedLeases(store, {
    count: leases,
    owner: 'admin',
    provider: 'process',
    backend: 'local',
    scope: testScope,
    createdAgoMs: 10_000_000,
    endsInMs: -3_600_000,
  })
  await store.close()
  const full: number[] = []
  for (let i = 0; i < starts; i++) full.push(await timed())
  rmSync(data, { recursive: true, force: true })
  return [
    {
      bench: 'start',
      database: database.name,
      what: `${leases} expired leases`,
      figures: {
        readyMs: Math.round(median(full)),
        readyEmptyMs: Math.round(median(empty)),
        ratioToEmpty: median(full) / median(empty),
        slowestMs: Math.round(Math.max(...full)),
      },
    },
  ]
}
