/** Sweeps as their schedule makes them on a started engine, with its rows to look at: what the suites of sweeps share. */
import { afterEach } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { enrolMissing } from '../../src/engine/sweep/enrol.ts'
import type { SweepMode } from '../../src/model/sweep-settings.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from './engine.ts'
import { scriptedProvider } from './scripted-provider.ts'
import { advance, setClock, type OpenStore } from './stores.ts'
import { intervalMs, t0 } from './sweep-rounds.ts'
import { sweepsAs } from './sweep-settings.ts'
import { until } from './until.ts'

export const sweepSuite = (open: OpenStore) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })

  const world = async (mode: SweepMode = 'report', graceMs = 900_000) => {
    const store = await open()
    await setClock(store, t0)
    const provider = scriptedProvider()
    const settings = { mode, graceMs }
    const engine = await makeEngine(store, provider, { sweeps: sweepsAs(settings) })
    engines.push(engine)
    await engine.start()
    return { store, provider, engine, settings }
  }
  type World = Awaited<ReturnType<typeof world>>

  const certificates = (store: Store) => store.read(({ db }) => db.selectFrom('sweeps').selectAll().orderBy('id').execute())
  const cleanup = (store: Store) => store.read(({ db }) => db.selectFrom('cleanups').selectAll().executeTakeFirstOrThrow())
  const findings = (store: Store) => store.read(({ db }) => db.selectFrom('findings').selectAll().orderBy('id').execute())
  const openFindings = async (store: Store) => (await findings(store)).filter((row) => row.state === 'open')

  /** Moves the clock to the next time that a sweep is due, and waits until the row was processed. @returns the newest certificate */
  const nextSweep = async ({ store, engine }: Pick<World, 'store' | 'engine'>, afterMs = 2 * intervalMs) => {
    await enrolMissing(engine.context)
    // One that is under way from before would end without a lock of its own to count.
    const before = await until(async () => {
      const row = await cleanup(store)
      return row.lock_owner === null ? row : undefined
    }, 'the cleanup is free')
    await advance(store, afterMs)
    await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).where('lock_owner', 'is', null).execute())
    engine.context.signals.wake('sweep')
    await until(async () => {
      const now = await cleanup(store)
      return now.lock_fence > before.lock_fence && now.lock_owner === null
    }, 'the cleanup is processed')
    return (await certificates(store)).at(-1)
  }

  /** A lease whose box is gone and whose leftover turns up again, exactly as it was recorded: an orphan. */
  const orphanOn = async (w: World): Promise<{ lease: LeaseView; box: ListedResource }> => {
    const lease = await leaseOn(w.engine)
    const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    w.provider.boxes.set(box.resource.nativeId, box)
    return { lease, box }
  }
  return { world, certificates, cleanup, findings, openFindings, nextSweep, orphanOn }
}
