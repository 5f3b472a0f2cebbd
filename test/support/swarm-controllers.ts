/** Controllers on a Swarm, each with a database, a monotonic clock and a nonce of its own unless it is told to share them. */
import { createSwarm, type EngineCalls } from '../../src/providers/swarm/index.ts'
import { installationOf } from '../../src/engine/installation.ts'
import { identityOf, ownKeys } from '../../src/prune/controller/identity.ts'
import { createController, type ControllerSession } from '../../src/prune/controller/session.ts'
import type { ControllerWord } from '../../src/prune/controller/reclaim.ts'
import type { RecordsContext } from '../../src/prune/records/write.ts'
import type { Store } from '../../src/store/store.ts'

export interface TestController {
  session: ControllerSession
  word: ControllerWord
  /** For its records, as its lease stands now. */
  records(): Promise<RecordsContext>
}

let nonces = 0

export const testController = async (
  engine: EngineCalls,
  store: Store,
  options: { controllerId?: string; appSet?: string; replicaId?: string; clock?: { ms: number } } = {},
): Promise<TestController> => {
  const swarm = createSwarm(engine)
  const { signal } = new AbortController()
  const info = await swarm.info({ signal })
  if (info.kind !== 'manager') throw new Error('no manager')
  await installationOf(store)
  const identity = await identityOf(store, options.controllerId ?? 'default')
  const appSet = options.appSet ?? 'git:main'
  const clock = options.clock ?? { ms: 0 }
  const word = { store, swarm, clusterId: info.clusterId, identity, signal }
  nonces++
  const session = createController({
    ...word,
    appSet: { fingerprint: appSet, source: appSet },
    replicaId: options.replicaId ?? 'rp_1',
    nonce: `nonce${nonces}`,
    monotonic: () => clock.ms,
  })
  return {
    session,
    word,
    async records() {
      const standing = session.standing()
      return {
        swarm,
        clusterId: info.clusterId,
        controllerId: identity.controllerId,
        signer: identity.signer,
        own: await store.read((db) => ownKeys(db, identity.instanceUid)),
        epoch: standing.mode === 'act' ? standing.epoch : 0,
        stands: () => session.stands(),
        now: () => store.now(),
        signal,
      }
    },
  }
}
