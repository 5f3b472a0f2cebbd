/** Class A: something live is deleted because our own view is stale or absent. */
import { afterEach, expect, it } from 'vitest'
import { databaseTrouble } from '../../../src/engine/admin/index.ts'
import { createLease } from '../../../src/engine/leases/index.ts'
import type { AttemptId, InstanceId } from '../../../src/model/ids.ts'
import type { Store } from '../../../src/store/store.ts'
import { ann } from '../../support/engine.ts'
import { everyRow } from '../../support/sweep-world.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, long, openCases, requestKey, type Case } from './support.ts'

/** The same database, whose connections can be refused. */
const refusable = (store: Store): { store: Store; refuse: { on: boolean; count: number } } => {
  const refuse = { on: false, count: 0 }
  const guard = <A extends unknown[], T>(call: (...given: A) => Promise<T>) => {
    return async (...given: A): Promise<T> => {
      if (!refuse.on) return call(...given)
      refuse.count++
      throw new Error('connect ECONNREFUSED')
    }
  }
  const guarded: Store = {
    dialect: store.dialect,
    description: store.description,
    now: guard(() => store.now()),
    read: guard(store.read.bind(store) as Store['read']) as Store['read'],
    write: guard(store.write.bind(store) as Store['write']) as Store['write'],
    close: () => store.close(),
  }
  return { store: guarded, refuse }
}

eachStore('a stale view', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  /** Without the schedule's own locks: a sweep that could not be written leaves its row locked until the lock ends. */
  const rows = async (store: Store): Promise<Record<string, string[]>> => {
    const { cleanups: _, ...rest } = await everyRow(store)
    return rest
  }
  const eligible = async (one: Case): Promise<{ cloudID: string }> => {
    const orphan = await one.orphan()
    await one.sweep()
    return orphan
  }

  it('a database that refuses its connections in the middle of a sweep changes no row and deletes nothing (case A1)', async () => {
    const real = await open()
    const { store, refuse } = refusable(real)
    const one = await cases.open(store)
    const live = []
    for (let i = 0; i < 12; i++) live.push(await one.lease())
    const orphan = await eligible(one)
    const before = await rows(real)
    one.hooks.list = (items) => {
      refuse.on = true
      return items
    }
    const asked = one.sweep(graceSeconds + 60).catch((error: unknown) => error)
    await until(() => refuse.on, 'the provider is listed')
    const { count } = refuse
    await until(() => refuse.count > count + 5, 'the database is asked again and again')
    expect(await databaseTrouble(one.engine.context)).toMatch(/ECONNREFUSED/)
    expect(await rows(real)).toEqual(before)
    expect(one.running()).toHaveLength(13)
    // The twin: with the database back the machine that nobody holds goes, and the twelve stay.
    one.hooks.list = undefined
    refuse.on = false
    expect(await databaseTrouble(one.engine.context)).toBeNull()
    expect(await asked).toBeDefined()
    await one.sweep()
    await one.gone(orphan.cloudID)
    expect(one.running()).toEqual(live.map((lease) => lease.cloudID))
  })

  it('a coordinator that starts without its database asks the provider for nothing, and after its recovery tracks all twelve (case A1)', async () => {
    const real = await open()
    const { store, refuse } = refusable(real)
    const one = await cases.open(store)
    for (let i = 0; i < 12; i++) await one.lease()
    await one.engine.stop(0)
    const { length } = one.calls
    refuse.on = true
    await expect(one.restart()).rejects.toThrow('ECONNREFUSED')
    expect(one.engine.ready()).toBe(false)
    expect(one.calls).toHaveLength(length)
    refuse.on = false
    await one.restart()
    const view = await one.sweep()
    expect(view).toMatchObject({ outcome: 'clean', counts: { expected: 12, seen: 12 } })
    expect(one.running()).toHaveLength(12)
  })

  it('a machine that is there before its record has its id is in flight, also at the second try (case A2)', async () => {
    const one = await cases.open(await open())
    // The first try makes nothing.
    one.hooks.create = async () => ({ kind: 'uncertain', message: '503', resource: null })
    const { lease } = await createLease(one.engine.context, ann, { ...long, createAttemptID: requestKey() })
    await until(() => one.count('create') === 1, 'the first try')
    let second: (() => void) | undefined
    one.hooks.create = async (_request, real) => {
      const made = await real()
      await new Promise<void>((resolve) => (second = resolve))
      return made
    }
    await one.advanceUntil(() => one.running().length === 1, 'the second try has made one', 1)
    await one.advance(20)
    const view = await one.sweep(5)
    expect(view).toMatchObject({ outcome: 'unsettled', verdicts: { 'inFlight.pending': 1 } })
    second?.()
    await until(async () => (await one.leaseView(lease.id)).state === 'active', 'it is confirmed')
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    expect(one.running()).toHaveLength(1)
    expect(one.count('remove')).toBe(0)
    // The twin: the same machine, whose owner has ended, goes.
    await one.deregister(await one.leaseView(lease.id))
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone((await one.attemptOf(lease)).native_id ?? '')
  })

  it('what another process creates between the list and the reading of the rows is neither missing nor an orphan (case A5)', async () => {
    const one = await cases.open(await open())
    const first = await one.lease()
    const made: string[] = []
    one.hooks.list = async (items) => {
      made.push((await one.lease()).cloudID)
      return items
    }
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    one.hooks.list = undefined
    expect(await one.told()).toEqual([])
    expect(one.running()).toEqual([first.cloudID, ...made])
    expect((await one.sweep()).outcome).toBe('clean')
  })

  it('one that the list shows before its row is read counts by what the rows say then (case A5)', async () => {
    const one = await cases.open(await open())
    const leases: Awaited<ReturnType<Case['lease']>>[] = []
    one.hooks.list = async () => {
      leases.push(await one.lease())
      one.hooks.list = undefined
      const items = []
      for await (const item of one.provider.list?.(['sim-a'], { path: one.cloud.path }, { signal: new AbortController().signal }) ?? [])
        items.push(item)
      return items
    }
    await one.lease()
    await one.sweep()
    expect(await one.told()).toEqual([])
    // The twin: the same machine past its margin, with its owner ended.
    const [late] = leases
    if (!late) throw new Error('nothing was created during the list')
    await one.deregister(late)
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${late.cloudID}`])
  })

  it('a busy machine that the owner’s record knew late is marked, never touched within the grace, and unmarked when the record knows it (case A8)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const bound = await one.attemptOf(lease)
    const other = 'at_other' as AttemptId
    const point = (to: AttemptId) =>
      one.store.write((tx) =>
        tx.db
          .updateTable('instances')
          .set({ attempt_id: to, changed_at: tx.now })
          .where('id', '=', lease.instanceID as InstanceId)
          .execute(),
      )
    const elsewhere = { ...bound, id: other, number: 2, token: 'e'.repeat(32), native_id: 'i-0000ffff', immutable_id: 'i-0000ffff' }
    await one.store.write((tx) => tx.db.insertInto('attempts').values(elsewhere).execute())
    await point(other)
    await one.sweep(120)
    expect(await one.told()).toContain(`orphan ${lease.cloudID}`)
    await point(bound.id)
    await one.sweep(240)
    expect(await one.told()).toEqual([])
    await one.sweep(graceSeconds)
    await one.sweep(graceSeconds)
    expect([one.isRunning(lease.cloudID), one.count('remove')]).toEqual([true, 0])
    // The twin: the record goes on to know another one, past the grace and twice.
    await point(other)
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(lease.cloudID)
  })
})
