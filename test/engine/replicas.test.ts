/** Several coordinators on one database: what each may do, and what is told of them. */
import { afterEach, expect, it, vi } from 'vitest'
import { readStatus } from '../../src/engine/admin/index.ts'
import { createEngine, type Engine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { createHeartbeat, createLease, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import type { ListingItem } from '../../src/providers/contract.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from '../support/engine.ts'
import { everything, gate, scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { sweepsAs } from '../support/sweep-settings.ts'
import { intervalMs, long, sweepRounds, t0 } from '../support/sweep-rounds.ts'
import { until } from '../support/until.ts'

eachStore('replicas', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    vi.restoreAllMocks()
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const replica = async (store: Store, provider: Scripted): Promise<Engine> => {
    const engine = await createEngine({
      store,
      providers: [provider],
      log: silentLog,
      version: '9.9.9',
      watchClocks: false,
      sweepSettings: sweepsAs({ mode: 'report' }),
    })
    engines.push(engine)
    return engine
  }
  const status = (engine: Engine) => readStatus(engine.context, root, { version: 'test', expiryPaused: null })
  const eventsOf = (store: Store, code: string) =>
    store.read(({ db }) => db.selectFrom('events').selectAll().where('code', '=', code).orderBy('id').execute())

  it('of which one has a clock 300 s ahead end nothing early, and its skew is shown (case H8)', async () => {
    const store = await open()
    const provider = scriptedProvider()
    const first = await makeEngine(store, provider)
    engines.push(first)
    await first.start()
    const real = Date.now.bind(Date)
    const ahead = vi.spyOn(Date, 'now').mockImplementation(() => real() + 300_000)
    const second = await replica(store, provider)
    await second.start()
    const lease = await leaseOn(second, { idleTimeoutSeconds: 60, ttlSeconds: 120 })
    second.context.signals.wake('expire')
    await createHeartbeat(second.context)(ann, lease.id, {})
    ahead.mockRestore()
    const { replicas } = await status(first)
    const other = replicas.find((one) => one.id === second.context.replicaId)
    expect(Math.abs((other?.clockSkewMs ?? 0) - 300_000)).toBeLessThan(5_000)
    expect(Math.abs(replicas.find((one) => one.self)?.clockSkewMs ?? Number.NaN)).toBeLessThan(5_000)
    expect(await getLease(first.context, ann, lease.id)).toMatchObject({ state: 'active' })
    const row = await store.read(({ db }) =>
      db
        .selectFrom('leases')
        .selectAll()
        .where('id', '=', lease.id as never)
        .executeTakeFirstOrThrow(),
    )
    const left = row.expires_at - (await store.now())
    expect(left).toBeGreaterThan(30_000)
    expect(left).toBeLessThanOrEqual(60_000)
  })

  it('show their versions, their last words, and which rows they hold (status)', async () => {
    const store = await open()
    await setClock(store, t0)
    const provider = scriptedProvider()
    const first = await makeEngine(store, provider)
    engines.push(first)
    await first.start()
    const second = await replica(store, provider)
    await second.start()
    const hangs = gate()
    provider.onCreate = async () => {
      await hangs.promise
      return undefined
    }
    const { lease } = await createLease(first.context, ann, {})
    await until(() => provider.count('create') === 1, 'the create is called')
    const { replicas } = await status(first)
    expect(replicas.map((one) => one.version).toSorted()).toEqual(['9.9.9', 'test'])
    expect(replicas.flatMap((one) => one.locksOf)).toEqual([
      { pipeline: 'provision', count: 1, oldestRenewedAt: new Date(t0).toISOString() },
    ])
    expect(replicas.reduce((sum, one) => sum + one.locks, 0)).toBe(1)
    hangs.open()
    await leaseWhen(first, lease.id, (view) => view.state === 'active')
    expect((await status(first)).replicas.flatMap((one) => one.locksOf)).toEqual([])
  })

  it('that stop let a call in flight finish and record its answer (shutdown)', async () => {
    const store = await open()
    await setClock(store, t0)
    const provider = scriptedProvider()
    const first = await makeEngine(store, provider)
    await first.start()
    const lease = await leaseOn(first)
    const hangs = gate()
    provider.onRemove = async () => {
      await hangs.promise
      return undefined
    }
    await releaseLease(first.context, ann, lease.id, {})
    await until(() => provider.count('remove') === 1, 'the removal is called')
    const stopped = first.stop(10_000)
    hangs.open()
    await stopped
    const audit = await store.read(({ db }) =>
      db.selectFrom('audit').select('kind').where('removal_id', 'is not', null).orderBy('id').execute(),
    )
    expect(audit.map((row) => row.kind)).toEqual(['intent', 'outcome', 'proof'])
    const [row] = await store.read(({ db }) => db.selectFrom('removals').select('state').execute())
    expect(row?.state).toBe('gone')
  })

  it('taking over judge nothing before they hold the whole ledger under a fence of their own; who lost it writes nothing (case A10)', async () => {
    const w = await sweepRounds(await open())
    engines.push(w.engine)
    const { store, provider } = w
    await leaseOn(w.engine, long)
    await w.round()
    // The first replica lists, and stands still with what it has read.
    const hangs = gate()
    const stale: ListingItem[] = [...everything(provider.boxes, 'here')]
    let listings = 0
    provider.onList = async () => {
      listings++
      if (listings > 1) return [...everything(provider.boxes, 'here')]
      await hangs.promise
      return stale
    }
    await advance(store, intervalMs * 100)
    await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now, requested_at: tx.now }).execute())
    w.engine.context.signals.wake('sweep')
    await until(() => listings === 1, 'the first replica lists')
    const held = await w.cleanup()
    const certificates = (await w.certificates()).length
    // Its lock ends, and another with nothing in its memory takes over; meanwhile there is one more lease.
    const second = await replica(store, provider)
    await second.start()
    const newer = await leaseOn(second, long)
    await advance(store, 31_000)
    second.context.signals.wake('sweep')
    const after = await until(async () => {
      const row = await w.cleanup()
      return row.lock_fence > held.lock_fence && row.lock_owner === null ? row : undefined
    }, 'the second replica has swept')
    expect(after.lock_fence).toBe(held.lock_fence + 1)
    const now = await w.certificates()
    expect(now.length).toBe(certificates + 1)
    expect(now.at(-1)).toMatchObject({ outcome: expect.stringMatching(/clean|unsettled/) })
    expect(await w.open()).toEqual([])
    hangs.open()
    await until(async () => (await status(second)).replicas.every((one) => one.locks === 0), 'nobody works any more')
    // What the first one makes of its old listing is dropped: no certificate, no finding about the lease that it does not show.
    expect((await w.certificates()).length).toBe(certificates + 1)
    expect(await w.open()).toEqual([])
    expect(await getLease(second.context, ann, newer.id)).toMatchObject({ state: 'active' })
  })

  it('of an older version may have added a backend, a reservation and things without a tag: enrolled, made with its ref, and left alone (case orphan 12)', async () => {
    const w = await sweepRounds(await open(), { mode: 'delete', graceMs: 0, start: false })
    engines.push(w.engine)
    const { store, provider } = w
    await w.addBackend('added')
    provider.boxes.set('untagged', {
      resource: {
        scope: 'scripted:one' as never,
        location: 'here',
        kind: 'box',
        nativeId: 'untagged',
        immutableId: 'untagged#1',
        facts: {},
      },
      tags: { ref: null, installation: null, attempt: null, mac: null },
      fixedAttemptToken: null,
      providerState: 'running',
      existence: 'exists',
      name: 'untagged',
      createdAt: null,
      labels: {},
      attachedTo: [],
      reportOnly: null,
    })
    // A listing shows only what carries a ref (orphans R27).
    provider.onList = () => [...everything(new Map([...provider.boxes].filter(([, box]) => box.tags.ref !== null)), 'here')]
    const lease = await leaseOn(w.engine, { ...long, backend: 'added' })
    expect(provider.calls.find((call) => call.op === 'create')?.id).toBe(lease.ref)
    const issued = await store.read(({ db }) =>
      db
        .selectFrom('ledger')
        .selectAll()
        .where('ref', '=', lease.ref as never)
        .executeTakeFirstOrThrow(),
    )
    const called = await store.read(({ db }) =>
      db
        .selectFrom('attempts')
        .selectAll()
        .where('ref', '=', lease.ref as never)
        .executeTakeFirstOrThrow(),
    )
    expect(issued.issued_at).toBeLessThanOrEqual(called.called_at ?? 0)
    for (let i = 0; i < 3; i++) await w.round(intervalMs * 2, 'added')
    expect((await w.cleanup('added')).backend).toBe('added')
    expect([provider.boxes.has('untagged'), provider.count('remove')]).toEqual([true, 0])
    expect(await w.open()).toEqual([])
  })

  it('warn the holder once for each idle period when 80 % of it is over, and a beat begins a new one (case G9)', async () => {
    const store = await open()
    await setClock(store, t0)
    const engine = await makeEngine(store, scriptedProvider())
    engines.push(engine)
    await engine.start()
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 1_000, ttlSeconds: 80_000 })
    const look = async (seconds: number): Promise<number> => {
      await advance(store, seconds * 1000)
      engine.context.signals.wake('expire')
      const now = await store.now()
      await until(
        async () =>
          (await store.read(({ db }) => db.selectFrom('leases').selectAll().execute())).every(
            (row) => row.lock_owner === null && (row.due_at ?? now + 1) > now,
          ),
        'nothing is due',
      )
      return (await eventsOf(store, 'lease.idle')).length
    }
    expect(await look(799)).toBe(0)
    expect(await look(2)).toBe(1)
    expect(await look(100)).toBe(1)
    await createHeartbeat(engine.context)(ann, lease.id, {})
    expect(await look(790)).toBe(1)
    expect(await look(20)).toBe(2)
    const [event] = await eventsOf(store, 'lease.idle')
    expect(JSON.parse(event?.payload ?? '{}')).toMatchObject({ idleSeconds: 1_000, leftSeconds: 199 })
    // The twin: a lease that is used is never warned of.
    for (let i = 0; i < 5; i++) {
      await createHeartbeat(engine.context)(ann, lease.id, {})
      expect(await look(400)).toBe(2)
    }
    // And where no beat helps, at its maximum lifetime, nobody is told to beat.
    const short = await leaseOn(engine, { idleTimeoutSeconds: 1_000, ttlSeconds: 1_000 })
    await createHeartbeat(engine.context)(ann, lease.id, {})
    expect(await look(900)).toBe(3)
    const told = await store.read(({ db }) => db.selectFrom('event_targets').selectAll().where('id', '=', short.id).execute())
    const idle = new Set((await eventsOf(store, 'lease.idle')).map((row) => row.id))
    expect(told.filter((row) => idle.has(row.event_id))).toEqual([])
  })
})
