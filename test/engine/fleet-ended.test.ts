/** What of a fleet has ended stays so, whoever was looking at it just then (I9). */
import { expect, it } from 'vitest'
import { scaleFleet } from '../../src/engine/admin/index.ts'
import { createLease, releaseLease } from '../../src/engine/leases/index.ts'
import { fleetOf, fleetWhen, instancesOf } from '../support/fleets.ts'
import { ann, root } from '../support/engine.ts'
import { startedEngines, t0 } from '../support/lease-suite.ts'
import { gate, wipingProvider } from '../support/scripted-provider.ts'
import { advance, eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

const minute = 60_000

eachStore('a box of a fleet that has ended', (open) => {
  const started = startedEngines(open)

  it('is not made again by the look at it that was under way when it was given up (I9)', async () => {
    const { engine, provider } = await started()
    const { store } = engine.context
    await fleetOf(engine, 1)
    const [box] = await instancesOf(store)
    const look = gate()
    let looks = 0
    provider.onRead = async () => {
      if (looks++ === 0) await look.promise
      return undefined
    }
    await advance(store, 6 * minute)
    engine.context.signals.wake('provision')
    await until(() => looks === 1, 'it is looked at')
    await scaleFleet(engine.context, root, 'ci', { size: 0 })
    await until(async () => (await instancesOf(store))[0]?.state === 'terminating', 'it is given up')
    look.open()
    await until(async () => (await instancesOf(store))[0]?.state === 'terminated', 'it is gone')
    await until(async () => (await instancesOf(store))[0]?.lock_owner === null, 'nobody looks at it')
    const created = provider.count('create')
    await advance(store, 30 * minute)
    engine.context.signals.wake('provision')
    // The twin, and the sign that the pipeline has looked: a box that is wanted is made.
    await scaleFleet(engine.context, root, 'ci', { size: 1 })
    await fleetWhen(engine, 'another is ready', (fleet) => fleet.ready === 1)
    const rows = await instancesOf(store)
    expect(rows.find((row) => row.id === box?.id)).toMatchObject({ state: 'terminated', due_at: null })
    expect(provider.count('create')).toBe(created + 1)
  })

  it('is not made again either where an older version left it due (I9)', async () => {
    const { engine, provider } = await started()
    const { store } = engine.context
    await fleetOf(engine, 1)
    await advance(store, 6 * minute)
    await scaleFleet(engine.context, root, 'ci', { size: 0 })
    await until(async () => (await instancesOf(store))[0]?.state === 'terminated', 'it is gone')
    const created = provider.count('create')
    await store.write((tx) => tx.db.updateTable('instances').set({ due_at: tx.now }).execute())
    engine.context.signals.wake('provision')
    await until(async () => (await instancesOf(store))[0]?.due_at === null, 'it is looked at')
    expect((await instancesOf(store))[0]).toMatchObject({ state: 'terminated' })
    expect(provider.count('create')).toBe(created)
  })
})

eachStore('a box of a fleet that was given back', (open) => {
  const started = startedEngines(open)

  it('is ready again also after a lease that was shorter than those of the fleet: its clock is moved before anybody calls it too old', async () => {
    const { engine, provider } = await started(wipingProvider())
    await fleetOf(engine, 1)
    const { lease } = await createLease(engine.context, ann, { fleet: 'ci', ttlSeconds: 60 })
    await fleetWhen(engine, 'another is ready', (fleet) => fleet.ready === 1 && fleet.taken === 1)
    await releaseLease(engine.context, ann, lease.id, {})
    await fleetWhen(engine, 'both are ready', (fleet) => fleet.ready === 2)
    const row = (await instancesOf(engine.context.store)).find((one) => one.id === lease.instanceID)
    expect(row).toMatchObject({ state: 'idle', dead_at: t0 + 24 * 60 * minute })
    expect(provider.count('remove')).toBe(0)
  })
})
