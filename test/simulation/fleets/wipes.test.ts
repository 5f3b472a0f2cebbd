/** A box of a fleet that is given back, by a process that is killed or stalled at every one of its steps. */
import { afterEach, expect, it } from 'vitest'
import { createFleet } from '../../../src/engine/admin/index.ts'
import { createLease, releaseLease } from '../../../src/engine/leases/index.ts'
import type { LeaseView } from '../../../src/model/wire.ts'
import type { InstanceRow } from '../../../src/store/instances.ts'
import { ann, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { openCases, type Case } from '../cases/support.ts'
import { startProcess, type Process } from '../removals/dying.ts'

/** More than a wipe has. */
const mostSteps = 14
const patience = 240_000

type Leased = LeaseView & { cloudID: string }

eachStore('a box of a fleet that is given back', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  /** Leases with a box of the fleet each, and something left in it; the engine that made them does not run any more. */
  const world = async (): Promise<{ one: Case; leases: Leased[] }> => {
    const one = await cases.open(await open())
    await createFleet(one.engine.context, root, { name: 'ci', size: 0 })
    const leases = await Promise.all(
      Array.from({ length: mostSteps }, () => one.lease({ fleet: 'ci', ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })),
    )
    await one.engine.stop(0)
    await one.store.write((tx) => tx.db.updateTable('fleets').set({ paused_at: tx.now, due_at: null }).execute())
    for (const lease of leases) one.cloud.leave(lease.cloudID, `secret of ${lease.id}`)
    return { one, leases }
  }
  const instanceOf = async (one: Case, lease: LeaseView): Promise<InstanceRow> =>
    one.store.read(({ db }) =>
      db
        .selectFrom('instances')
        .selectAll()
        .where('id', '=', lease.instanceID as never)
        .executeTakeFirstOrThrow(),
    )

  /** Whatever else happens: what could be given out has nothing in it. */
  const expectNothingLeaks = async (one: Case, what: string): Promise<void> => {
    const idle = await one.store.read(({ db }) =>
      db
        .selectFrom('instances')
        .innerJoin('attempts', 'attempts.id', 'instances.attempt_id')
        .select('attempts.native_id')
        .where('instances.state', '=', 'idle')
        .execute(),
    )
    for (const { native_id: id } of idle) expect(one.cloud.contents(id ?? ''), what).toEqual([])
  }

  /** Passes until the box is ready again, or the process is struck; the clock goes on to whatever is due next of it. */
  const runToReady = async (one: Case, process: Process, lease: LeaseView): Promise<InstanceRow> => {
    for (let i = 0; i < 30; i++) {
      const row = await instanceOf(one, lease)
      if (
        process.isStruck() ||
        row.due_at === null ||
        (row.state === 'idle' && row.lock_owner === null && row.due_at > (await one.store.now()))
      )
        return row
      const now = await one.store.now()
      if (row.due_at > now) await one.advance((row.due_at - now) / 1000)
      await process.pass()
      await expectNothingLeaks(one, 'after a pass')
    }
    throw new Error(`the box of ${lease.id} does not come to rest`)
  }
  const giveBack = (one: Case, lease: LeaseView): Promise<LeaseView> => releaseLease(one.engine.context, ann, lease.id, {})

  it(
    'is wiped and ready again wherever the process was killed, and never given out before that (I3, I7)',
    async () => {
      const { one, leases } = await world()
      let at = 0
      for (const lease of leases) {
        await giveBack(one, lease)
        const dying = await startProcess(one, one.provider, { kind: 'killed', at }, 'instances')
        await runToReady(one, dying, lease)
        const name = dying.steps[at]
        await expectNothingLeaks(one, `killed at step ${at}, ${name}`)
        const survivor = await startProcess(one, one.provider, { kind: 'lives' }, 'instances')
        expect(await runToReady(one, survivor, lease), `killed at step ${at}, ${name}`).toMatchObject({
          state: 'idle',
          lease_id: null,
          wiping_since: null,
        })
        expect(one.cloud.contents(lease.cloudID)).toEqual([])
        expect(await one.leaseView(lease.id)).toMatchObject({ state: 'released', cleanup: { state: 'returned' } })
        if (name === undefined) break
        at++
      }
      expect(at).toBeGreaterThan(5)
      expect(at).toBeLessThan(mostSteps)
      expect(await one.store.read(({ db }) => db.selectFrom('removals').select('id').execute())).toEqual([])
    },
    patience,
  )

  it.each(['stalled-before', 'stalled-after'] as const)(
    'goes to its next holder although a process %s every step, and that one touches nothing of the new holder when it goes on (I3, I10)',
    async (kind) => {
      const { one, leases } = await world()
      let at = 0
      for (const lease of leases) {
        await giveBack(one, lease)
        const stalled = await startProcess(one, one.provider, { kind, at }, 'instances')
        await runToReady(one, stalled, lease)
        const name = stalled.steps[at]
        const what = `${kind} step ${at}, ${name}`
        const other = await startProcess(one, one.provider, { kind: 'lives' }, 'instances')
        expect(await runToReady(one, other, lease), what).toMatchObject({ state: 'idle', lease_id: null })
        const next = await createLease(one.engine.context, ann, { fleet: 'ci', ttlSeconds: 600 })
        expect(next.lease, what).toMatchObject({ state: 'active', instanceID: lease.instanceID })
        one.cloud.leave(lease.cloudID, 'of the new holder')
        stalled.resume()
        await Promise.all(stalled.begun)
        expect(one.cloud.contents(lease.cloudID), what).toEqual(['of the new holder'])
        expect(await instanceOf(one, lease), what).toMatchObject({ state: 'busy', lease_id: next.lease.id, wiping_since: null })
        expect(await one.store.read(({ db }) => db.selectFrom('removals').select('id').execute()), what).toEqual([])
        // Out of the way of the next round.
        await releaseLease(one.engine.context, ann, next.lease.id, { delete: false })
        if (name === undefined) break
        at++
      }
      expect(at).toBeGreaterThan(5)
    },
    patience,
  )
})
