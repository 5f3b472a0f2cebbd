/** A running engine with a scripted provider, a clock that stands still until it is moved, and sweeps whose settings a suite changes as it goes. */
import { releaseLease } from '../../src/engine/leases/index.ts'
import { requestSweep, type SweepInput } from '../../src/engine/admin/index.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { SweepMode } from '../../src/model/sweep-settings.ts'
import type { LeaseView, SweepView } from '../../src/model/wire.ts'
import type { ListedResource, Provider } from '../../src/providers/contract.ts'
import type { Schema } from '../../src/store/schema.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from './engine.ts'
import { scriptedProvider, type Scripted } from './scripted-provider.ts'
import { advance, setClock } from './stores.ts'
import { sweepsAs } from './sweep-settings.ts'

export const t0 = Date.UTC(2026, 5, 1, 12)
/** Named as one of this machine, so that the margin is 5 s. */
const providerName = 'process'
export const long = { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 }

export interface SweepWorld {
  store: Store
  provider: Scripted
  engine: Engine
  settings: { mode: SweepMode; graceMs: number }
  /** A sweep that was asked for, some seconds later. */
  sweep(seconds?: number, input?: SweepInput): Promise<SweepView>
  advance(seconds: number): Promise<number>
  /** A lease whose box is gone and whose leftover turns up again, exactly as it was recorded. */
  orphan(): Promise<{ lease: LeaseView; box: ListedResource; key: string }>
  key(box: ListedResource): string
}

export const sweepWorld = async (
  store: Store,
  given: { mode?: SweepMode; graceMs?: number; start?: boolean; provider?: (scripted: Scripted) => Provider } = {},
): Promise<SweepWorld> => {
  await setClock(store, t0)
  const provider = scriptedProvider(providerName)
  const settings = { mode: given.mode ?? 'report', graceMs: given.graceMs ?? 900_000 }
  const engine = await makeEngine(store, given.provider?.(provider) ?? provider, { sweeps: sweepsAs(settings) })
  if (given.start ?? true) {
    // Off for the moment of the start, so that its own enrolment makes no sweep that a suite did not ask for.
    settings.mode = 'off'
    await engine.start()
    settings.mode = given.mode ?? 'report'
  }
  const key = (box: ListedResource): string => `${providerName}/${box.resource.location}/${box.resource.nativeId}`
  const world: SweepWorld = {
    store,
    provider,
    engine,
    settings,
    key,
    advance: (seconds) => advance(store, seconds * 1000),
    async sweep(seconds = 60, input = {}) {
      await advance(store, seconds * 1000)
      const [one] = await requestSweep(engine.context, root, input, 20_000, new AbortController().signal)
      return one as SweepView
    },
    async orphan() {
      const lease = await leaseOn(engine, long)
      const box = provider.boxes.get(lease.cloudID ?? '') as ListedResource
      await releaseLease(engine.context, ann, lease.id, {})
      await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
      provider.boxes.set(box.resource.nativeId, box)
      return { lease, box, key: key(box) }
    },
  }
  return world
}

const tables = [
  'installation',
  'projects',
  'tokens',
  'backends',
  'scopes',
  'instances',
  'leases',
  'create_requests',
  'ledger',
  'attempts',
  'cleanups',
  'cells',
  'circuits',
  'sweeps',
  'findings',
  'removals',
  'holds',
  'freezes',
  'events',
  'event_targets',
  'audit',
] as const satisfies readonly (keyof Schema)[]

const unsealed = (table: string): object => (table === 'audit' ? { seq: null, hash: null } : {})

/** Every row of every table but the clock, the replicas' alive marks and what the sealer adds to audit records, as one text each. */
export const everyRow = (store: Store): Promise<Record<string, string[]>> =>
  store.read(async ({ db }) => {
    const all: Record<string, string[]> = {}
    for (const table of tables)
      all[table] = (await db.selectFrom(table).selectAll().execute())
        .map((row) => JSON.stringify({ ...row, ...unsealed(table) }))
        .toSorted()
    return all
  })
