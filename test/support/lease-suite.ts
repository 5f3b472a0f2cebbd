/** Started engines on a scripted provider and a clock that stands still, for suites of leases; they end with their test. */
import { afterEach } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { makeEngine } from './engine.ts'
import { scriptedProvider, type Scripted } from './scripted-provider.ts'
import { setClock, type OpenStore } from './stores.ts'

export const t0 = Date.UTC(2026, 5, 1, 12)

export const startedEngines = (open: OpenStore): ((provider?: Scripted) => Promise<{ engine: Engine; provider: Scripted }>) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  return async (provider = scriptedProvider()) => {
    const store = await open()
    await setClock(store, t0)
    const engine = await makeEngine(store, provider)
    engines.push(engine)
    await engine.start()
    return { engine, provider }
  }
}
