/** One sweep over a seeded scope in a process of its own, so that its memory is its own: prints the figures as JSON. */
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { inspect } from '../../src/engine/sweep/run.ts'
import { loadSweep } from '../../src/engine/sweep/load.ts'
import type { ListedResource, ListingItem } from '../../src/providers/contract.ts'
import { openStore } from '../../src/store/open.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'

const target = process.argv[2] as string
const page = 1000
const store = await openStore(target)
const provider = scriptedProvider('process')
const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'bench' })
const installation = engine.context.installation.installation_id

/**
 * What the provider would answer, read from the attempts: one page a call, in the order in which the boxes were made. A provider knows nothing of the order of
 * our refs, so each page asks for refs from all over the ledger.
 */
async function* pages(): AsyncGenerator<ListingItem> {
  for (let after = ''; ;) {
    const rows = await store.read(({ db }) =>
      db
        .selectFrom('attempts')
        .select(['id', 'ref', 'token', 'native_id', 'immutable_id', 'location'])
        .where('id', '>', after as never)
        .orderBy('id')
        .limit(page)
        .execute(),
    )
    const resources = rows.map((row): ListedResource => ({
      resource: {
        scope: testScope,
        location: row.location,
        kind: 'box',
        nativeId: row.native_id ?? '',
        immutableId: row.immutable_id ?? '',
        facts: {},
      },
      tags: { ref: row.ref, installation, attempt: row.token, mac: null },
      fixedAttemptToken: row.token,
      providerState: 'running',
      existence: 'exists',
      name: row.ref,
      createdAt: null,
      labels: {},
      attachedTo: [],
      reportOnly: null,
    }))
    if (resources.length > 0) yield { type: 'page', location: 'local', kind: 'box', resources }
    const last = rows.at(-1)
    if (!last || rows.length < page) break
    after = last.id
  }
  yield { type: 'coverage', coverage: { location: 'local', kind: 'box', state: { kind: 'complete' }, pages: 1 } }
}
/** The same, with the time that it takes itself beside the sweep's own work in between. */
const during = { firstCallAt: 0, lastCallAt: 0, producingMs: 0 }
async function* timedPages(): AsyncGenerator<ListingItem> {
  const source = pages()
  during.firstCallAt = performance.now()
  for (;;) {
    const asked = performance.now()
    const next = await source.next()
    during.lastCallAt = performance.now()
    during.producingMs += during.lastCallAt - asked
    if (next.done === true) return
    yield next.value
  }
}
provider.list = () => timedPages()
provider.locationsOf = () => ['local']

/** Of this program alone: the most that `resourceUsage` knows is also that of the process which started it. */
const peakMegabytes = (): number => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024

const cpuMs = (since: NodeJS.CpuUsage): number => {
  const used = process.cpuUsage(since)
  return (used.user + used.system) / 1000
}

const producing = performance.now()
const producingCpu = process.cpuUsage()
let listed = 0
for await (const item of pages()) listed += item.type === 'page' ? item.resources.length : 0
const producedMs = performance.now() - producing
const producedCpuMs = cpuMs(producingCpu)

const work = await loadSweep(engine.context, 'default/local')
if (!work) throw new Error('the backend is not enrolled')
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
const start = performance.now()
const startCpu = process.cpuUsage()
const inspection = await inspect(engine.context, work, new AbortController().signal)
const end = performance.now()
const sweepCpuMs = cpuMs(startCpu)
delay.disable()
if (inspection.kind !== 'inspected' || inspection.seen !== listed || inspection.judged.length > 0)
  throw new Error(`the sweep did not see what there is: ${JSON.stringify(inspection).slice(0, 300)}`)
process.stdout.write(
  `${JSON.stringify({
    producedMs,
    beyondMs: end - start - producedMs,
    beforeMs: during.firstCallAt - start,
    siftMs: during.lastCallAt - during.firstCallAt - during.producingMs,
    afterMs: end - during.lastCallAt,
    beyondCpuMs: sweepCpuMs - producedCpuMs,
    peakMegabytes: peakMegabytes(),
    longestStretchMs: delay.max / 1e6,
  })}\n`,
)
await store.close()
