/** What may still turn up needs its backend's configuration, and the account that it was really made in (orphans R34, R40, U16). */
import { afterEach, expect, it } from 'vitest'
import { createLease, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import type { ScopeId } from '../../src/model/ids.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { gate } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'
import { long, sweepWorld, type SweepWorld } from '../support/sweep-world.ts'
import { until } from '../support/until.ts'

eachStore('a backend', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.engine.stop(0)
  })
  const world = async (): Promise<SweepWorld> => {
    const made = await sweepWorld(await open())
    worlds.push(made)
    return made
  }
  const backends = async (w: SweepWorld): Promise<string[]> =>
    (await w.store.read(({ db }) => db.selectFrom('backends').select('name').execute())).map((row) => row.name)
  const deleteBackend = (w: SweepWorld) =>
    w.store.write((tx) => tx.db.updateTable('backends').set({ deleted_at: tx.now, is_default: 0 }).execute())

  it('that was deleted is kept while an attempt of it is under way, and for as long as what it made may surface late', async () => {
    const w = await world()
    await leaseOn(w.engine, long)
    w.provider.boxes.clear()
    await w.store.write((tx) => tx.db.updateTable('instances').set({ state: 'terminated', terminated_at: tx.now }).execute())
    await w.store.write((tx) => tx.db.updateTable('attempts').set({ outcome: 'absent', ended_at: tx.now }).execute())
    const hold = gate()
    w.provider.onCreate = async () => {
      await hold.promise
      return { kind: 'rejected', code: 'quota', message: 'no room' }
    }
    const calls = w.provider.count('create')
    const { lease } = await createLease(w.engine.context, ann, long)
    await until(() => w.provider.count('create') > calls, 'the provider is asked')
    await releaseLease(w.engine.context, ann, lease.id, {})
    await deleteBackend(w)
    await w.sweep(3600)
    expect(await backends(w)).toEqual(['local'])
    hold.open()
    let looks = 0
    await until(async () => {
      // Whose call it was may have lost its lock by the leap of the clock: then somebody takes the row over once that has run out.
      if (++looks % 20 === 0) await w.advance(2)
      return (await w.store.read(({ db }) => db.selectFrom('attempts').select('id').where('outcome', '=', 'open').execute())).length === 0
    }, 'the attempt has ended')
    await w.sweep(60)
    expect(await backends(w)).toEqual(['local'])
    // The twin: nothing is open, and nothing can surface any more.
    await w.sweep(3600)
    expect(await backends(w)).toEqual([])
  })

  it('whose account changed under it has its box recorded where it was really made', async () => {
    const w = await world()
    await leaseOn(w.engine, long)
    w.provider.onCreate = (request) => {
      const resource = w.provider.make(request)
      const elsewhere = { ...resource, scope: 'scripted:elsewhere' as ScopeId }
      w.provider.boxes.set(resource.nativeId, {
        ...(w.provider.boxes.get(resource.nativeId) as never as object),
        resource: elsewhere,
      } as never)
      return { kind: 'created', resource: elsewhere, ready: true }
    }
    const lease = await leaseOn(w.engine, long)
    expect(lease.scope).toBe('scripted:elsewhere')
    // And so nobody looks for it, or takes it back, in the other account.
    const calls = w.provider.count('remove')
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'preparing')
    await w.advance(400)
    w.engine.context.signals.wake('remove')
    await w.sweep(60)
    expect(w.provider.count('remove')).toBe(calls)
    expect((await getLease(w.engine.context, ann, lease.id)).cleanup.state).not.toBe('gone')
  })
})
