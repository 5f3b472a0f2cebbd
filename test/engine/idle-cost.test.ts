import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { settleIdle } from '../../src/engine/sweep/idle.ts'
import { readDueGates } from '../../src/engine/sweep/gate.ts'
import type { Provider } from '../../src/providers/contract.ts'
import { putOff, type PutOff } from '../../src/store/cleanups.ts'
import { lockDue } from '../../src/store/due.ts'
import type { Store } from '../../src/store/store.ts'
import { makeEngine } from '../support/engine.ts'
import { seedIdleBackends } from '../support/idle-backends.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { statementsOf } from '../support/statements.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { sweepsAs } from '../support/sweep-settings.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const intervalMs = 900_000
const backends = 450
const batches = 3

/** Every call of the provider, whichever it is. */
const counted = (provider: Provider): { provider: Provider; calls: string[] } => {
  const calls: string[] = []
  const watched = new Proxy(provider, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name)
      return typeof value !== 'function'
        ? value
        : (...args: unknown[]): unknown => {
            calls.push(String(name))
            return Reflect.apply(value, target, args) as unknown
          }
    },
  })
  return { provider: watched, calls }
}

eachStore('what idle backends cost', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })

  const world = async () => {
    const store = await open()
    await setClock(store, t0)
    const { provider, calls } = counted(scriptedProvider())
    const engine = await makeEngine(store, provider, { sweeps: sweepsAs({ mode: 'report', intervalMs }) })
    engines.push(engine)
    await seedIdleBackends(store, provider.name, backends)
    return { store, engine, calls }
  }
  const rows = (store: Store) => store.read(({ db }) => db.selectFrom('cleanups').selectAll().orderBy('id').execute())
  const sweeps = (store: Store) => store.read(({ db }) => db.selectFrom('sweeps').selectAll().execute())
  const settled = (store: Store, times: number) =>
    until(async () => (await rows(store)).every((row) => row.lock_fence === times && row.lock_owner === null), 'all are settled')
  const ofCleanups = (statements: readonly string[]) => {
    const texts = statements
      .map((text) => text.trim())
      .filter((text) => /\bcleanups\b/.test(text) && !/where "?cleanups"?\."?project|^select \* from "cleanups"/.test(text))
    return {
      gates: texts.filter((text) => text.startsWith('select') && text.includes('from instances')),
      writes: texts.filter((text) => !text.startsWith('select')),
    }
  }

  it('a part of one query and one row written for each backend and interval, and no provider call (orphans R35, R39)', async () => {
    const { store, engine, calls } = await world()
    const first = ofCleanups(
      await statementsOf(store, async () => {
        await engine.start()
        await settled(store, 1)
      }),
    )
    await advance(store, 2 * intervalMs)
    const second = ofCleanups(
      await statementsOf(store, async () => {
        engine.context.signals.wake('sweep')
        await settled(store, 2)
      }),
    )
    for (const { gates, writes } of [first, second]) {
      expect(gates).toHaveLength(batches)
      expect(writes).toHaveLength(batches)
    }
    expect(calls).toEqual([])
    expect(await sweeps(store)).toEqual([])
    for (const row of await rows(store)) expect(row.due_at).toBeGreaterThanOrEqual(t0 + 3 * intervalMs)
  })

  it('and the one in whose project something happened is listed, beside all the others that still cost nothing more', async () => {
    const { store, engine, calls } = await world()
    await store.write((tx) => tx.db.updateTable('ledger').set({ owner_closed_at: tx.now }).where('project', '=', 'idle-7').execute())
    await engine.start()
    await until(async () => (await rows(store)).every((row) => (row.due_at ?? 0) > t0 && row.lock_owner === null), 'all are processed')
    const listed = await sweeps(store)
    expect(new Set(listed.map((row) => row.project))).toEqual(new Set(['idle-7']))
    expect(listed).toHaveLength(10)
    expect(calls.filter((name) => name === 'list')).toHaveLength(10)
  })

  it('what was locked or asked for since it was looked at is not put off', async () => {
    const { store, engine } = await world()
    // The first of any batch.
    await store.write((tx) =>
      tx.db
        .updateTable('cleanups')
        .set({ due_at: t0 - 5 })
        .where('id', '=', 'idle-3/b3')
        .execute(),
    )
    const [asked, locked, plain] = await store.read((session) => readDueGates(session, t0, 3))
    if (!asked || !locked || !plain) throw new Error('three are due')
    await store.write((tx) => tx.db.updateTable('cleanups').set({ requested_at: tx.now }).where('id', '=', asked.id).execute())
    await store.write(async (tx) => {
      await tx.db
        .updateTable('cleanups')
        .set({ due_at: t0 - 9 })
        .where('id', '=', locked.id)
        .execute()
      expect((await lockDue(tx, 'cleanups', 'somebody', 1, 30_000)).map((lock) => lock.id)).toEqual([locked.id])
    })
    const as = (row: typeof asked): PutOff => ({
      id: row.id,
      lockFence: row.lock_fence,
      seenDueAt: row.due_at ?? 0,
      requestedAt: row.requested_at,
      dueAt: t0 + intervalMs,
    })
    expect(await store.write((tx) => putOff(tx, [as(asked), as(locked), as(plain)]))).toBe(1)
    const after = new Map((await rows(store)).map((row) => [row.id, row]))
    expect(after.get(asked.id)?.due_at).toBe(t0 - 5)
    expect(after.get(locked.id)).toMatchObject({ lock_owner: 'somebody', lock_fence: 1, due_at: t0 + 30_000 })
    expect(after.get(plain.id)).toMatchObject({ due_at: t0 + intervalMs, lock_fence: 1 })
    // The asked one is left for the lock, and the rest of its batch is not.
    expect(await settleIdle(engine.context, t0)).toBe('lock')
    expect((await rows(store)).filter((row) => row.lock_fence === 1)).toHaveLength(2 + 199)
  })
})
