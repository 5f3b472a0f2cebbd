/** One sweep over 100,000 and 1,000,000 listed resources against a ledger of the same size: time beyond producing the listing, peak memory, longest stretch. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { enrol } from '../../src/store/cleanups.ts'
import { openStore } from '../../src/store/open.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'
import { seedScope } from './scope.ts'
import type { BenchDatabase, Row } from './shared.ts'

const run = promisify(execFile)

/** @param already so many are there */
export const sweepOver = async (database: Omit<BenchDatabase, 'drop'>, count: number, already: number): Promise<Row> => {
  const store = await openStore(database.target)
  const engine = await createEngine({ store, providers: [scriptedProvider('process')], log: silentLog, version: 'bench' })
  await firstStart(engine.context)
  await seedScope(store, { scope: testScope, createdAgoMs: 7_200_000, endsInMs: 3_600_000 }, already, count)
  await store.write((tx) => enrol(tx, 'default', 'local', tx.now))
  await store.close()
  // The flag with which bin/leasehold starts every command.
  const flags = ['--max-semi-space-size=16', new URL('./sweep-run.ts', import.meta.url).pathname]
  const { stdout } = await run(process.execPath, [...flags, database.target], { maxBuffer: 1e7 })
  const figures = JSON.parse(stdout) as Record<string, number>
  return {
    bench: 'sweep',
    database: database.name,
    what: `${count} listed resources`,
    figures: {
      beyondListingMs: Math.round(figures['beyondMs'] ?? 0),
      beforeMs: Math.round(figures['beforeMs'] ?? 0),
      siftMs: Math.round(figures['siftMs'] ?? 0),
      afterMs: Math.round(figures['afterMs'] ?? 0),
      cpuBeyondListingMs: Math.round(figures['beyondCpuMs'] ?? 0),
      listingMs: Math.round(figures['producedMs'] ?? 0),
      peakMegabytes: Math.round(figures['peakMegabytes'] ?? 0),
      longestStretchMs: figures['longestStretchMs'] ?? 0,
    },
  }
}

export const sweep = async (database: BenchDatabase): Promise<Row[]> => {
  const most = Number(process.env['LEASEHOLD_BENCH_SWEEP'] ?? 1_000_000)
  const rows: Row[] = []
  let already = 0
  for (const count of [10_000, 100_000, 1_000_000].filter((size) => size <= most)) {
    rows.push(await sweepOver(database, count, already))
    already = count
  }
  return rows
}
