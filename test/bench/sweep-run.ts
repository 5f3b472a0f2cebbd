/** One sweep over a seeded scope in a process of its own, so that its memory is its own: prints the figures as JSON. */
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

/** What the provider would answer, read from the ledger itself: one page a call. */
async function* pages(): AsyncGenerator<ListingItem> {
  for (let after = ''; ;) {
    const rows = await store.read(({ db }) =>
      db
        .selectFrom('attempts')
        .select(['ref', 'token', 'native_id', 'immutable_id', 'location'])
        .where('ref', '>', after as never)
        .orderBy('ref')
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
      tags: { ref: row.ref, installation, attempt: row.token },
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
    after = last.ref
  }
  yield { type: 'coverage', coverage: { location: 'local', kind: 'box', state: { kind: 'complete' }, pages: 1 } }
}
provider.list = () => pages()
provider.locationsOf = () => ['local']

const producing = performance.now()
let listed = 0
for await (const item of pages()) listed += item.type === 'page' ? item.resources.length : 0
const producedMs = performance.now() - producing

const work = await loadSweep(engine.context, 'default/local')
if (!work) throw new Error('the backend is not enrolled')
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
const start = performance.now()
const inspection = await inspect(engine.context, work, new AbortController().signal)
const ms = performance.now() - start
delay.disable()
if (inspection.kind !== 'inspected' || inspection.seen !== listed || inspection.judged.length > 0)
  throw new Error(`the sweep did not see what there is: ${JSON.stringify(inspection).slice(0, 300)}`)
process.stdout.write(
  `${JSON.stringify({ listed, ms, producedMs, beyondMs: ms - producedMs, peakMegabytes: process.resourceUsage().maxRSS / 1024, longestStretchMs: delay.max / 1e6 })}\n`,
)
await store.close()
