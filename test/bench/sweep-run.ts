/** One sweep over a seeded scope in a process of its own, so that its memory is its own: prints the figures as JSON. */
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { inspect } from '../../src/engine/sweep/run.ts'
import { loadSweep } from '../../src/engine/sweep/load.ts'
import type { ListingItem } from '../../src/providers/contract.ts'
import { openStore } from '../../src/store/open.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { seededPages } from './listing.ts'

const target = process.argv[2] as string
const store = await openStore(target)
const provider = scriptedProvider('process')
const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'bench' })

const pages = () => seededPages(engine)
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
