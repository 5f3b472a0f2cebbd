/** An engine on a fresh store, not running, with the first start done: what the administrative suites work on. */
import type { Actor } from '../../../src/engine/actor.ts'
import { firstStart } from '../../../src/engine/admin/index.ts'
import type { EngineContext } from '../../../src/engine/context.ts'
import { createEngine, type Engine } from '../../../src/engine/engine.ts'
import { silentLog } from '../../../src/engine/context.ts'
import type { Role } from '../../../src/model/wire.ts'
import type { ScopeId } from '../../../src/model/ids.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { readEvents } from '../../../src/store/events.ts'
import { insertProject } from '../../../src/store/projects.ts'
import type { Store } from '../../../src/store/store.ts'
import { scriptedProvider, testScope, type Scripted } from '../../support/scripted-provider.ts'

export const otherScope = 'scripted:two' as ScopeId
export const actor = (role: Role, project: string | null, name = `${role}-${project ?? 'all'}`): Actor => ({
  name,
  role,
  project,
  onlyLease: null,
})
export const root = actor('admin', null, 'root')

export interface Office {
  engine: Engine
  context: EngineContext
  provider: Scripted
}

/** Projects `default` (scope `scripted:one`) and `other` (scope `scripted:two`). */
export const openOffice = async (store: Store): Promise<Office> => {
  const provider = scriptedProvider('process')
  const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'test', watchClocks: false })
  await firstStart(engine.context)
  await store.write(async (tx) => {
    await tx.db.updateTable('backends').set({ scope: testScope }).execute()
    await insertProject(tx, 'other')
    await insertBackend(tx, {
      project: 'other',
      name: 'local',
      provider: 'process',
      config: JSON.stringify({ account: otherScope }),
      scope: otherScope,
      is_default: 1,
    })
  })
  return { engine, context: engine.context, provider }
}

/** The events of one code, oldest first, as they are stored. */
export const eventsOf = async (store: Store, code: string) =>
  (await readEvents(store, { project: null, after: 0, limit: 1_000, target: null })).filter(({ event }) => event.code === code)
