/** Class L: dependencies and cascades. */
import { afterEach, expect, it } from 'vitest'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import { ann } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from './support.ts'

eachStore('dependencies', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('two that stand on each other are told as blocked by each other, by name, and never tried (case L1)', async () => {
    const one = await cases.open(await open())
    const lease = await one.orphan()
    const [first, second] = [await one.launch(lease, 'disk'), await one.launch(lease, 'disk')]
    one.cloud.end(lease.cloudID)
    one.cloud.attach({ member: first.id, target: second.id, onEnd: 'keep' })
    one.cloud.attach({ member: second.id, target: first.id, onEnd: 'keep' })
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds + 60)
    expect(await one.told()).toEqual([`protected ${first.id}`])
    expect(JSON.stringify(await one.open())).toContain(`blocked by each other: disk ${first.id}, disk ${second.id}`)
    expect(one.count('remove')).toBe(0)
    expect(one.running()).toEqual([first.id, second.id])
    // The twin: when a person has broken the ring both go, in one removal.
    one.cloud.database.run('delete from attachments')
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(first.id)
    await one.gone(second.id)
    const removals = await one.store.read(({ db }) => db.selectFrom('removals').selectAll().execute())
    expect(removals.map((row) => row.state)).toEqual(['gone'])
  })

  it('a release whose machine stands in a ring of its own waits for a person, who is told the names (case L1)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const disk = await one.launch(lease, 'disk')
    one.cloud.attach({ member: disk.id, target: lease.cloudID, onEnd: 'keep' })
    one.cloud.attach({ member: lease.cloudID, target: disk.id, onEnd: 'keep' })
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(async () => (await one.told()).length > 0, 'a person is told')
    const [finding] = await one.open()
    expect(finding).toMatchObject({ code: 'removal-needs-person' })
    expect(finding?.message).toBe(`blocked by each other: machine ${lease.cloudID}, disk ${disk.id}`)
    for (let i = 0; i < 6; i++) await one.advance(3600)
    expect(one.count('remove')).toBe(0)
    expect(one.running()).toEqual([lease.cloudID, disk.id])
  })

  it('a named machine goes and no other, also where many bear the same name (case L4)', async () => {
    const one = await cases.open(await open())
    const living = [await one.lease(), await one.lease(), await one.lease()]
    const orphan = await one.orphan()
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual([orphan.cloudID])
    expect(one.running()).toEqual(living.map((lease) => lease.cloudID))
  })

  it('a disk that would be deleted with its machine makes the group report-only (case L5)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full', cascade: 'delete' } })
    const orphan = await one.orphan()
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(await one.told()).toEqual([`protected ${orphan.cloudID}`])
    expect([one.running().length, one.count('remove')]).toEqual([4, 0])
  })

  it('an address that somebody else’s machine lives by is not taken, although our attempt made it, and goes when that is over (case L2)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const nic = await one.launch(orphan, 'nic')
    const theirs = one.cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'balancer', tags: { team: 'x' } }]).resources[0]
    one.cloud.attach({ member: nic.id, target: theirs?.id ?? '', onEnd: 'keep' })
    for (let i = 0; i < 4; i++) await one.sweep(graceSeconds)
    expect(one.isRunning(nic.id)).toBe(true)
    expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).not.toContain(nic.id)
    // One attempt made both, so they are one group, and what protects one protects all of it.
    expect(await one.told()).toEqual([`protected ${orphan.cloudID}`])
    // The twin: with nobody living by it, it goes.
    one.cloud.database.run('delete from attachments')
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds + 60)
    await one.gone(nic.id)
    await one.gone(orphan.cloudID)
    expect(one.isRunning(theirs?.id ?? '')).toBe(true)
  })

  it('what somebody attached to an orphan, or it to something of theirs, makes it report-only while that stands (case L5, leases 16)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const theirs = one.cloud.launch([{ kind: 'disk', location: 'sim-a', name: 'data', tags: { team: 'x' } }]).resources[0]
    await one.sweep()
    one.cloud.attach({ member: theirs?.id ?? '', target: orphan.cloudID, onEnd: 'delete' })
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(await one.told()).toEqual([`protected ${orphan.cloudID}`])
    expect(one.isRunning(orphan.cloudID)).toBe(true)
    // The twin: detached, its quarantine begins afresh, and it goes.
    one.cloud.database.run('delete from attachments')
    await one.sweep()
    expect(one.isRunning(orphan.cloudID)).toBe(true)
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    expect(one.isRunning(theirs?.id ?? '')).toBe(true)
  })
})
