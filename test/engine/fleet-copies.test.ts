/** Fleets of a database that may be a copy, beside the one that it may be a copy of: two coordinators, one cloud (decisions 6). */
import { afterEach, expect, it } from 'vitest'
import { adoptInstallation, createFleet, listFleets, listHolds, scaleFleet } from '../../src/engine/admin/index.ts'
import { explainKey } from '../../src/engine/explain/index.ts'
import { createHeartbeat, createLease, releaseLease } from '../../src/engine/leases/index.ts'
import { addStop } from '../../src/store/stops.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { openCases, type Case } from '../simulation/cases/support.ts'
import { copyDatabase } from '../support/copies.ts'
import { ann, root } from '../support/engine.ts'
import { eventsOf, instancesOf } from '../support/fleets.ts'
import { eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

const hourSeconds = 3600
/** Two engines, and clocks that are moved step by step. */
const patience = 120_000

const makeDefault = (one: Case) =>
  one.store.write((tx) => tx.db.updateTable('backends').set({ is_default: 1 }).where('name', '=', 'local').execute())
const adopt = (one: Case) => adoptInstallation(one.engine.context, root, { reason: 'the original is gone', original: 'stopped' })
const taken = (one: Case) => one.lease({ fleet: 'ci', ttlSeconds: hourSeconds, idleTimeoutSeconds: 600 })
const readyBox = async (one: Case): Promise<string> => {
  const row = await until(
    async () => (await instancesOf(one.store)).find((each) => each.state === 'idle' && each.dead_at !== null && each.lock_owner === null),
    'a box is ready',
  )
  return row.id
}
const fleetIn = async (one: Case) => (await listFleets(one.engine.context, root))[0]
/** Nothing of the fleet is due or under way. */
const atRest = async (one: Case): Promise<void> => {
  await until(
    async () => {
      const now = await one.store.now()
      const rows = await instancesOf(one.store)
      return rows.every((row) => row.lock_owner === null && (row.due_at === null || row.due_at > now))
    },
    'its boxes are at rest',
    patience / 2,
  )
}

eachStore('a fleet whose database may be a copy', (open, database) => {
  const cases = openCases()
  const undo: (() => Promise<void>)[] = []
  afterEach(async () => {
    // Nobody uses its store any more.
    await cases.close()
    for (const step of undo.splice(0).toReversed()) await step()
  })

  /** The original goes on, and its copy is started beside it; the one box was nobody's when it was copied. */
  const twins = async () => {
    const db = await database()
    const before = await cases.open(await db.open())
    await createFleet(before.engine.context, root, { name: 'ci', size: 1, ttlSeconds: hourSeconds })
    const box = await readyBox(before)
    await before.stop()
    await before.store.close()
    const copy = await copyDatabase(db.target)
    undo.push(() => copy.drop())
    const { path } = before.cloud
    const original = await cases.open(await db.open(), { path })
    await makeDefault(original)
    // A box that is being looked at this very moment is passed over on PostgreSQL.
    await atRest(original)
    const startCopy = async (): Promise<Case> => {
      const store = await copy.open()
      undo.push(() => store.close())
      // Without sweeps: what they list of the original would stop it a second time, and later.
      const one = await cases.open(store, { path, mode: 'off', start: false })
      await makeDefault(one)
      // The clock stands still: what it made at once would be of the very millisecond of its stop.
      await store.write((tx) => tx.db.updateTable('fleets').set({ paused_at: tx.now }).execute())
      await one.engine.start()
      return one
    }
    return { original, startCopy, box }
  }
  const deadlineOf = (one: Case, { ref }: LeaseView): number | undefined =>
    one.cloud.database.all<{ deadline_at: number }>('select deadline_at from resources where ref = ?', ref)[0]?.deadline_at

  it(
    'gives out no box from before the stop and moves no clock of one, so nothing of the original’s leases ends (decisions 6)',
    { timeout: patience },
    async () => {
      const { original, startCopy, box } = await twins()
      const { lease } = await createLease(original.engine.context, ann, { fleet: 'ci', ttlSeconds: 3600, idleTimeoutSeconds: 3600 })
      expect(lease.instanceID).toBe(box)
      await atRest(original)
      const id = lease.cloudID as string
      const then = deadlineOf(original, lease)
      const copy = await startCopy()
      await copy.advance(60)
      await scaleFleet(copy.engine.context, root, 'ci', { paused: false })
      await until(async () => (await fleetIn(copy))?.ready === 1, 'the copy has a fresh box ready instead', patience / 2)
      await atRest(copy)
      expect(await fleetIn(copy)).toMatchObject({
        ready: 1,
        setAside: 1,
        setAsideWhy: expect.stringContaining('started elsewhere') as string,
      })
      const told = await explainKey(copy.engine.context, root, 'default/ci', new AbortController().signal)
      expect(JSON.stringify(told)).toContain('it is set aside, neither given out nor counted: a stop of all removals')
      for (let i = 0; i < 2; i++) {
        const other = await createLease(copy.engine.context, ann, { fleet: 'ci', ttlSeconds: 60, idleTimeoutSeconds: 60 })
        expect(other.lease.instanceID).not.toBe(box)
        // The first one had the fresh box; what is behind it may be there already, or is made.
        if (other.lease.state === 'provisioning')
          expect(other.warnings.join()).toMatch(/1 box that is not given out \(a stop of all removals/)
      }
      expect(deadlineOf(original, lease)).toBe(then)
      for (const each of [copy, original]) await each.advance(120)
      await atRest(copy)
      expect([original.isRunning(id), (await original.leaseView(lease.id)).state]).toEqual([true, 'active'])
    },
  )

  it('the twin: what it made since is its own, is given out and has its clock moved', { timeout: patience }, async () => {
    const { original, startCopy, box } = await twins()
    await original.stop()
    const copy = await startCopy()
    await copy.advance(60)
    await createFleet(copy.engine.context, root, { name: 'fresh', size: 1, ttlSeconds: hourSeconds })
    const made = await until(
      async () => (await instancesOf(copy.store)).find((row) => row.fleet === 'fresh' && row.state === 'idle' && row.lock_owner === null),
      'it made one',
    )
    expect(made.id).not.toBe(box)
    const { lease } = await createLease(copy.engine.context, ann, { fleet: 'fresh', ttlSeconds: 60, idleTimeoutSeconds: 60 })
    expect(lease).toMatchObject({ state: 'active', instanceID: made.id })
    const armed = Date.parse(lease.createdAt) + 61_000
    await until(() => deadlineOf(copy, lease) === armed, 'its clock is that of the lease')
  })

  it('leaves the clock of what a release retained as it is, while it may be a copy', { timeout: patience }, async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    await releaseLease(one.engine.context, ann, lease.id, { delete: false })
    const lookedAt = async (seconds: number): Promise<number | undefined> => {
      await one.advance(seconds)
      await until(async () => {
        const row = await one.store.read(({ db }) =>
          db
            .selectFrom('leases')
            .selectAll()
            .where('id', '=', lease.id as never)
            .executeTakeFirst(),
        )
        return row?.lock_owner === null && (row.due_at ?? 0) > (await one.store.now())
      }, 'it was looked at')
      return deadlineOf(one, lease)
    }
    await lookedAt(3600)
    const then = (await one.store.now()) + 24 * hourSeconds * 1000
    await until(() => deadlineOf(one, lease) === then, 'its clock is moved while nothing stops it')
    await one.store.write((tx) => addStop(tx, { scope: '*', code: 'elsewhere', why: 'a test says so', evidence: '{}', epoch: null }))
    await lookedAt(7200)
    expect(await lookedAt(7200)).toBe(then)
    // The twin: once a person has said that this one goes on, it is moved again.
    await adopt(one)
    await lookedAt(7200)
    await until(() => (deadlineOf(one, lease) ?? 0) > then, 'its clock is moved')
  })

  it('adopted it gives nobody a box from before the stop that it has not wiped (decisions 6)', { timeout: patience }, async () => {
    const { original, startCopy, box } = await twins()
    const { lease } = await createLease(original.engine.context, ann, { fleet: 'ci', ttlSeconds: 3600, idleTimeoutSeconds: 3600 })
    expect(lease.instanceID).toBe(box)
    const id = lease.cloudID as string
    original.cloud.leave(id, 'of a holder that only the original knows')
    await atRest(original)
    await original.stop()
    const copy = await startCopy()
    await adopt(copy)
    const next = await createLease(copy.engine.context, ann, { fleet: 'ci', ttlSeconds: 600 })
    expect(next.lease.instanceID === box ? copy.cloud.contents(id) : []).toEqual([])
    await until(async () => (await instancesOf(copy.store)).some((row) => row.id === box && row.state === 'idle'), 'it is wiped')
    expect(copy.cloud.contents(id)).toEqual([])
    expect((await eventsOf(copy.store, 'fleet.box-returned')).map((one) => one['cloudId'])).toContain(id)
    await until(async () => (await fleetIn(copy))?.setAside === 0, 'nothing is set aside any more')
  })

  it(
    'adopted it holds a box whose holder here has said nothing since, for as long as another may have it, and no longer',
    { timeout: patience },
    async () => {
      const { original, startCopy } = await twins()
      await original.stop()
      const copy = await startCopy()
      // As if it had been taken before the copy was made: what the copy knows of it is no younger than its stop.
      const silent = await taken(copy)
      const heard = await taken(copy)
      await copy.advance(60)
      await createHeartbeat(copy.engine.context)(ann, heard.id, {})
      await adopt(copy)
      const holds = await listHolds(copy.engine.context, root)
      expect(holds).toMatchObject([{ targetType: 'instance', targetID: silent.instanceID, createdBy: 'system' }])
      expect(Date.parse(holds[0]?.until ?? '') - (await copy.store.now())).toBe(24 * hourSeconds * 1000)
      // Both are over: one goes, the other stays with what is in it.
      await copy.advance(900)
      await copy.gone(heard.cloudID)
      const held = await until(async () => {
        const { cleanup } = await copy.leaseView(silent.id)
        return cleanup.state === 'held' ? cleanup : undefined
      }, 'its removal is held')
      expect([held.heldBy, copy.isRunning(silent.cloudID)]).toEqual([`hold ${holds[0]?.id}`, true])
      await copy.advanceUntil(() => !copy.isRunning(silent.cloudID), 'it goes when its hold has ended', 6 * hourSeconds)
    },
  )
})
