/**
 * A coordinator for the heartbeat bench: the real API on a seeded database, and beside its heartbeat a twin route with the same authentication, schema and
 * body that answers from memory. Prints `{port, token, ids}` when it listens; its parent ends it. Told `sweep` it sweeps over all that it has, again and again,
 * until it is told `rest`; it prints how often at the end.
 */
import { createInterface } from 'node:readline'
import { sql } from 'kysely'
import { createApi } from '../../src/api/index.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { getLease } from '../../src/engine/leases/index.ts'
import { loadSweep } from '../../src/engine/sweep/load.ts'
import { inspect } from '../../src/engine/sweep/run.ts'
import { secret } from '../../src/lib/ids.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { openStore } from '../../src/store/open.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { heartbeatBody, Lease, leaseKey } from '../../src/api/schemas/leases.ts'
import { answer, nothing, ref } from '../../src/api/schemas/kinds.ts'
import { answers } from '../../src/api/app.ts'
import { root } from '../support/engine.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'
import { enrol } from '../../src/store/cleanups.ts'
import { seedScope } from './scope.ts'
import { seededPages } from './listing.ts'

const [target, count, spread] = process.argv.slice(2) as [string, string, string | undefined]
const store = await openStore(target)
const provider = scriptedProvider('process')
const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'bench' })
const token = secret('lhx_')
await firstStart(engine.context, token)
await seedScope(store, { scope: testScope, createdAgoMs: 3_600_000, endsInMs: 3_600_000 }, 0, Number(count))
// As they come in life, one after the other, rather than all in one millisecond.
if (spread === 'spread')
  await store.write((tx) =>
    sql`update leases set created_at = created_at - v.n from (select id, row_number() over (order by id) as n from leases) as v
      where leases.id = v.id`.execute(tx.db),
  )
const ids = (await store.read(({ db }) => db.selectFrom('leases').select('id').execute())).map((row) => row.id)
await store.write((tx) => enrol(tx, 'default', 'local', tx.now))
const work = await loadSweep(engine.context, 'default/local')
if (!work) throw new Error('the backend is not enrolled')
// Listed only when the parent says so.
await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: null }).execute())
provider.list = () => seededPages(engine)
provider.locationsOf = () => ['local']
await engine.start()
const api = await createApi({ context: engine.context, engine, version: 'bench', log: createLog('silent') })
const memory = new Map<string, LeaseView>()
const inMemory = ids.slice(0, 10_000)
for (const id of inMemory) memory.set(id, await getLease(engine.context, root, id))
api.post(
  '/v1/twin/:id/heartbeat',
  {
    config: { access: 'lease' },
    schema: {
      params: leaseKey,
      querystring: nothing,
      body: heartbeatBody,
      response: answers({ 200: answer('The lease, from memory.', { lease: ref(Lease) }) }),
    },
  },
  async (request) => ({ lease: memory.get(request.params.id) }),
)
await api.listen({ host: '127.0.0.1', port: 0 })
const address = api.server.address() as { port: number }
process.stdout.write(`${JSON.stringify({ port: address.port, token, ids, inMemory: inMemory.length })}\n`)

let sweeping = false
const sweepOn = async (): Promise<void> => {
  let sweeps = 0
  for (sweeping = true; sweeping; sweeps++) {
    const { kind } = await inspect(engine.context, work, new AbortController().signal)
    if (kind !== 'inspected') throw new Error(`a sweep ended as ${kind}`)
  }
  process.stdout.write(`${JSON.stringify({ sweeps })}\n`)
}
createInterface(process.stdin).on('line', (line) => {
  if (line === 'rest') sweeping = false
  else void sweepOn()
})
