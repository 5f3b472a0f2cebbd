import { expect, it } from 'vitest'
import { addHold, createFleet, deleteFleet, listFindings, removeHold, scaleFleet } from '../../src/engine/admin/index.ts'
import { accessTo, createLease, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import { hex } from '../../src/lib/ids.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from '../support/engine.ts'
import { eventsOf, fleetNamed, fleetOf, fleetWhen, instancesOf } from '../support/fleets.ts'
import { startedEngines, t0 } from '../support/lease-suite.ts'
import { gate, scriptedProvider, wipingProvider } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000

eachStore('a fleet', (open, database) => {
  const started = startedEngines(open)

  it('keeps as many boxes ready as it is to, each with its ref in the ledger before it is made (orphans R3, I1)', async () => {
    const { engine, provider } = await started()
    const refs: boolean[] = []
    provider.onCreate = async (request) => {
      const row = await engine.context.store.read(({ db }) =>
        db.selectFrom('ledger').selectAll().where('ref', '=', request.ref).executeTakeFirst(),
      )
      refs.push(row !== undefined && row.parents === '{"fleet":"ci"}')
      return undefined
    }
    expect(await fleetOf(engine, 3)).toMatchObject({ ready: 3, coming: 0, taken: 0, state: 'running' })
    expect(refs).toEqual([true, true, true])
    expect(provider.boxes.size).toBe(3)
    for (const row of await instancesOf(engine.context.store))
      expect(row).toMatchObject({ state: 'idle', lease_id: null, fleet: 'ci', dead_at: t0 + 24 * hour })
  })

  it('gives a ready box to a lease at once, without a call to the provider, and makes another', async () => {
    const { engine, provider } = await started()
    await fleetOf(engine, 1)
    const [ready] = await instancesOf(engine.context.store)
    const created = provider.count('create')
    const { lease, leaseToken } = await createLease(engine.context, ann, { fleet: 'ci' })
    expect(lease).toMatchObject({ state: 'active', instanceID: ready?.id, fleet: 'ci', cloudID: `${ready?.ref}-1` })
    expect(leaseToken).not.toBe('')
    expect(provider.count('create')).toBe(created)
    await fleetWhen(engine, 'another one is ready', (fleet) => fleet.ready === 1 && fleet.taken === 1)
  })

  it('with none ready makes one for the lease, as any other lease has it', async () => {
    const { engine } = await started()
    await fleetOf(engine, 0)
    const lease = await leaseOn(engine, { fleet: 'ci' })
    expect(lease).toMatchObject({ state: 'active', fleet: 'ci' })
    const [row] = await instancesOf(engine.context.store)
    expect(row).toMatchObject({ fleet: 'ci', lease_id: lease.id, served: 1 })
  })

  it('the same request key gets the same box again, and no second one', async () => {
    const { engine } = await started()
    await fleetOf(engine, 2)
    const input = { fleet: 'ci', createAttemptID: `cat_${hex(16)}` }
    const first = await createLease(engine.context, ann, input)
    const second = await createLease(engine.context, ann, input)
    expect(second).toMatchObject({ replayed: true, lease: { id: first.lease.id, instanceID: first.lease.instanceID } })
    await fleetWhen(engine, 'one is taken', (fleet) => fleet.taken === 1)
  })

  it('a box with less life left than the ttl of the lease is not given out, and one with just enough is', async () => {
    const provider = scriptedProvider()
    // One whose clock can't be moved ages.
    delete provider.rearm
    const { engine } = await started(provider)
    await fleetOf(engine, 1, { ttlSeconds: 3600 })
    const [ready] = await instancesOf(engine.context.store)
    await setClock(engine.context.store, t0 + 23 * hour)
    await until(async () => ((await instancesOf(engine.context.store))[0]?.checked_at ?? 0) > t0, 'it is looked at again')
    const long = await leaseOn(engine, { fleet: 'ci', ttlSeconds: 3601 })
    expect(long.instanceID).not.toBe(ready?.id)
    const { lease } = await createLease(engine.context, ann, { fleet: 'ci', ttlSeconds: 3600 })
    expect(lease.instanceID).toBe(ready?.id)
  })

  it('a box that was not seen alive lately is not given out', async () => {
    const { engine, provider } = await started()
    await fleetOf(engine, 1)
    const [ready] = await instancesOf(engine.context.store)
    provider.onRead = () => ({ kind: 'unknown', error: 'HTTP 503' })
    await advance(engine.context.store, 600_000)
    const lease = await leaseOn(engine, { fleet: 'ci' })
    expect(lease.instanceID).not.toBe(ready?.id)
  })

  it('the dead-man clock is that of the lease while one has the box, and 24 h from the last word while nobody has', async () => {
    const { engine, provider } = await started(wipingProvider())
    await fleetOf(engine, 1)
    const { lease } = await createLease(engine.context, ann, { fleet: 'ci', ttlSeconds: 600 })
    await until(() => provider.rearmed.some((one) => one.id === lease.cloudID && one.seconds === 601), 'its clock is that of the lease')
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'returned')
    await until(async () => (await instancesOf(engine.context.store))[0]?.dead_at === t0 + 24 * hour, 'its clock is moved')
    expect(provider.rearmed.at(-1)).toMatchObject({ seconds: 86_400 })
  })

  it('replaces a box that died, and one that can no longer give what the fleet promises', async () => {
    const provider = scriptedProvider()
    delete provider.rearm
    const { engine } = await started(provider)
    await fleetOf(engine, 2, { ttlSeconds: 7200 })
    const [first, second] = await instancesOf(engine.context.store)
    await setClock(engine.context.store, t0 + hour)
    provider.boxes.delete(`${first?.ref}-1`)
    await until(
      async () => (await instancesOf(engine.context.store)).find((row) => row.id === first?.id)?.state === 'terminated',
      'it ended',
    )
    await fleetWhen(engine, 'it was replaced', (fleet) => fleet.ready === 2 && fleet.ending === 0)
    await setClock(engine.context.store, t0 + 23 * hour)
    await until(
      async () => (await instancesOf(engine.context.store)).find((row) => row.id === second?.id)?.state === 'terminated',
      'too old',
    )
    await fleetWhen(engine, 'all are ready', (fleet) => fleet.ready === 2 && fleet.ending === 0)
    expect((await eventsOf(engine.context.store, 'removal.opened')).map((one) => one['cause'])).toEqual(['fleet-died', 'fleet-old'])
  })

  it('scaled down it removes what is too many by the ordered removals, and never what a lease has', async () => {
    const { engine, provider } = await started()
    await fleetOf(engine, 3)
    const { lease } = await createLease(engine.context, ann, { fleet: 'ci' })
    await fleetWhen(engine, 'three are ready again', (fleet) => fleet.ready === 3)
    await advance(engine.context.store, 1000)
    await scaleFleet(engine.context, root, 'ci', { size: 0 })
    await fleetWhen(engine, 'nothing waits any more', (fleet) => fleet.ready + fleet.coming + fleet.ending === 0)
    expect([...provider.boxes.keys()]).toEqual([lease.cloudID])
    expect(await getLease(engine.context, ann, lease.id)).toMatchObject({ state: 'active', cleanup: { state: 'none' } })
    const causes = await engine.context.store.read(({ db }) => db.selectFrom('removals').select(['cause', 'lease_id', 'state']).execute())
    expect(new Set(causes.map((one) => `${one.cause} ${one.lease_id} ${one.state}`))).toEqual(new Set(['fleet-surplus null gone']))
  })

  it('deleted it is drained: what waits or is under way goes, leases go on and their boxes go with them', async () => {
    const provider = wipingProvider()
    const { engine } = await started(provider)
    await fleetOf(engine, 2)
    const { lease } = await createLease(engine.context, ann, { fleet: 'ci' })
    await fleetWhen(engine, 'all are there', (fleet) => fleet.ready === 2 && fleet.taken === 1)
    const hold = gate()
    provider.onCreate = async () => {
      await hold.promise
      return undefined
    }
    await scaleFleet(engine.context, root, 'ci', { size: 3 })
    await until(() => provider.count('create') === 4, 'one more is under way')
    await deleteFleet(engine.context, root, 'ci')
    hold.open()
    await fleetWhen(
      engine,
      'only the lease has one',
      (fleet) => fleet.state === 'draining' && fleet.taken === 1 && fleet.ready + fleet.coming + fleet.ending === 0,
    )
    expect([...provider.boxes.keys()]).toEqual([lease.cloudID])
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(provider.count('clear')).toBe(0)
    expect(await fleetNamed(engine)).toBeUndefined()
    expect(provider.boxes.size).toBe(0)
    await expect(createLease(engine.context, ann, { fleet: 'ci' })).rejects.toMatchObject({ code: 'not_found' })
  })

  it('is held after three boxes that ended young without having served anybody, tells a person, and goes on at their word (case M2)', async () => {
    const { engine, provider } = await started()
    const { store } = engine.context
    provider.onCreate = () => ({ kind: 'rejected', code: 'quota', message: 'the quota is used up' })
    await createFleet(engine.context, root, { name: 'ci', size: 1 })
    for (const tries of [1, 2]) {
      const failed = async (): Promise<boolean> =>
        provider.count('create') === tries && (await instancesOf(store)).every((row) => row.state === 'terminated')
      await until(failed, `try ${tries} failed`)
      await advance(store, tries * 60_000)
      await until(() => provider.count('create') === tries + 1, 'the next one is tried')
    }
    const held = await fleetWhen(engine, 'it is held', (fleet) => fleet.state === 'held')
    expect(held).toMatchObject({ ready: 0, coming: 0, heldWhy: expect.stringContaining('3 of its boxes') as string })
    const finding = (await listFindings(engine.context, root, { limit: 10 })).find((one) => one.code === 'fleet-held')
    expect(finding?.message).toContain('the quota is used up')
    expect(await eventsOf(store, 'fleet.held')).toHaveLength(1)
    const made = provider.count('create')
    await advance(store, hour)
    await fleetWhen(engine, 'it is still held', (fleet) => fleet.state === 'held')
    expect(provider.count('create')).toBe(made)
    // Its word ends it: time alone does not.
    provider.onCreate = undefined
    await scaleFleet(engine.context, root, 'ci', { paused: false })
    await fleetWhen(engine, 'it is ready', (fleet) => fleet.state === 'running' && fleet.ready === 1)
    expect((await listFindings(engine.context, root, { limit: 10 })).map((one) => one.state)).toEqual(['resolved'])
  })

  it('what its create made before a crash is adopted, although nobody waits for an answer (decisions 3, orphans R7)', async () => {
    const db = await database()
    const [first, second] = [await db.open(), await db.open()]
    await setClock(first, t0)
    const provider = scriptedProvider()
    const called = gate()
    // It was made, and the process died with the answer: no apply ever came.
    provider.onCreate = async (request) => {
      provider.make(request)
      called.open()
      return new Promise(() => {})
    }
    const dying = await makeEngine(first, provider)
    await dying.start()
    void fleetOf(dying, 1).catch(() => {})
    await called.promise
    await dying.stop(0)
    provider.onCreate = undefined
    // As another replica finds it: the lock of the dead one has run out.
    await advance(second, 31_000)
    const engine = await makeEngine(second, provider)
    await engine.start()
    await fleetWhen(engine, 'it is ready', (fleet) => fleet.ready === 1)
    expect(provider.boxes.size).toBe(1)
    expect(await eventsOf(second, 'fleet.box-ready')).toMatchObject([{ adopted: true }])
    await engine.stop(0)
  })

  it('of two replicas that ask for the one ready box at the same moment exactly one gets it', async () => {
    const db = await database()
    const stores = [await db.open(), await db.open()]
    await setClock(stores[0] as (typeof stores)[number], t0)
    const provider = scriptedProvider()
    const engines = []
    for (const store of stores) engines.push(await makeEngine(store, provider))
    const [one, other] = engines as [(typeof engines)[number], (typeof engines)[number]]
    await one.start()
    await fleetOf(one, 1, { backend: 'local' })
    // From here on nothing but the leases works on the box.
    await one.stop(0)
    const [ready] = await instancesOf(one.context.store)
    for (let round = 0; round < 5; round++) {
      const made = await Promise.all([one, other, one, other].map((engine) => createLease(engine.context, ann, { fleet: 'ci' })))
      expect(made.filter(({ lease }) => lease.instanceID === ready?.id)).toHaveLength(1)
      expect(new Set(made.map(({ lease }) => lease.instanceID)).size).toBe(4)
      // The same box, ready once more.
      await one.context.store.write(async (tx) => {
        await tx.db
          .updateTable('instances')
          .set({ state: 'idle', lease_id: null, due_at: null })
          .where('id', '=', ready?.id as never)
          .execute()
      })
    }
  })
})

