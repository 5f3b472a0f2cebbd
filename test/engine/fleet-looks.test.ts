/** What a fleet does with a box that a fresh look does not show as ours any more, or that a person says "not this" of. */
import { expect, it } from 'vitest'
import { addHold, createFleet, listFindings, removeHold } from '../../src/engine/admin/index.ts'
import { createLease, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import type { RearmContext } from '../../src/providers/contract.ts'
import { ann, leaseWhen, root } from '../support/engine.ts'
import { fleetNamed, fleetOf, fleetWhen, instancesOf } from '../support/fleets.ts'
import { startedEngines } from '../support/lease-suite.ts'
import { gate, wipingProvider, type Scripted } from '../support/scripted-provider.ts'
import { advance, eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

const theirs = { ref: 'aaaaaaaaaaaa', installation: 'theirs00', attempt: 'e'.repeat(32), mac: null }

/** Somebody wrote other tags on it. @returns those that it had */
const retag = (provider: Scripted, id: string, tags: typeof theirs) => {
  const box = provider.boxes.get(id)
  if (!box) throw new Error(`there is no box ${id}`)
  provider.boxes.set(id, { ...box, tags: tags as never })
  return box.tags as never
}

eachStore('a look at a fleet’s box', (open) => {
  const started = startedEngines(open)

  it('wipes nothing whose tags say that it is another installation’s: it is told, set aside, and neither given out nor removed (I6)', async () => {
    const { engine, provider } = await started(wipingProvider())
    const { context } = engine
    await fleetOf(engine, 1)
    const { lease } = await createLease(context, ann, { fleet: 'ci', ttlSeconds: 3600 })
    const box = lease.cloudID as string
    const before = retag(provider, box, theirs)
    provider.contents.set(box, ['their data'])
    await releaseLease(context, ann, lease.id, {})
    const [finding] = await until(async () => {
      const open = await listFindings(context, root, { code: ['contradiction'], state: 'open', limit: 10 })
      return open.length > 0 ? open : undefined
    }, 'it is told')
    expect(JSON.stringify(finding)).toContain(`scripted/here/${box}`)
    await fleetWhen(engine, 'another one is there instead', (fleet) => fleet.ready === 1 && fleet.setAside === 1)
    await advance(context.store, 120_000)
    expect([provider.contents.get(box), provider.count('clear'), provider.boxes.has(box)]).toEqual([['their data'], 0, true])
    expect((await fleetNamed(engine))?.setAsideWhy).toMatch(/not, or not provably, what was made/)
    expect((await getLease(context, ann, lease.id)).cleanup.state).toBe('wiping')

    // The twin: once its tags are what they were, it is wiped and given out again, and the finding ends.
    retag(provider, box, before)
    await advance(context.store, 120_000)
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'returned')
    expect([provider.contents.get(box), await listFindings(context, root, { code: ['contradiction'], state: 'open', limit: 10 })]).toEqual([
      undefined,
      [],
    ])
  })

  it.each([
    ['tags', (provider: Scripted, id: string) => void retag(provider, id, theirs)],
    ['identity', (provider: Scripted) => void (provider.onRead = () => ({ kind: 'replaced', why: 'another immutable id' }))],
  ])('does not give out one that waits and is not ours any more by its %s, and tells it (I6)', async (_what, change) => {
    const { engine, provider } = await started(wipingProvider())
    const { context } = engine
    await fleetOf(engine, 1)
    const [row] = await instancesOf(context.store)
    const moved = provider.count('rearm')
    change(provider, `${row?.ref}-1`)
    await advance(context.store, 300_000)
    await until(
      async () => (await instancesOf(context.store)).some((one) => one.id === row?.id && one.checked_at === null),
      'it is looked at',
    )
    const { lease, warnings } = await createLease(context, ann, { fleet: 'ci', ttlSeconds: 600 })
    expect(lease.instanceID).not.toBe(row?.id)
    if (lease.state === 'provisioning') expect(warnings.join()).toMatch(/not, or not provably, what was made/)
    expect((await listFindings(context, root, { code: ['contradiction'], state: 'open', limit: 10 })).length).toBe(1)
    expect([provider.count('remove'), provider.calls.filter((call) => call.op === 'rearm' && call.id === `${row?.ref}-1`).length]).toEqual([
      0,
      moved,
    ])
  })

  it('a failed read says nothing of a box that is to be wiped: it waits, and is wiped once it can be read', async () => {
    const { engine, provider } = await started(wipingProvider())
    const { context } = engine
    await fleetOf(engine, 1)
    const { lease } = await createLease(context, ann, { fleet: 'ci', ttlSeconds: 3600 })
    provider.onRead = () => ({ kind: 'unknown', error: 'HTTP 503' })
    await releaseLease(context, ann, lease.id, {})
    await until(async () => {
      const row = (await instancesOf(context.store)).find((one) => one.id === lease.instanceID)
      return row?.lock_owner === null && (row.due_at ?? 0) > (await context.store.now())
    }, 'it is put off')
    expect([provider.count('clear'), (await getLease(context, ann, lease.id)).cleanup.state]).toEqual([0, 'wiping'])
    provider.onRead = undefined
    await advance(context.store, 60_000)
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'returned')
  })

  it.each(['instance', 'resource'] as const)(
    'does not give out one with a hold on its %s, makes another in its place, and takes it back into use when the hold has ended',
    async (targetType) => {
      const { engine, provider } = await started(wipingProvider())
      const { context } = engine
      await createFleet(context, root, { name: 'ci', size: 1 })
      await fleetWhen(engine, 'one is ready', (fleet) => fleet.ready === 1)
      const [row] = await instancesOf(context.store)
      const targetID = targetType === 'instance' ? (row?.id as string) : `scripted/here/${row?.ref}-1`
      const hold = await addHold(context, root, { targetType, targetID, reason: 'under the microscope' })
      const first = await createLease(context, ann, { fleet: 'ci', ttlSeconds: 600 })
      expect(first.lease.instanceID).not.toBe(row?.id)
      expect(first.warnings.join()).toContain(`1 box that is not given out (hold ${hold.id})`)
      await fleetWhen(engine, 'another one is made', (fleet) => fleet.ready === 1 && fleet.setAside === 1)
      expect((await fleetNamed(engine))?.setAsideWhy).toBe(`hold ${hold.id}`)
      await removeHold(context, root, hold.id)
      const both = await Promise.all([1, 2].map(() => createLease(context, ann, { fleet: 'ci', ttlSeconds: 600 })))
      expect(both.map(({ lease }) => lease.instanceID)).toContain(row?.id)
      expect(provider.count('remove')).toBe(0)
    },
  )

  it('a clock that was moved late for the last holder does not stay that of the next (I3)', async () => {
    const { engine, provider } = await started(wipingProvider())
    const { context } = engine
    await fleetOf(engine, 1)
    const slow = gate()
    const set: number[] = []
    const contexts: RearmContext[] = []
    provider.rearm = async (_box, seconds, _config, given) => {
      if (seconds === 61) {
        contexts.push(given)
        if (contexts.length === 1) await slow.promise
      }
      set.push(seconds)
    }
    const { lease } = await createLease(context, ann, { fleet: 'ci', ttlSeconds: 60 })
    const first = await until(() => contexts[0], 'its clock is being moved')
    expect(first.stands()).toBe(true)
    await releaseLease(context, ann, lease.id, {})
    await until(async () => {
      const row = (await instancesOf(context.store)).find((one) => one.id === lease.instanceID)
      return row?.state === 'idle' && row.lock_owner === null && (row.due_at ?? 0) > (await context.store.now())
    }, 'it is ready again')
    const taken = await until(async () => {
      const next = await createLease(context, ann, { fleet: 'ci', ttlSeconds: 3600 })
      return next.lease.instanceID === lease.instanceID ? next.lease : undefined
    }, 'its next holder has it')
    await until(() => set.includes(3601), 'its clock is that of its next holder')
    slow.open()
    await until(() => set.includes(61) && set.at(-1) === 3601, 'and is so again, whatever came late')
    expect([first.stands(), first.signal.aborted]).toEqual([false, true])
    expect(await getLease(context, ann, taken.id)).toMatchObject({ state: 'active' })
  })
})
