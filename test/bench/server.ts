/**
 * A coordinator for the heartbeat bench: the real API on a seeded database, and beside its heartbeat a twin route with the same authentication, schema and
 * body that answers from memory. Prints `{port, token, ids}` when it listens; its parent ends it.
 */
import { createApi } from '../../src/api/index.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { firstStart } from '../../src/engine/admin/index.ts'
import { getLease } from '../../src/engine/leases/index.ts'
import { secret } from '../../src/lib/ids.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { openStore } from '../../src/store/open.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { heartbeatBody, Lease, leaseKey } from '../../src/api/schemas/leases.ts'
import { answer, nothing, ref } from '../../src/api/schemas/kinds.ts'
import { answers } from '../../src/api/app.ts'
import { root } from '../support/engine.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'
import { seedLeases } from '../support/seed.ts'

const [target, count] = process.argv.slice(2) as [string, string]
const store = await openStore(target)
const provider = scriptedProvider('process')
const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'bench' })
const token = secret('lhx_')
await firstStart(engine.context, token)
const ids = await seedLeases(store, {
  count: Number(count),
  owner: 'admin',
  provider: 'process',
  backend: 'local',
  scope: testScope,
  createdAgoMs: 1_000,
  endsInMs: 3_600_000,
})
await engine.start()
const api = await createApi({ context: engine.context, engine, version: 'bench', log: createLog('silent') })
const memory = new Map<string, LeaseView>()
for (const id of ids) memory.set(id, await getLease(engine.context, root, id))
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
process.stdout.write(`${JSON.stringify({ port: address.port, token, ids })}\n`)
