/** A sweep took back what stood beside an attempt's recorded machine: that says nothing of the machine. */
import { afterEach, expect, it } from 'vitest'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { readReceipt } from '../../../src/engine/receipt/index.ts'
import { root } from '../../support/engine.ts'
import { graceSeconds, openCases, type Case } from '../cases/support.ts'
import { findings, groupOn, progress, release, removals, removalOf, removalWhen, vanish } from './support.ts'

eachStore('what a sweep found beside a recorded machine', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  /** Given up, and from then on kept by a person or not; a disk of the same attempt is found by a listing that does not show the machine yet. */
  const diskAlone = async (kept: boolean): Promise<{ one: Case; machine: string; disk: string }> => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    one.cloud.rearm(lease.cloudID, 365 * 86_400_000)
    one.hooks.remove = async () => ({ kind: 'unknown', error: 'no answer' })
    await release(one, lease)
    await one.store.write((tx) => tx.db.updateTable('removals').set({ cause: 'create-interrupted' }).execute())
    await one.advanceUntil(async () => (await removals(one))[0]?.state === 'gave-up', 'it is given up', 60)
    one.hooks.remove = undefined
    if (kept) one.cloud.setTags(lease.cloudID, { ...one.cloud.get(lease.cloudID)?.tags, keep: 'true' })
    const disk = await one.launch(lease, 'disk')
    one.fault('list', 'lag', { kind: 'machine', lengthMs: 7_200_000 })
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await until(() => !one.isRunning(disk.id), 'the disk goes')
    await removalWhen(one, 'it is left to sweeps', (row) => row.state === 'gave-up' && row.lock_owner === null)
    return { one, machine: lease.cloudID, disk: disk.id }
  }

  it('never brings the machine up by the ended entrance, and its keep label holds; without it sweeps take it after their quarantine (leases R44, decisions)', async () => {
    for (const kept of [true, false]) {
      const { one, machine, disk } = await diskAlone(kept)
      const left = await removalOf(one)
      expect(progress(left)).toEqual([disk])
      expect(left.error).toContain(`${machine}, which its attempt recorded, is not proved gone`)
      expect((await one.events('removal.left-to-sweeps')).length).toBe(1)
      expect(await one.events('removal.overtaken')).toEqual([])
      expect(one.isRunning(machine)).toBe(true)
      await one.advance(7_200)
      await one.sweep()
      expect(one.isRunning(machine)).toBe(true)
      await one.sweep(graceSeconds + 60)
      if (kept) {
        expect(await one.told()).toContain(`protected ${machine}`)
        expect(one.isRunning(machine)).toBe(true)
        continue
      }
      await one.gone(machine)
      const row = await removalWhen(one, 'all of it is gone', (now) => now.state === 'gone')
      expect(row.id).toBe(left.id)
      expect(progress(row)).toEqual([disk, machine])
      expect(await findings(one)).toEqual([])
    }
  })

  it('is over once the machine goes by other hands: a look proves it (orphans R91)', async () => {
    const { one, machine } = await diskAlone(true)
    vanish(one, machine)
    await one.advanceUntil(async () => (await removalOf(one)).state === 'gone', 'a look finds it gone', 300)
    expect((await one.store.read(({ db }) => db.selectFrom('instances').select('state').executeTakeFirstOrThrow())).state).toBe(
      'terminated',
    )
  })

  it('is one removal where the machine went before its group was bound: gone, with the proof of its absence (leases R44, R90)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { lease, ids } = await groupOn(one)
    vanish(one, ids.machine)
    await one.advance(60)
    await release(one, lease)
    const row = await removalWhen(one, 'the rest is gone', (now) => now.state === 'gone')
    expect(await removals(one)).toHaveLength(1)
    expect(progress(row)).toEqual([ids.nic, ids.ip, ids.disk])
    expect((await one.attemptOf(lease)).outcome).toBe('absent')
    expect(await one.events('removal.overtaken')).toEqual([])
    const receipt = await readReceipt(one.engine.context, root, lease.id)
    expect(receipt.removals).toHaveLength(1)
    expect(receipt.removals[0]).toMatchObject({ verdict: 'deleted', missing: [] })
    expect(receipt.removals[0]?.proofs.map((proof) => proof.resource?.nativeID)).toEqual([ids.machine, ids.nic, ids.ip, ids.disk])
  })
})
