import { afterEach, expect, it } from 'vitest'
import { readStatus, requestSweep } from '../../src/engine/admin/index.ts'
import { explainKey } from '../../src/engine/explain/index.ts'
import { ann, leaseOn, root } from '../support/engine.ts'
import { advance, eachStore } from '../support/stores.ts'
import { engines, intervalMs, long, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'

const minute = 60_000
const signal = () => new AbortController().signal

eachStore('an account whose listings fail', (open) => {
  const world = engines()
  afterEach(() => world.stop())
  const circuits = ({ store }: Rounds) => store.read(({ db }) => db.selectFrom('circuits').selectAll().execute())

  /** Two backends of one account, each with a box. */
  const begin = async (): Promise<Rounds> => {
    const w = world.keep(await sweepRounds(await open()))
    await w.addBackend('second')
    await leaseOn(w.engine, long)
    await leaseOn(w.engine, { ...long, backend: 'second' })
    return w
  }
  const fail = (w: Rounds): void => {
    w.provider.onList = () => {
      throw new Error('401 unauthorized')
    }
  }

  it('after the third failure in a row, whichever backend it was for, all of its backends wait: 5, 15, 45, then 60 minutes (leases R60, orphans U1)', async () => {
    const w = await begin()
    fail(w)
    await w.round(intervalMs, 'local')
    await w.round(intervalMs, 'second')
    expect(await circuits(w)).toMatchObject([{ failures: 2, open_until: null }])
    const third = await w.round(intervalMs, 'local')
    const opened = await w.store.now()
    expect(await circuits(w)).toMatchObject([
      { provider: 'scripted', scope: 'scripted:one', failures: 3, open_until: opened + 5 * minute, error: '401 unauthorized' },
    ])
    expect(third?.why.at(-1)).toBe(`the circuit of scripted:one is open until ${new Date(opened + 5 * minute).toISOString()}`)
    // The other backend is due, and is not asked: it waits until the circuit's end, whatever its own delay says.
    const calls = w.provider.calls.length
    await w.round(minute, 'second')
    expect(w.provider.calls.length).toBe(calls)
    expect((await w.cleanup('second')).due_at).toBe(opened + 5 * minute)
    for (const minutes of [15, 45, 60, 60]) {
      await w.round(61 * minute, 'second')
      expect((await circuits(w))[0]?.open_until).toBe((await w.store.now()) + minutes * minute)
    }
    // Its own delay had grown beyond the circuit: the later of the two counts.
    expect((await w.cleanup('second')).due_at).toBeGreaterThan((await circuits(w))[0]?.open_until ?? 0)
  })

  it('one listing that goes well closes it for all, and two failures never open it (leases R60)', async () => {
    const w = await begin()
    for (let i = 0; i < 3; i++) {
      fail(w)
      // Activity, so that each has a reason to list.
      await leaseOn(w.engine, long)
      await w.round(intervalMs, 'local')
      await w.round(intervalMs, 'second')
      expect(await circuits(w)).toMatchObject([{ failures: 2, open_until: null }])
      w.provider.onList = undefined
      await w.round(intervalMs, i % 2 === 0 ? 'local' : 'second')
      expect(await circuits(w)).toEqual([])
    }
    fail(w)
    await leaseOn(w.engine, long)
    for (let i = 0; i < 3; i++) await w.round(intervalMs, 'local')
    expect((await circuits(w))[0]?.open_until).not.toBeNull()
    w.provider.onList = undefined
    await w.round(6 * minute, 'second')
    expect(await circuits(w)).toEqual([])
    const lists = w.provider.count('list')
    await w.round(minute, 'local')
    expect(w.provider.count('list')).toBe(lists + 1)
  })

  it('it is durable: another coordinator on the same database leaves the account alone too (leases R60)', async () => {
    const w = await begin()
    fail(w)
    for (let i = 0; i < 3; i++) await w.round(intervalMs, 'local')
    await w.engine.stop(0)
    const again = world.keep({ ...w, engine: await restarted(w) })
    const calls = w.provider.calls.length
    await advance(w.store, minute)
    await w.store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).execute())
    again.engine.context.signals.wake('sweep')
    const end = (await circuits(w))[0]?.open_until ?? 0
    await expect.poll(async () => (await w.cleanup('second')).due_at, { timeout: 20_000 }).toBe(end)
    expect(w.provider.calls.length).toBe(calls)
  })

  it('a person who asks is answered all the same, and status and explain show it (leases R60)', async () => {
    const w = await begin()
    fail(w)
    for (let i = 0; i < 3; i++) await w.round(intervalMs, 'local')
    const [row] = await circuits(w)
    const until = new Date(row?.open_until ?? 0).toISOString()
    const status = await readStatus(w.engine.context, root, { version: 'test', expiryPaused: null })
    expect(status.circuits).toEqual([
      {
        provider: 'scripted',
        scope: 'scripted:one',
        failures: 3,
        failedAt: expect.any(String),
        openUntil: until,
        error: '401 unauthorized',
      },
    ])
    expect((await readStatus(w.engine.context, ann, { version: 'test', expiryPaused: null })).circuits).toHaveLength(1)
    const explained = await explainKey(w.engine.context, root, 'second', signal())
    expect(explained.heldBack).toEqual([{ what: expect.stringContaining('the circuit of account scripted:one'), until }])
    // Its own row may be due earlier, and waits all the same: one time is told.
    await w.store.write((tx) =>
      tx.db
        .updateTable('cleanups')
        .set({ due_at: tx.now + 1000 })
        .execute(),
    )
    expect((await explainKey(w.engine.context, root, 'second', signal())).change).toContain(`due at ${until}`)
    const said = (view: { tree: unknown }): string => JSON.stringify(view.tree)
    expect(said(await explainKey(w.engine.context, root, 'scripted:one', signal()))).toContain(`begins by itself until ${until}`)
    await advance(w.store, 6 * minute)
    for (const key of ['second', 'scripted:one']) {
      const over = await explainKey(w.engine.context, root, key, signal())
      expect(over.heldBack).toEqual([])
      expect(said(over)).toContain('3 listings in a row failed: 401 unauthorized; it is listed again by the next sweep that is due')
      expect(said(over)).not.toContain('begins by itself until')
    }
    w.provider.onList = undefined
    await advance(w.store, minute)
    const [swept] = await requestSweep(w.engine.context, root, { backend: 'second' }, 20_000, signal())
    expect(swept).toMatchObject({ state: 'ended', outcome: 'clean' })
    expect((await readStatus(w.engine.context, root, { version: 'test', expiryPaused: null })).circuits).toEqual([])
  })

  it('an account that does not answer who it is counts; a deletion that fails says nothing about it (leases R60)', async () => {
    const w = await begin()
    const scope = w.provider.scope.bind(w.provider)
    w.provider.scope = async () => ({ kind: 'unknown', error: 'no route' })
    for (let i = 0; i < 3; i++) await w.round(intervalMs, 'local')
    expect(await circuits(w)).toMatchObject([{ failures: 3, error: 'no route' }])
    w.provider.scope = scope
    w.settings.mode = 'delete'
    await w.orphan()
    w.provider.onRemove = () => ({ kind: 'blocked', by: 'a lock' })
    for (let i = 0; i < 2; i++) await w.round()
    for (let i = 0; i < 4; i++) expect((await w.round())?.why).toContain('1 deletion failed')
    expect(await circuits(w)).toEqual([])
  })

  const restarted = async (w: Rounds) => {
    const { createEngine } = await import('../../src/engine/engine.ts')
    const engine = await createEngine({
      store: w.store,
      providers: [w.provider],
      log: w.engine.context.log,
      version: 'test',
      watchClocks: false,
      sweepSettings: (provider) => w.engine.context.sweepSettings(provider),
    })
    await engine.start()
    return engine
  }
})
