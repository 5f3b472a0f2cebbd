import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EngineContext, Log } from '../../src/engine/context.ts'
import { silentLog } from '../../src/engine/context.ts'
import { createPipeline, stillStands, type Held, type Pipeline, type PipelineSpec } from '../../src/engine/pipeline.ts'
import { createSignals } from '../../src/engine/signals.ts'
import { stillHeld, unlocked } from '../../src/store/due.ts'
import type { Store } from '../../src/store/store.ts'
import { makeEngine } from '../support/engine.ts'
import { gate, scriptedProvider } from '../support/scripted-provider.ts'
import { eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { insertProject } from '../../src/store/projects.ts'
import { insertRows } from '../store/rows.ts'

const t0 = 1_780_000_000_000

eachStore('a pipeline', (open, database) => {
  const pipelines: Pipeline[] = []
  beforeEach(() => {
    // Renewals happen when a test says so; everything else runs by the real timers.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  })
  afterEach(async () => {
    for (const pipeline of pipelines.splice(0)) await pipeline.stop(0)
    vi.useRealTimers()
  })
  const renewal = (): Promise<unknown> => vi.advanceTimersByTimeAsync(10_000)

  const contextOn = async (store: Store, replicaId = 're_a', log: Log = silentLog): Promise<EngineContext> => {
    const { context } = await makeEngine(store, scriptedProvider())
    return { ...context, store, replicaId, log, signals: createSignals() }
  }
  const run = (
    context: EngineContext,
    process: (held: Held) => Promise<void>,
    over: Partial<PipelineSpec> = {},
    paused?: () => boolean,
  ) => {
    const pipeline = createPipeline(context, { name: 'remove', table: 'removals', capacity: 100, process, ...over }, paused)
    pipelines.push(pipeline)
    pipeline.start()
    return pipeline
  }
  const withRows = async (store: Store, count: number, over: (n: number) => object = () => ({ due_at: t0 })): Promise<void> => {
    await setClock(store, t0)
    await store.write((tx) => insertRows(tx, 'removals', count, over))
  }
  /** What a worker writes at the end, under its fence: how many errors it has seen. */
  const apply = (store: Store, held: Held, text: string): Promise<boolean> =>
    store.write(async (tx) => {
      if ((await stillHeld(tx, 'removals', [held])).size === 0) return false
      await tx.db
        .updateTable('removals')
        .set({ ...unlocked(null), error: text })
        .where('id', '=', held.id as never)
        .execute()
      return true
    })
  const errors = async (store: Store): Promise<(string | null)[]> =>
    (await store.read(({ db }) => db.selectFrom('removals').select('error').orderBy('id').execute())).map((row) => row.error)

  it('processes what is due, each row once, and leaves what is not', async () => {
    const store = await open()
    await withRows(store, 250, (n) => ({ due_at: n % 5 === 0 ? t0 + 1 : n % 7 === 0 ? null : t0 }))
    const seen: string[] = []
    run(await contextOn(store), async (held) => {
      seen.push(held.id)
      await apply(store, held, 'done')
    })
    const due = Array.from({ length: 250 }, (_, i) => i + 1).filter((n) => n % 5 !== 0 && n % 7 !== 0)
    await until(async () => (await errors(store)).filter((text) => text === 'done').length === due.length, 'all that is due is done')
    expect(seen.toSorted()).toEqual(due.map((n) => `rm_${n}`).toSorted())
  })

  it('a worker that lost its lock applies nothing, and is told so at the next renewal (I3, leases R43, orphans R37)', async () => {
    const db = await database()
    const store = await db.open()
    await withRows(store, 1)
    const slow = gate()
    const first: Held[] = []
    const takesNoMore = (): boolean => first.length > 0
    const work = async (held: Held): Promise<void> => {
      first.push(held)
      await slow.promise
      await apply(store, held, 'from the first')
    }
    run(await contextOn(store), work, {}, takesNoMore)
    await until(() => first.length === 1, 'the first works')
    // It stalls: no renewal for 30 s, and another replica takes the row.
    await setClock(store, t0 + 30_000)
    const other = await db.open()
    const second: Held[] = []
    const finish = gate()
    run(await contextOn(other, 're_b'), async (held) => {
      second.push(held)
      await finish.promise
      await apply(other, held, 'from the second')
    })
    await until(() => second.length === 1, 'the second took it over')
    expect([first[0]?.fence, second[0]?.fence]).toEqual([1, 2])
    await renewal()
    await until(() => first[0]?.signal.aborted === true, 'the first is told')
    expect(second[0]?.signal.aborted).toBe(false)
    slow.open()
    finish.open()
    await until(async () => (await errors(store))[0] !== null, 'the one that holds it applies')
    expect(await errors(store)).toEqual(['from the second'])
  })

  it('a row that comes back to the same process, because its lock could not be renewed, aborts the older work on it', async () => {
    const store = await open()
    await withRows(store, 1)
    const slow = gate()
    const works: Held[] = []
    const applied: boolean[] = []
    run(await contextOn(store), async (held) => {
      works.push(held)
      await slow.promise
      applied.push(await apply(store, held, `fence ${held.fence}`))
    })
    await until(() => works.length === 1, 'the work begins')
    await setClock(store, t0 + 30_000)
    await until(() => works.length === 2, 'the row comes back')
    expect(works.map((one) => [one.fence, one.signal.aborted])).toEqual([
      [1, true],
      [2, false],
    ])
    slow.open()
    await until(() => applied.length === 2, 'both end')
    expect(await errors(store)).toEqual(['fence 2'])
    expect(applied.filter(Boolean)).toHaveLength(1)
  })

  it('a lock is renewed while its row is worked on, however long that takes (case G1)', async () => {
    const db = await database()
    const store = await db.open()
    await withRows(store, 1)
    const slow = gate()
    const works: Held[] = []
    run(await contextOn(store), async (held) => {
      works.push(held)
      await slow.promise
      await apply(store, held, 'done')
    })
    await until(() => works.length === 1, 'the work begins')
    const lockEnd = async (): Promise<number | null> =>
      (await store.read(({ db: kysely }) => kysely.selectFrom('removals').select('lock_until').executeTakeFirstOrThrow())).lock_until
    // Six locks long, with a renewal in each of them.
    for (let step = 1; step <= 9; step++) {
      const now = t0 + step * 20_000
      await setClock(store, now)
      await renewal()
      await until(async () => (await lockEnd()) === now + 30_000, 'the lock is renewed')
    }
    expect(works).toHaveLength(1)
    expect(works[0]?.signal.aborted).toBe(false)
    slow.open()
    await until(async () => (await errors(store))[0] === 'done', 'it is applied')
  })

  it('a process that stood still for as long as its lock stands takes it for lost, although nobody has told it; renewed, it stands again (I3)', async () => {
    const store = await open()
    await withRows(store, 1)
    const slow = gate()
    const works: Held[] = []
    run(await contextOn(store), async (held) => {
      works.push(held)
      await slow.promise
    })
    const held = await until(() => works[0], 'the work begins')
    expect(stillStands(held)).toBe(true)
    const begun = performance.now()
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => begun + 30_000)
    expect(stillStands(held)).toBe(false)
    expect(held.signal.aborted).toBe(false)
    await renewal()
    await until(() => stillStands(held), 'the lock is renewed')
    clock.mockRestore()
    slow.open()
  })

  it('a row that throws comes back when its lock ends, delays no other, and the log has the reason without its secrets', async () => {
    const store = await open()
    await withRows(store, 3)
    const logged: object[] = []
    const log: Log = { ...silentLog, error: (fields) => void logged.push(fields) }
    const seen: string[] = []
    run(await contextOn(store, 're_a', log), async (held) => {
      seen.push(`${held.id}/${held.fence}`)
      if (held.id === 'rm_2' && held.fence === 1) throw new Error('failed with token=canary')
      await apply(store, held, 'done')
    })
    await until(async () => (await errors(store)).filter((text) => text === 'done').length === 2, 'the others are done')
    expect(logged).toEqual([{ pipeline: 'remove', id: 'rm_2', error: 'failed with token=***' }])
    await setClock(store, t0 + 29_999)
    expect(seen.filter((one) => one.startsWith('rm_2'))).toEqual(['rm_2/1'])
    await setClock(store, t0 + 30_000)
    await until(async () => (await errors(store))[1] === 'done', 'it is tried again')
    expect(seen.filter((one) => one.startsWith('rm_2'))).toEqual(['rm_2/1', 'rm_2/2'])
  })

  it('does what needs only the database with the fetch, and where that fails does each row by itself', async () => {
    const store = await open()
    await withRows(store, 5)
    const processed: string[] = []
    const committed: number[] = []
    let broken = true
    run(
      await contextOn(store),
      async (held) => {
        processed.push(held.id)
        await apply(store, held, 'by itself')
        broken = false
      },
      {
        capacity: 2,
        async take(tx, rows) {
          for (const { id, fence } of rows)
            await tx.db
              .updateTable('removals')
              .set({ ...unlocked(null), lock_fence: fence, error: 'with the fetch' })
              .where('id', '=', id as never)
              .execute()
          if (broken) throw new Error('one of them can not be read')
          return { committed: () => void committed.push(rows.length), left: [] }
        },
      },
    )
    await until(async () => !(await errors(store)).includes(null), 'all are done')
    const texts = await errors(store)
    expect(texts.filter((text) => text === 'by itself')).toHaveLength(processed.length)
    expect(processed.length).toBeGreaterThan(0)
    expect(processed.length).toBeLessThan(5)
    expect(committed.reduce((sum, one) => sum + one, 0)).toBe(5 - processed.length)
  })

  it('has no more rows in work than it may, and one slow row keeps a place, not the others (leases R45)', async () => {
    const store = await open()
    await withRows(store, 40)
    const slow = gate()
    let running = 0
    let most = 0
    run(
      await contextOn(store),
      async (held) => {
        running++
        most = Math.max(most, running)
        if (held.id === 'rm_1') await slow.promise
        await apply(store, held, 'done')
        running--
      },
      { capacity: 5 },
    )
    await until(async () => (await errors(store)).filter((text) => text === 'done').length === 39, 'all others are done')
    expect(most).toBeLessThanOrEqual(5)
    expect(running).toBe(1)
    slow.open()
    await until(async () => (await errors(store))[0] === 'done', 'the slow one too')
  })

  it('one project’s thousand due rows, each of which hangs, keep no place from another’s', async () => {
    const store = await open()
    await setClock(store, t0)
    const hung = gate()
    await store.write(async (tx) => {
      for (const name of ['many', 'few']) await insertProject(tx, name)
      // The other's rows are the last to have come due.
      await insertRows(tx, 'removals', 1_010, (n) => ({
        project: n <= 1_000 ? 'many' : 'few',
        due_at: n <= 1_000 ? t0 - 1_010 + n : t0,
      }))
    })
    const done: string[] = []
    run(
      await contextOn(store),
      async (held) => {
        if (held.project === 'many') await hung.promise
        await apply(store, held, 'done')
        done.push(held.id)
      },
      { capacity: 50 },
    )
    const few = Array.from({ length: 10 }, (_, i) => `rm_${1_001 + i}`)
    await until(() => few.every((id) => done.includes(id)), 'the few are done')
    expect(done).toHaveLength(10)
    hung.open()
    await until(() => done.length === 1_010, 'the many are done too', 60_000)
  })

  it('stop takes nothing new and waits for what is in work', async () => {
    const store = await open()
    await withRows(store, 1)
    const slow = gate()
    const seen: string[] = []
    const context = await contextOn(store)
    const pipeline = run(context, async (held) => {
      seen.push(held.id)
      await slow.promise
      await apply(store, held, 'done')
    })
    await until(() => seen.length === 1, 'it works')
    let stopped = false
    const stopping = pipeline.stop(60_000).then(() => {
      stopped = true
    })
    await store.write((tx) => insertRows(tx, 'removals', 1, () => ({ due_at: t0 }), 2))
    context.signals.wake('remove')
    await new Promise((resolve) => setImmediate(resolve))
    expect(stopped).toBe(false)
    slow.open()
    await stopping
    expect(await errors(store)).toEqual(['done', null])
    expect(seen).toEqual(['rm_1'])
  })

  it('stop does not wait longer than it is told for a row that hangs', async () => {
    const store = await open()
    await withRows(store, 1)
    let began = false
    const pipeline = run(await contextOn(store), () => {
      began = true
      return new Promise<void>(() => {})
    })
    await until(() => began, 'it hangs')
    await pipeline.stop(50)
    expect(await errors(store)).toEqual([null])
  })

  it('while it is paused it takes nothing, and goes on when it is not', async () => {
    const store = await open()
    await withRows(store, 1)
    const pause = { on: true }
    const context = await contextOn(store)
    let asked = 0
    run(
      context,
      async (held) => void (await apply(store, held, 'done')),
      {},
      () => {
        asked++
        return pause.on
      },
    )
    await until(() => asked > 0, 'it looked')
    context.signals.wake('remove')
    await until(() => asked > 2, 'it looked again')
    expect(await errors(store)).toEqual([null])
    pause.on = false
    context.signals.wake('remove')
    await until(async () => (await errors(store))[0] === 'done', 'it goes on')
  })

  it('a database that does not answer for a while ends nothing: it tries again (case A1)', async () => {
    const store = await open()
    await withRows(store, 1)
    let down = true
    let refused = 0
    const flaky: Store = {
      dialect: store.dialect,
      description: store.description,
      read: (body) => store.read(body),
      write: (body) => store.write(body),
      close: () => store.close(),
      now: () => {
        if (!down) return store.now()
        refused++
        return Promise.reject(new Error('connection refused'))
      },
    }
    const context = await contextOn(store)
    run({ ...context, store: flaky }, async (held) => void (await apply(store, held, 'done')))
    await until(() => refused >= 2, 'it has tried')
    expect(await errors(store)).toEqual([null])
    down = false
    await until(async () => (await errors(store))[0] === 'done', 'it goes on')
  })
})
