import { afterEach, expect, it } from 'vitest'
import { createEngine, type Engine } from '../../src/engine/engine.ts'
import { withFeed } from '../../src/engine/feed.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { expireEvents } from '../../src/engine/retain.ts'
import { event } from '../../src/engine/record.ts'
import { appendEvents, readEvents } from '../../src/store/events.ts'
import { insertBackend } from '../../src/store/backends.ts'
import { insertProject } from '../../src/store/projects.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const dayMs = 86_400_000
const never = (): boolean => false

interface Line {
  level: string
  message: string
  event: unknown
}

eachStore('how long events are kept', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const started = async (ttlMs?: number) => {
    const store = await open()
    await setClock(store, t0)
    const lines: Line[] = []
    const to = (level: string) => (fields: object, message: string) =>
      void lines.push({ level, message, ...(fields as { event: unknown }) })
    const engine = await createEngine({
      store,
      providers: [scriptedProvider()],
      log: { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') },
      version: 'test',
      watchClocks: false,
      ...(ttlMs === undefined ? {} : { eventsTtlMs: ttlMs }),
    })
    engines.push(engine)
    await store.write(async (tx) => {
      await insertProject(tx, 'default')
      await insertBackend(tx, { project: 'default', name: 'local', provider: 'scripted', config: '{}', scope: null, is_default: 1 })
    })
    await engine.start()
    return { store, engine, lines: () => lines.filter((line) => line.event !== undefined) }
  }
  /** A lease from its create to the proof of its removal. */
  const wholeLease = async (engine: Engine): Promise<string> => {
    const lease = await leaseOn(engine)
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    return lease.id
  }
  const codes = async (store: Store): Promise<string[]> =>
    (await store.read(({ db }) => db.selectFrom('events').select('code').orderBy('id').execute())).map((row) => row.code)
  const count = (store: Store, table: 'audit' | 'event_targets'): Promise<number> =>
    store.read(async ({ db }) => (await db.selectFrom(table).selectAll().execute()).length)
  const feed = (store: Store, after = 0) => readEvents(store, { project: null, after, limit: 1000, target: null })
  const life = ['lease.created', 'lease.active', 'lease.released']
  const deletion = ['removal.opened', 'removal.gone']

  it('past their time they go, with their targets; one millisecond before they stay (orphans R86)', async () => {
    const { store, engine } = await started()
    await wholeLease(engine)
    expect((await codes(store)).toSorted()).toEqual([...life, ...deletion].toSorted())
    await advance(store, 30 * dayMs)
    await expireEvents({ store }, 30 * dayMs)
    expect(await codes(store)).toHaveLength(5)
    await advance(store, 1)
    await expireEvents({ store }, 30 * dayMs)
    expect((await codes(store)).toSorted()).toEqual(deletion.toSorted())
    expect(
      new Set(
        (await store.read(({ db }) => db.selectFrom('event_targets').select('event_id').distinct().execute())).map((row) => row.event_id),
      ).size,
    ).toBe(2)
  })

  it('audit records and the events of a deletion are kept for ever, at any setting (orphans R86)', async () => {
    const { store, engine } = await started(-1)
    const lease = await wholeLease(engine)
    const audit = await count(store, 'audit')
    expect(audit).toBeGreaterThanOrEqual(2)
    await advance(store, 3650 * dayMs)
    await expireEvents({ store }, -1)
    await expireEvents({ store }, 1)
    expect(await count(store, 'audit')).toBe(audit)
    const told = await readEvents(store, { project: 'default', after: 0, limit: 100, target: lease })
    expect(told.map((one) => one.event.code)).toEqual(deletion)
  })

  it.each([0, -1])('a time of %d stores none, and each is logged once all the same (orphans R86)', async (ttlMs) => {
    const { store, engine, lines } = await started(ttlMs)
    await wholeLease(engine)
    expect((await codes(store)).toSorted()).toEqual(deletion.toSorted())
    expect(
      lines()
        .filter((line) => line.level === 'info')
        .map((line) => String(line.event))
        .toSorted(),
    ).toEqual(life.toSorted())
    expect(lines().filter((line) => line.event === 'removal.gone')).toHaveLength(1)
  })

  it('stored ones are logged too: what needs a look at its level, the rest for those who ask', async () => {
    const { engine, store, lines } = await started()
    await wholeLease(engine)
    expect(new Set(lines().map((line) => line.level))).toEqual(new Set(['debug']))
    await engine.context.store.write((tx) =>
      appendEvents(tx, [event(tx, 'removal.held', { by: 'freeze' }, { project: 'default', targets: [] })]),
    )
    expect(lines().at(-1)).toMatchObject({ level: 'warn', event: 'removal.held', message: 'Removal held back by freeze' })
    expect(lines()).toHaveLength((await codes(store)).length)
  })

  it('what was not committed is not logged', async () => {
    const { engine, lines } = await started(0)
    const failing = engine.context.store.write(async (tx) => {
      await appendEvents(tx, [event(tx, 'lease.cancelled', {}, { project: 'default', targets: [] })])
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(lines()).toEqual([])
  })

  it('a transaction that had to run again is logged once', async () => {
    const { engine, lines, store } = await started(0)
    let runs = 0
    // What PostgreSQL does after a deadlock: nothing was written, and the body runs anew.
    const again: Store = {
      dialect: store.dialect,
      description: store.description,
      now: () => store.now(),
      read: (body) => store.read(body),
      close: () => store.close(),
      write: async (body) => {
        await store
          .write(async (tx) => {
            await body(tx)
            throw new Error('deadlock')
          })
          .catch(() => {})
        return store.write(body)
      },
    }
    await withFeed(again, 0, engine.context.log).write((tx) => {
      runs++
      return appendEvents(tx, [event(tx, 'lease.cancelled', {}, { project: 'default', targets: [] })])
    })
    expect(runs).toBe(2)
    expect(lines().map((line) => line.event)).toEqual(['lease.cancelled'])
  })

  it('numbers go on from the newest, also when all of its like have gone: a follower misses nothing', async () => {
    const { store } = await started()
    const add = (n: number) =>
      store.write((tx) =>
        appendEvents(
          tx,
          Array.from({ length: n }, () => event(tx, 'lease.cancelled', {}, { project: 'default', targets: [] })),
        ),
      )
    // More than a page, read in between so that they have numbers.
    await add(1500)
    const last = (await feed(store, 1499)).at(-1)?.event.seq as number
    expect(last).toBe(1500)
    await advance(store, 40 * dayMs)
    await expireEvents({ store }, 30 * dayMs)
    expect((await feed(store)).map((one) => one.event.seq)).toEqual([1500])
    await add(2)
    expect((await feed(store, last)).map((one) => one.event.seq)).toEqual([1501, 1502])
    // The old newest is no exception once there is a newer one.
    await expireEvents({ store }, 30 * dayMs)
    expect((await feed(store)).map((one) => one.event.seq)).toEqual([1501, 1502])
  })

  it('what a pass has looked at and kept is not read again by the next', async () => {
    const { store, engine } = await started(0)
    await wholeLease(engine)
    await advance(store, dayMs)
    const end = await expireEvents({ store }, 0)
    expect(end).not.toBe('')
    expect(await expireEvents({ store }, 0, end, never)).toBe(end)
    // Asked to stop, it looks at nothing.
    expect(await expireEvents({ store }, 0, '', () => true)).toBe('')
  })

  it('a coordinator that starts removes what is too old by itself', async () => {
    const first = await started()
    await wholeLease(first.engine)
    await first.engine.stop(0)
    await advance(first.store, 31 * dayMs)
    const second = await createEngine({
      store: first.store,
      providers: [scriptedProvider()],
      log: first.engine.context.log,
      version: 'test',
      watchClocks: false,
    })
    engines.push(second)
    await second.start()
    await until(async () => (await codes(first.store)).length === 2, 'the old ones are gone')
    expect((await codes(first.store)).toSorted()).toEqual(deletion.toSorted())
  })
})
