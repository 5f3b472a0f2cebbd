import { expect, it } from 'vitest'
import { applyToKnown } from '../../src/engine/leases/beat-apply.ts'
import { leaseById, type LeaseRow } from '../../src/store/leases.ts'
import type { Tx } from '../../src/store/store.ts'
import { createHeartbeat, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { gate } from '../support/scripted-provider.ts'
import { startedEngines } from '../support/lease-suite.ts'
import type { Actor } from '../../src/engine/actor.ts'
import { statementsOf } from '../support/statements.ts'
import { advance, eachStore } from '../support/stores.ts'

eachStore('the beats of a lease', (open) => {
  const started = startedEngines(open)

  it('what is wrong with the way into its box is a warning that the next read shows, and no beat fails of it (leases R25)', async () => {
    const hold = gate()
    const { engine, provider } = await started()
    let warning: string | null = 'the door sticks'
    provider.refreshAccess = async () => {
      await hold.promise
      return { warning }
    }
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine)
    expect(await beat(ann, lease.id, {})).toMatchObject({ state: 'active', accessWarning: null })
    hold.open()
    await leaseWhen(engine, lease.id, (view) => view.accessWarning === 'the door sticks')
    // Another process has asked nothing yet.
    warning = null
    expect((await createHeartbeat(engine.context)(ann, lease.id, {})).accessWarning).toBe('the door sticks')
    await leaseWhen(engine, lease.id, (view) => view.accessWarning === null)
    provider.refreshAccess = () => Promise.reject(new Error('HTTP 503'))
    expect((await createHeartbeat(engine.context)(ann, lease.id, {})).state).toBe('active')
    await leaseWhen(engine, lease.id, (view) => view.accessWarning === 'its access could not be refreshed: HTTP 503')
  })

  it('a warning about the way in is not written on a lease that ended meanwhile (leases R25)', async () => {
    const [called, hold] = [gate(), gate()]
    const { engine, provider } = await started()
    provider.refreshAccess = async () => {
      called.open()
      await hold.promise
      return { warning: 'too late' }
    }
    const lease = await leaseOn(engine)
    await createHeartbeat(engine.context)(ann, lease.id, {})
    await called.promise
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    hold.open()
    const other = await leaseOn(engine)
    await createHeartbeat(engine.context)(ann, other.id, {})
    await leaseWhen(engine, other.id, (view) => view.accessWarning === 'too late')
    expect((await getLease(engine.context, ann, lease.id)).accessWarning).toBeNull()
  })

  it('a beat calls no provider, and costs as many statements among many leases as alone (leases R28)', async () => {
    const { engine, provider } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine)
    const calls = provider.calls.length
    /** The looks of the pipelines for work, and what the sealer does, are not its own. */
    const isOwn = (text: string): boolean =>
      /leases|instances|attempts/.test(text) && (!/due_at/.test(text) || text.includes('seen_due_at'))
    const beaten = async (): Promise<string[]> => (await statementsOf(engine.context.store, () => beat(ann, lease.id, {}))).filter(isOwn)
    // What never changes of a lease is read with its first beat, and known after.
    await beaten()
    const alone = await beaten()
    for (let i = 0; i < 20; i++) await leaseOn(engine)
    const called = provider.calls.length
    const amongMany = await beaten()
    expect(alone.length).toBeGreaterThan(0)
    expect(amongMany).toEqual(alone)
    expect(called - calls).toBe(20)
    expect(provider.calls.length).toBe(called)
  })

  it('what another replica changed since this one last beat is seen, and counts (leases R20-R23)', async () => {
    const { engine } = await started()
    const [here, there] = [createHeartbeat(engine.context), createHeartbeat(engine.context)]
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 1_800 })
    await here(ann, lease.id, {})
    await there(ann, lease.id, { idleTimeoutSeconds: 600 })
    const next = await here(ann, lease.id, {})
    expect(next.idleTimeoutSeconds).toBe(600)
    expect(Date.parse(next.expiresAt) - Date.parse(next.lastTouchedAt)).toBe(600_000)
    await releaseLease(engine.context, ann, lease.id, { delete: false })
    await expect(here(ann, lease.id, {})).rejects.toMatchObject({ code: 'lease_ended' })
    await expect(there(ann, lease.id, {})).rejects.toMatchObject({ code: 'lease_ended' })
  })

  it('knowing a lease opens it to nobody and outlives no end of it (leases R20, R21)', async () => {
    const { engine } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 600 })
    await beat(ann, lease.id, {})
    const bob: Actor = { ...ann, name: 'bob' }
    const both = await Promise.allSettled([beat(bob, lease.id, {}), beat(ann, lease.id, {}), beat(ann, lease.id, {})])
    expect(both.map((one) => one.status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    await engine.stop(0)
    await advance(engine.context.store, 600_000)
    await expect(beat(ann, lease.id, {})).rejects.toMatchObject({ code: 'lease_expired' })
  })

  it('a beat that was begun before the end, and is written after a removal was opened, moves nothing (leases R20, R22, R40)', async () => {
    const { engine, provider } = await started()
    const { store } = engine.context
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 600 })
    const row = async () => (await store.read((session) => leaseById(session, lease.id))) as LeaseRow
    /** As one whose transaction began then, and that waited for the rows of its batch since. */
    const begunAt = (at: number, known: LeaseRow) =>
      store.write((tx) => applyToKnown(Object.create(tx, { now: { value: at } }) as Tx, [{ actor: ann, id: known.id }], () => known))
    const known = await row()
    expect((await begunAt(known.last_touched_at + 1, known)).size).toBe(1)
    const before = await row()
    provider.remove = async () => ({ kind: 'unknown', error: 'HTTP 503' })
    await advance(store, 700_000)
    engine.context.signals.wake('expire')
    await leaseWhen(engine, lease.id, (view) => view.cleanup.attempts === 1)
    expect(await row()).toMatchObject({ state: 'active', updated_at: before.updated_at, expires_at: before.expires_at })
    expect((await begunAt(before.expires_at - 1, before)).size).toBe(0)
    expect((await row()).expires_at).toBe(before.expires_at)
  })
})