eachStore('a box of a fleet that is given back', (open) => {
  const started = startedEngines(open)
  const leased = async (provider = wipingProvider(), input: { keep?: boolean } = {}) => {
    const { engine } = await started(provider)
    await fleetOf(engine, 1)
    const { lease, leaseToken } = await createLease(engine.context, ann, { fleet: 'ci', ...input })
    provider.contents.set(lease.cloudID as string, ['process 4711', 'home/secret.txt'])
    return { engine, provider, lease, leaseToken }
  }

  it('is wiped, and ready again once a listing shows nothing of its holder', async () => {
    const { engine, provider, lease } = await leased()
    const released = await releaseLease(engine.context, ann, lease.id, {})
    expect(released).toMatchObject({ state: 'released', releaseDeletesServer: null })
    const after = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'returned')
    expect(after.cleanup).toMatchObject({ removalID: null, error: null })
    expect(provider.contents.size).toBe(0)
    expect(provider.count('remove')).toBe(0)
    const order = provider.calls.map((call) => call.op).filter((op) => op === 'clear' || op === 'leftovers')
    expect(order).toEqual(['clear', 'leftovers'])
    const audit = await engine.context.store.read(({ db }) => db.selectFrom('audit').select(['kind', 'body']).orderBy('id').execute())
    expect(audit.map((one) => one.kind)).toEqual(['intent', 'outcome', 'proof'])
    expect(JSON.parse(audit[0]?.body ?? '{}')).toMatchObject({ call: 'wipe', lease: lease.id })
  })

  it('has a new slug, token and holder the next time, and the former one has no way in any more', async () => {
    const { engine, lease, leaseToken, provider } = await leased()
    expect(await accessTo(engine.context, ann, lease.id)).toEqual({
      access: expect.objectContaining({ kind: 'session' }) as object,
      holder: { leaseID: lease.id, leaseToken },
    })
    await fleetWhen(engine, 'another is ready', (fleet) => fleet.ready === 1 && fleet.taken === 1)
    await scaleFleet(engine.context, root, 'ci', { paused: true })
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'returned')
    await fleetWhen(engine, 'both are ready', (fleet) => fleet.ready === 2)
    const bob = { ...ann, name: 'bob' }
    const next = []
    for (let i = 0; i < 2; i++) next.push(await createLease(engine.context, bob, { fleet: 'ci' }))
    const again = next.find((one) => one.lease.instanceID === lease.instanceID)
    expect(again?.lease).toMatchObject({ owner: 'bob', state: 'active' })
    expect(again?.lease.slug).not.toBe(lease.slug)
    expect(again?.leaseToken).not.toBe(leaseToken)
    await expect(accessTo(engine.context, ann, lease.id)).rejects.toMatchObject({ code: 'lease_not_ready' })
    // Nothing that the former one still says of its lease touches the box.
    await releaseLease(engine.context, ann, lease.id, { delete: true })
    expect(await getLease(engine.context, ann, lease.id)).toMatchObject({ state: 'released', cleanup: { state: 'returned' } })
    expect(provider.count('remove')).toBe(0)
    expect(provider.requests.map((one) => [one.leaseId, Object.keys(one.secretEnvironment)])).toEqual([
      [null, []],
      [null, []],
    ])
  })

  it.each([
    [
      'the wipe fails',
      (p: ReturnType<typeof wipingProvider>) => (p.onClear = () => ({ kind: 'failed', why: 'process 4711 does not end' })),
    ],
    ['the wipe throws', (p: ReturnType<typeof wipingProvider>) => (p.onClear = () => Promise.reject(new Error('HTTP 500')))],
    [
      'it says that it wiped, and the listing shows what is left',
      (p: ReturnType<typeof wipingProvider>) => (p.onClear = () => ({ kind: 'wiped' })),
    ],
    [
      'the listing is incomplete',
      (p: ReturnType<typeof wipingProvider>) => (p.onLeftovers = () => ({ kind: 'incomplete', why: 'denied' })),
    ],
  ])('is removed and replaced, and never given out, where %s', async (_what, lie) => {
    const { engine, provider, lease } = await leased()
    lie(provider)
    await releaseLease(engine.context, ann, lease.id, {})
    const after = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(after.cleanup.reason).toBe('wipe-failed')
    expect(provider.boxes.has(lease.cloudID as string)).toBe(false)
    expect(await eventsOf(engine.context.store, 'fleet.wipe-failed')).toHaveLength(1)
    expect(await eventsOf(engine.context.store, 'fleet.box-returned')).toHaveLength(0)
    await fleetWhen(engine, 'it is replaced', (fleet) => fleet.ready === 1)
  })

  it('goes, and another is made, where its provider can not wipe (leases R30)', async () => {
    const { engine, provider, lease } = await leased(scriptedProvider())
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(provider.boxes.has(lease.cloudID as string)).toBe(false)
    await fleetWhen(engine, 'another is ready', (fleet) => fleet.ready === 1)
  })

  it('is removed with `delete: true`, whatever its fleet would do', async () => {
    const { engine, provider, lease } = await leased()
    await releaseLease(engine.context, ann, lease.id, { delete: true })
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(provider.count('clear')).toBe(0)
  })

  it.each([
    ['with `delete: false`', false, { delete: false }],
    ['when its lease has keep', true, {}],
  ] as const)('is retained %s (leases R37)', async (_what, keep, input) => {
    const { engine, provider, lease } = await leased(wipingProvider(), { keep })
    const after = await releaseLease(engine.context, ann, lease.id, input)
    expect(after).toMatchObject({ state: 'released', releaseDeletesServer: false, cleanup: { state: 'none' } })
    await fleetWhen(engine, 'it is counted as taken', (fleet) => fleet.taken === 1 && fleet.ready === 1)
    expect(provider.count('clear') + provider.count('remove')).toBe(0)
    expect(provider.boxes.has(lease.cloudID as string)).toBe(true)
  })

  it('is removed when its lease expired: nobody gave it back', async () => {
    const { engine, provider, lease } = await leased()
    await advance(engine.context.store, 1_800_000)
    await leaseWhen(engine, lease.id, (view) => view.state === 'expired' && view.cleanup.state === 'gone')
    expect(provider.count('clear')).toBe(0)
  })

  it('goes when its holder asks for that while it is being wiped (leases R32)', async () => {
    const provider = wipingProvider()
    const [called, hold] = [gate(), gate()]
    provider.onClear = async () => {
      called.open()
      await hold.promise
      return undefined
    }
    const { engine, lease } = await leased(provider)
    await releaseLease(engine.context, ann, lease.id, {})
    await called.promise
    await releaseLease(engine.context, ann, lease.id, { delete: true })
    hold.open()
    const after = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(after.cleanup.reason).toBe('released')
    expect(provider.boxes.has(lease.cloudID as string)).toBe(false)
  })

  it('is not touched while a hold is on it, and wiped once that is gone (I10)', async () => {
    const { engine, provider, lease } = await leased()
    const hold = await addHold(engine.context, root, { targetType: 'lease', targetID: lease.id, reason: 'looking' })
    await releaseLease(engine.context, ann, lease.id, {})
    await until(() => provider.rearmed.at(-1)?.seconds === 86_400 && provider.rearmed.at(-1)?.id === lease.cloudID, 'its clock is moved')
    expect(await getLease(engine.context, ann, lease.id)).toMatchObject({ cleanup: { state: 'wiping' } })
    expect(provider.count('clear')).toBe(0)
    expect(provider.contents.get(lease.cloudID as string)).toHaveLength(2)
    await removeHold(engine.context, root, hold.id)
    await advance(engine.context.store, 60_000)
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'returned')
  })
})
