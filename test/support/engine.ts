/** An engine on a store with a project, a backend and an actor, for suites that drive it. */
import type { Actor } from '../../src/engine/actor.ts'
import { createEngine, type Engine } from '../../src/engine/engine.ts'
import { silentLog, type Log } from '../../src/engine/context.ts'
import type { Provider } from '../../src/providers/contract.ts'
import { insertBackend } from '../../src/store/backends.ts'
import { insertProject } from '../../src/store/projects.ts'
import type { SweepSettings } from '../../src/model/sweep-settings.ts'
import type { Store } from '../../src/store/store.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { createLease, getLease, settledLease, type CreateInput } from '../../src/engine/leases/index.ts'
import { until } from './until.ts'

export const ann: Actor = { name: 'ann', role: 'user', project: 'default', onlyLease: null }
export const root: Actor = { name: 'root', role: 'admin', project: null, onlyLease: null }

/** Not started yet. The clock is watched only where a suite asks for it: most move it themselves. */
export const makeEngine = async (
  store: Store,
  provider: Provider,
  options: { watchClocks?: boolean; log?: Log; sweeps?: (provider: string) => SweepSettings } = {},
): Promise<Engine> => {
  const engine = await createEngine({
    store,
    providers: [provider],
    log: options.log ?? silentLog,
    version: 'test',
    watchClocks: options.watchClocks ?? false,
    ...(options.sweeps ? { sweepSettings: options.sweeps } : {}),
  })
  await store.write(async (tx) => {
    await insertProject(tx, 'default')
    await insertBackend(tx, { project: 'default', name: 'local', provider: provider.name, config: '{}', scope: null, is_default: 1 })
  })
  return engine
}

/** Creates a lease and waits until it is settled. */
export const leaseOn = async (engine: Engine, input: CreateInput = {}, actor: Actor = ann): Promise<LeaseView> => {
  const { lease } = await createLease(engine.context, actor, input)
  return settledLease(engine.context, lease.id, 20_000)
}

/** Polls the lease until `ready` says so. */
export const leaseWhen = (engine: Engine, id: string, ready: (lease: LeaseView) => boolean): Promise<LeaseView> =>
  until(async () => {
    const lease = await getLease(engine.context, root, id)
    return ready(lease) ? lease : undefined
  }, `lease ${id} gets there`)
