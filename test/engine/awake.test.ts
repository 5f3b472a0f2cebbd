import { sql } from 'kysely'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createEngine, type Engine } from '../../src/engine/engine.ts'
import { silentLog } from '../../src/engine/context.ts'
import { createHeartbeat, getLease } from '../../src/engine/leases/index.ts'
import { openRemovals } from '../../src/engine/open-removals.ts'
import type { LeaseId } from '../../src/model/ids.ts'
import { attemptsOf, type AttemptRow } from '../../src/store/attempts.ts'
import { lockInstances, type InstanceRow } from '../../src/store/instances.ts'
import { forgiveIdleness, leaseById, lockLeases, type LeaseRow } from '../../src/store/leases.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from '../support/engine.ts'
import { gate, scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const iso = (ms: number): string => new Date(ms).toISOString()
const hour = 3_600_000

eachStore('a coordinator that was away', (open) => {
  const engines: Engine[] = []
  let provider: Scripted
  beforeEach(() => {
    provider = scriptedProvider()
  })
  afterEach(async () => {
    vi.useRealTimers()
    vi.restoreAllMocks()
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const fresh = async (): Promise<Store> => {
    const store = await open()
    await setClock(store, t0)
    return store
  }
  /** Comes back as another process would: a replica of its own on the same database. */
  const comesBack = async (store: Store, watchClocks = false): Promise<Engine> => {
    const engine = await makeEngine(store, provider, { watchClocks })
    engines.push(engine)
    await engine.start()
    return engine
  }
  const goesAway = async (engine: Engine): Promise<void> => {
    engines.splice(engines.indexOf(engine), 1)
    await engine.stop(0)
  }
  const events = (store: Store, code: string) =>
    store.read(({ db }) => db.selectFrom('events').select(['message', 'payload']).where('code', '=', code).orderBy('id').execute())
  const at = async (engine: Engine, ms: number): Promise<void> => {
    await setClock(engine.context.store, ms)
    for (const pipeline of ['expire', 'remove'] as const) engine.context.signals.wake(pipeline)
  }

  it('for an hour has ended nothing that was beating before; what was past its end before that does end (decisions 1)', async () => {
    const store = await fresh()
    const before = await comesBack(store)
    const beating = await leaseOn(before)
    const capped = await leaseOn(before, { ttlSeconds: 3_690 })
    const lifetimeOver = await leaseOn(before, { ttlSeconds: 1_900 })
    const idle = await leaseOn(before, { idleTimeoutSeconds: 10 })
    const later = await leaseOn(before, { idleTimeoutSeconds: 86_400, ttlSeconds: 86_400 })
    // Its removal was ordered before the downtime, and failed.
    provider.onRemove = () => ({ kind: 'unknown', error: 'HTTP 500' })
    await at(before, t0 + 20_000)
    await leaseWhen(before, idle.id, (view) => view.cleanup.state === 'failed')
    await goesAway(before)
    provider.onRemove = undefined

    const back = t0 + 20_000 + hour
    await setClock(store, back)
    const after = await comesBack(store)
    const get = (lease: { id: string }) => getLease(after.context, ann, lease.id)
    expect(await get(beating)).toMatchObject({ state: 'active', expiresAt: iso(back + 120_000) })
    expect(await get(capped)).toMatchObject({ state: 'active', expiresAt: iso(t0 + 3_690_000) })
    expect((await get(later)).expiresAt).toBe(later.expiresAt)
    // Twins: the one whose lifetime ran out, and the one that was past its idle end before.
    expect((await leaseWhen(after, lifetimeOver.id, (view) => view.cleanup.state === 'gone')).state).toBe('expired')
    expect(await leaseWhen(after, idle.id, (view) => view.cleanup.state === 'gone')).toMatchObject({
      state: 'expired',
      expiresAt: iso(t0 + 10_000),
    })
    // Its holder is back as well: it beats, and goes on as if nothing had been.
    expect((await createHeartbeat(after.context)(ann, beating.id, {})).expiresAt).toBe(
      iso(back + 1_800_000 < t0 + 5_400_000 ? back + 1_800_000 : t0 + 5_400_000),
    )
    const told = await events(store, 'clock.downtime')
    // The third is the one whose lifetime is over: its idle end moved to that, and no further.
    expect(told.map((row) => JSON.parse(row.payload) as unknown)).toEqual([{ gapSeconds: 3600, moved: 3 }])
    // Who does not come back in time ends like anybody else.
    await at(after, t0 + 3_690_000)
    expect((await leaseWhen(after, capped.id, (view) => view.cleanup.state === 'gone')).state).toBe('expired')
  })

  it('revives no lease whose removal was opened before it went: its beats are refused after as before (leases R20-R22, I9)', async () => {
    const store = await fresh()
    const before = await comesBack(store)
    const lease = await leaseOn(before, { idleTimeoutSeconds: 10 })
    provider.onRemove = () => ({ kind: 'unknown', error: 'HTTP 500' })
    await at(before, t0 + 10_000)
    await leaseWhen(before, lease.id, (view) => view.cleanup.state === 'failed')
    await goesAway(before)
    // The last mark lies before the lease's end, as it does when a process is killed within 10 s of it.
    await store.write((tx) =>
      tx.db
        .updateTable('replicas')
        .set({ alive_at: t0 + 9_000 })
        .execute(),
    )
    await setClock(store, t0 + 12_000)
    const after = await comesBack(store)
    expect((await getLease(after.context, ann, lease.id)).expiresAt).toBe(iso(t0 + 10_000))
    await expect(createHeartbeat(after.context)(ann, lease.id, {})).rejects.toMatchObject({
      code: expect.stringMatching(/lease_expired|cleanup_in_progress/) as string,
    })
  })

  it('moves no end for which a removal is being opened at that very moment (leases R22, I10)', async () => {
    const store = await fresh()
    const engine = await comesBack(store)
    const [ending, other] = [await leaseOn(engine, { idleTimeoutSeconds: 10 }), await leaseOn(engine, { idleTimeoutSeconds: 10 })]
    await goesAway(engine)
    await setClock(store, t0 + 10_000)
    const row = async (id: string) => (await store.read((session) => leaseById(session, id))) as LeaseRow
    const [opened, commits] = [gate(), gate()]
    const locked = Promise.withResolvers<void>()
    const opening = store.write(async (tx) => {
      const [lease] = await lockLeases(tx, [ending.id as LeaseId])
      const [instance] = await lockInstances(tx, [(lease as LeaseRow).instance_id])
      const [attempt] = await attemptsOf(tx, [(instance as InstanceRow).id])
      await openRemovals(tx, [
        { instance: instance as InstanceRow, lease: lease as LeaseRow, attempt: attempt as AttemptRow, cause: 'expired' },
      ])
      await tx.db
        .updateTable('leases')
        .set({ due_at: null })
        .where('id', '=', ending.id as LeaseId)
        .execute()
      locked.resolve()
      await commits.promise
    })
    await locked.promise
    const forgiving = store.write((tx) => {
      opened.open()
      return forgiveIdleness(tx, t0, t0 + 10_000, t0 + 130_000)
    })
    // On PostgreSQL it waits for the row by now; on SQLite for its turn.
    if (store.dialect === 'postgresql') {
      await opened.promise
      await until(
        async () =>
          (
            await store.read(({ db }) =>
              sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db),
            )
          ).rows.length > 0,
        'it waits for the lease',
      )
    }
    commits.open()
    await opening
    expect(await forgiving).toBe(1)
    expect((await row(ending.id)).expires_at).toBe(t0 + 10_000)
    expect((await row(other.id)).expires_at).toBe(t0 + 130_000)
  })

  it('moves nothing when another replica was alive all the time (decisions 1)', async () => {
    const store = await fresh()
    const first = await comesBack(store)
    const lease = await leaseOn(first, { idleTimeoutSeconds: 1_000 })
    const other = await comesBack(store)
    await goesAway(first)
    await goesAway(other)
    // The other one's last mark is five seconds old.
    const back = t0 + hour
    await store.write(async (tx) => {
      await tx.db
        .updateTable('replicas')
        .set({ alive_at: back - 5_000 })
        .where('id', '=', other.self.id)
        .execute()
    })
    await setClock(store, back)
    const after = await comesBack(store)
    expect(await leaseWhen(after, lease.id, (view) => view.cleanup.state === 'gone')).toMatchObject({
      state: 'expired',
      expiresAt: iso(t0 + 1_000_000),
    })
    expect(await events(store, 'clock.downtime')).toEqual([])
  })

  it('that restarts every 300 s never lengthens a lifetime: a lease of 600 s ends at 600 s (case G4)', async () => {
    const store = await fresh()
    let engine = await comesBack(store)
    const lease = await leaseOn(engine, { ttlSeconds: 600, idleTimeoutSeconds: 120 })
    for (const second of [100, 200, 300, 400, 500, 599]) {
      const restarts = second === 300 || second === 599
      if (restarts) await goesAway(engine)
      await setClock(store, t0 + second * 1000)
      if (restarts) engine = await comesBack(store)
      const beaten = await createHeartbeat(engine.context)(ann, lease.id, {})
      expect(Date.parse(beaten.expiresAt)).toBeLessThanOrEqual(t0 + 600_000)
    }
    await goesAway(engine)
    await setClock(store, t0 + 600_000)
    engine = await comesBack(store)
    const ended = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(ended).toMatchObject({ state: 'expired', expiresAt: iso(t0 + 600_000), endedAt: iso(t0 + 600_000) })
  })

  it('a process that stood still for an hour, as a suspended machine does, moves the deadlines before it answers a beat or ends a lease', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const store = await fresh()
    const engine = await comesBack(store, true)
    const lease = await leaseOn(engine)
    const ended = await leaseOn(engine, { ttlSeconds: 1_900 })
    const monotonic = performance.now.bind(performance)
    let stoodStill = 0
    vi.spyOn(performance, 'now').mockImplementation(() => monotonic() + stoodStill)
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] })
    stoodStill = hour
    vi.setSystemTime(Date.now() + hour)
    await setClock(store, t0 + hour)
    // The beat comes first: it is the one that notices.
    expect((await createHeartbeat(engine.context)(ann, lease.id, {})).state).toBe('active')
    for (const pipeline of ['expire', 'remove'] as const) engine.context.signals.wake(pipeline)
    expect((await leaseWhen(engine, ended.id, (view) => view.cleanup.state === 'gone')).state).toBe('expired')
    expect((await getLease(engine.context, ann, lease.id)).state).toBe('active')
    expect(await events(store, 'clock.downtime')).toHaveLength(1)
  })

  it('a clock that runs ahead of the monotonic one pauses expiry at once, raises one event, and expiry goes on when they agree', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] })
    const store = await fresh()
    const engine = await comesBack(store, true)
    const lease = await leaseOn(engine, { ttlSeconds: 400, idleTimeoutSeconds: 400 })
    const wall = Date.now()
    const marked = async (): Promise<void> => {
      await vi.advanceTimersByTimeAsync(10_000)
    }
    /** The clock that is watched: the wall's where we work by the monotonic one, else the database's. */
    const jump = async (ms: number): Promise<void> => {
      vi.setSystemTime(wall + (store.dialect === 'sqlite' ? ms : 0))
      await at(engine, t0 + ms)
    }
    await jump(600_000)
    expect(engine.awake.paused(t0 + 600_000)).not.toBeNull()
    /** A beat that falls into one that is still under way is not a beat of its own: beats go on until it is seen. */
    const markedUntil = (code: string): Promise<unknown> =>
      until(async () => {
        await marked()
        return (await events(store, code)).length === 1
      }, code)
    await markedUntil('clock.jumped')
    await marked()
    await marked()
    expect((await getLease(engine.context, ann, lease.id)).state).toBe('active')
    expect(engine.awake.paused()).toMatch(/clock ran \d+ s ahead of the monotonic one/)
    expect(await events(store, 'clock.jumped')).toHaveLength(1)
    expect(provider.count('remove')).toBe(0)
    // Set right again: within five minutes of the monotonic one they agree, and the lease goes on until its own end.
    await jump(0)
    await markedUntil('clock.agreed')
    await until(() => engine.awake.paused() === null, 'expiry goes on')
    expect((await getLease(engine.context, ann, lease.id)).state).toBe('active')
    // Twin: a clock that is not five minutes ahead ends it at its end.
    vi.setSystemTime(wall)
    await store.write(async (tx) => {
      await tx.db
        .updateTable('leases')
        .set({ expires_at: t0 + 200_000, due_at: t0 + 200_000 })
        .execute()
    })
    await at(engine, t0 + 200_000)
    expect((await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')).state).toBe('expired')
  })

  it('is told apart from others by its own record, and leaves it stopped', async () => {
    const store = await fresh()
    const engine = await createEngine({ store, providers: [provider], log: silentLog, version: '9.9', watchClocks: false })
    await engine.start()
    const replicas = () => store.read(({ db }) => db.selectFrom('replicas').select(['id', 'version', 'pid', 'stopped_at']).execute())
    expect(await replicas()).toEqual([{ id: engine.self.id, version: '9.9', pid: process.pid, stopped_at: null }])
    await setClock(store, t0 + 5)
    await engine.stop(0)
    expect(await replicas()).toMatchObject([{ stopped_at: t0 + 5 }])
  })
})
