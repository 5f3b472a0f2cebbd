/** A create's late answer names another machine than the one that is just being taken back. */
import { afterEach, expect, it } from 'vitest'
import { applyCreated } from '../../../src/engine/provision-call.ts'
import { loadProvision } from '../../../src/engine/provision-load.ts'
import type { ScopeId } from '../../../src/model/ids.ts'
import { gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from '../cases/support.ts'
import { release, removals } from './support.ts'

eachStore('a removal that fresh identity overtakes', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('is not the end of its attempt: what arrived is kept and taken back too, whoever wrote it; without it, it is (leases R44)', async () => {
    for (const late of [true, false]) {
      const one = await cases.open(await open())
      const lease = await one.lease()
      const stalled = gate()
      one.hooks.remove = async (_, real) => {
        const answer = await real()
        await stalled.promise
        return answer
      }
      await release(one, lease)
      await until(() => one.count('remove') === 1, 'it is asked for')
      one.hooks.remove = undefined
      const other = late ? await one.launch(lease, 'machine', { token: null }) : undefined
      if (other) {
        const attempt = await one.attemptOf(lease)
        // By a worker that lost its lock long ago.
        await one.store.write(async (tx) => {
          const work = await loadProvision(tx, lease.instanceID, tx.now)
          if (!work) throw new Error('no instance')
          const identity = {
            scope: attempt.scope as ScopeId,
            location: 'sim-a',
            kind: 'machine',
            nativeId: other.id,
            immutableId: other.id,
          }
          await applyCreated(tx, { id: lease.instanceID, fence: 0, owner: 'dead' } as never, work, { ...identity, facts: {} }, true)
        })
      }
      stalled.open()
      await until(async () => (await removals(one)).every((row) => ['gone', 'closed'].includes(row.state)), 'nothing is open')
      const rows = await removals(one)
      expect(rows.map((row) => `${row.cause} ${row.state} ${row.closed_by}`)).toEqual(
        late ? ['released closed system', 'released gone null'] : ['released gone null'],
      )
      expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual(
        other ? [lease.cloudID, other.id] : [lease.cloudID],
      )
      expect(one.running()).toEqual([])
      expect((await one.events('removal.overtaken')).length).toBe(late ? 1 : 0)
      expect((await one.leaseView(lease.id)).cleanup.state).toBe('gone')
      expect((await one.attemptOf(lease)).outcome).toBe('absent')
      const instance = await one.store.read(({ db }) => db.selectFrom('instances').selectAll().executeTakeFirstOrThrow())
      expect(instance.state).toBe('terminated')
    }
  })

  it('is none where the removal is of what else an attempt made, and its machine was proved gone before (leases R44)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const disk = await one.launch(lease, 'disk')
    await release(one, lease)
    await until(async () => (await removals(one))[0]?.state === 'gone', 'the machine is gone')
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(disk.id)
    expect((await removals(one)).map((row) => row.state)).toEqual(['gone', 'gone'])
    expect(await one.events('removal.overtaken')).toEqual([])
  })
})
