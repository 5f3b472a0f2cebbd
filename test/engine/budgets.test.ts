/** What a throttled account costs: time, and nothing else. On the scripted provider, with a clock that stands still. */
import { afterEach, expect, it } from 'vitest'
import { getRemoval, readStatus } from '../../src/engine/admin/index.ts'
import { createBudgets } from '../../src/engine/budget/budgets.ts'
import { WaitsForBudget } from '../../src/engine/budget/waits.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { explainKey } from '../../src/engine/explain/index.ts'
import { createHeartbeat, createLease, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import type { RateReport } from '../../src/model/budget.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from '../support/engine.ts'
import { scriptedProvider, testScope, type Scripted } from '../support/scripted-provider.ts'
import { statementsOf } from '../support/statements.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const throttled = (retryAfterMs: number | null): RateReport => ({
  throttled: true,
  retryAfterMs,
  limit: null,
  remaining: null,
  resetMs: null,
})
const account = { provider: 'scripted', scope: testScope }

eachStore('a throttled account', (open, database) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const begin = async (): Promise<{ store: Store; provider: Scripted; engine: Engine }> => {
    const store = await open()
    await setClock(store, t0)
    const provider = scriptedProvider()
    const engine = await makeEngine(store, provider)
    engines.push(engine)
    await engine.start()
    return { store, provider, engine }
  }
  const status = (engine: Engine) => readStatus(engine.context, root, { version: 'test', expiryPaused: null })
  const removalOf = async (store: Store, leaseId: string) =>
    (
      await store.read(({ db }) =>
        db
          .selectFrom('removals')
          .selectAll()
          .where('lease_id', '=', leaseId as never)
          .execute(),
      )
    )[0]

  it('puts a create off until its provider wants to be asked again, and the lease does not fail', async () => {
    const { store, provider, engine } = await begin()
    provider.onCreate = () => ({ kind: 'rejected', code: 'throttled', message: 'too many requests', rate: throttled(30_000) })
    const { lease } = await createLease(engine.context, ann, {})
    await until(async () => (await status(engine)).waiting.creates === 1, 'it waits')
    expect(provider.count('create')).toBe(1)
    const told = await explainKey(engine.context, ann, lease.id, new AbortController().signal)
    expect(told.heldBack[0]?.what).toMatch(/^waits for the account's rate budget until 2026-06-01T12:00:3[01]\.\d{3}Z$/)
    expect((await getLease(engine.context, ann, lease.id)).waitsUntil).toMatch(/^2026-06-01T12:00:3[01]/)
    const view = await status(engine)
    expect(view.budgets).toMatchObject([
      { scope: testScope, operation: 'create', callsPerSecond: 5, blockedUntil: '2026-06-01T12:00:30.000Z', throttles: 1 },
    ])
    provider.onCreate = undefined
    await advance(store, 31_500)
    engine.context.signals.wake('provision')
    expect((await leaseWhen(engine, lease.id, (one) => one.state === 'active')).waitsUntil).toBeUndefined()
    expect([provider.count('create'), provider.boxes.size]).toEqual([2, 1])
    // The twin: refused for another reason, the lease fails at once.
    provider.onCreate = () => ({ kind: 'rejected', code: 'denied', message: 'no' })
    await advance(store, 60_000)
    expect(await leaseOn(engine)).toMatchObject({ state: 'failed', failureCode: 'denied' })
  })

  it('puts a deletion off and counts no failure, keeps intent and answer on record, and asks no more often than it may', async () => {
    const { store, provider, engine } = await begin()
    const lease = await leaseOn(engine)
    provider.onRemove = () => ({ kind: 'retryLater', why: 'too many requests', afterSeconds: null, rate: throttled(20_000) })
    await releaseLease(engine.context, ann, lease.id, {})
    const waiting = await until(async () => {
      const row = await removalOf(store, lease.id)
      return row?.waits_until == null || row.waits_until !== row.due_at ? undefined : row
    }, 'the removal waits')
    expect(waiting).toMatchObject({ failures: 0, error: null })
    expect(provider.count('remove')).toBe(1)
    expect(await getRemoval(engine.context, root, waiting.id)).toMatchObject({
      stuck: false,
      waitsUntil: expect.stringMatching(/^2026-06-01T12:00:2/),
      nextStep: expect.stringContaining("waits for the account's rate budget until 2026-06-01T12:00:2"),
    })
    const audit = await store.read(({ db }) =>
      db.selectFrom('audit').selectAll().where('removal_id', '=', waiting.id).orderBy('id').execute(),
    )
    expect(audit.map((row) => row.kind)).toEqual(['intent', 'outcome'])
    provider.onRemove = undefined
    await advance(store, 25_000)
    engine.context.signals.wake('remove')
    await leaseWhen(engine, lease.id, (one) => one.cleanup.state === 'gone')
    expect(provider.count('remove')).toBe(2)
  })

  it('makes nothing of a read that was refused for its rate: no proof, no failure', async () => {
    const { store, provider, engine } = await begin()
    const lease = await leaseOn(engine)
    provider.onRead = () => ({ kind: 'unknown', error: 'too many requests', rate: throttled(10_000) })
    await releaseLease(engine.context, ann, lease.id, {})
    await until(async () => (await status(engine)).waiting.removals === 1, 'the removal waits')
    expect(await removalOf(store, lease.id)).toMatchObject({ failures: 0, error: null, state: 'preparing' })
    expect(provider.count('remove')).toBe(0)
    // Creates have a budget of their own: a new lease is made meanwhile.
    expect(await leaseOn(engine)).toMatchObject({ state: 'active' })
    provider.onRead = undefined
    await advance(store, 15_000)
    engine.context.signals.wake('remove')
    await leaseWhen(engine, lease.id, (one) => one.cleanup.state === 'gone')
  })

  it('is known to the other replicas too, which ask for nothing meanwhile', async () => {
    const db = await database()
    const [one, two] = [await db.open(), await db.open()]
    await setClock(one, t0)
    const [first, second] = [createBudgets(one, () => null), createBudgets(two, () => null)]
    await first.heard(account, 'delete', throttled(60_000))
    await expect(second.admit(account, 'delete')).rejects.toThrow(WaitsForBudget)
    await expect(second.admit(account, 'create')).resolves.toBeUndefined()
    await advance(one, 62_000)
    await expect(second.admit(account, 'delete')).resolves.toBeUndefined()
  })

  it('with a setting: replicas share it, and creates have a share that deletions can not use up', async () => {
    const db = await database()
    const [one, two] = [await db.open(), await db.open()]
    await setClock(one, t0)
    const budgets = [createBudgets(one, () => 10), createBudgets(two, () => 10)]
    const admitted = async (operation: 'create' | 'delete', tries: number): Promise<number> => {
      let count = 0
      for (let i = 0; i < tries; i++)
        await budgets[i % 2]?.admit(account, operation).then(
          () => count++,
          () => {},
        )
      return count
    }
    const deletions = await admitted('delete', 60)
    expect(deletions).toBeGreaterThanOrEqual(10)
    expect(deletions).toBeLessThanOrEqual(15)
    const creates = await admitted('create', 60)
    expect(creates).toBeGreaterThanOrEqual(5)
    expect(deletions + creates).toBeLessThanOrEqual(20)
    // Time alone gives it back.
    await advance(one, 1_000)
    expect(await admitted('create', 60)).toBeGreaterThanOrEqual(8)
  })

  it('where nothing limits an account, a call writes nothing, and a beat asks for nothing', async () => {
    const { engine, store } = await begin()
    const lease = await leaseOn(engine)
    const budgets = createBudgets(store, () => null)
    await budgets.admit(account, 'read')
    const statements = await statementsOf(store, async () => {
      for (let i = 0; i < 200; i++) await budgets.admit(account, 'delete')
    })
    expect(statements.length).toBeLessThanOrEqual(4)
    await createHeartbeat(engine.context)(ann, lease.id, {})
    expect(await store.read(({ db }) => db.selectFrom('budgets').selectAll().execute())).toEqual([])
  })
})
