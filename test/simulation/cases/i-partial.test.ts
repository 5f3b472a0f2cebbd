/** Class I: throttling, permission gaps, partial lists. */
import { afterEach, expect, it } from 'vitest'
import { deleteBackend } from '../../../src/engine/admin/index.ts'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import { ann, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from './support.ts'

eachStore('partial lists', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('a page that is throttled makes its cell incomplete, and what depends on it waits (case I1)', async () => {
    const one = await cases.open(await open(), { config: { pageSize: 1 } })
    const live = await one.lease()
    // Its machine would be on the page that fails, and the disk alone says nothing.
    const orphan = await one.orphan()
    const disk = await one.launch(orphan, 'disk')
    one.fault('list', 'throttle', { page: 2, kind: 'machine', location: 'sim-a' })
    for (let i = 0; i < 3; i++) {
      const view = await one.sweep(graceSeconds)
      expect(view).toMatchObject({ outcome: 'unsettled', verdicts: { 'unseen.owner-kind': 1 } })
      expect(view.cells.filter((cell) => cell.state !== 'complete')).toMatchObject([
        { location: 'sim-a', kind: 'machine', state: 'partial' },
      ])
    }
    expect(await one.told()).toEqual([])
    expect(one.running()).toEqual([live.cloudID, orphan.cloudID, disk.id])
    // The twin: listed whole, machine and disk are one group, and go one after the other.
    one.cloud.clearFaults()
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${orphan.cloudID}`])
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(disk.id)
    expect(one.running()).toEqual([live.cloudID])
  })

  it('a page that failed once does not lose the clock of what was on it (case I4)', async () => {
    const one = await cases.open(await open(), { config: { pageSize: 1 } })
    one.settings.graceMs = 24 * 3_600_000
    const orphan = await one.orphan()
    await one.sweep(6)
    for (let hour = 1; hour < 24; hour++) {
      if (hour === 23) one.fault('list', 'fail-page', { count: 1, kind: 'machine', location: 'sim-a' })
      await one.sweep(3_600)
      expect(one.isRunning(orphan.cloudID)).toBe(true)
    }
    await one.sweep(3_600)
    await one.gone(orphan.cloudID)
  })

  it('the twin: a page that fails at the very end takes nothing back, and the next whole one does (case I4)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    await one.sweep()
    await one.sweep(300)
    one.fault('list', 'fail-page', { count: 1, kind: 'machine', location: 'sim-a' })
    await one.sweep(graceSeconds)
    expect(one.isRunning(orphan.cloudID)).toBe(true)
    await one.sweep(60)
    await one.gone(orphan.cloudID)
  })

  it('what a list does not show yet is asked for by its id: nothing is missing, and a release needs no list (case I5)', async () => {
    const one = await cases.open(await open())
    one.fault('list', 'lag', { lengthMs: 90_000 })
    const lease = await one.lease()
    for (let i = 0; i < 3; i++) await one.sweep(20)
    expect(one.count('read', lease.cloudID)).toBeGreaterThan(0)
    expect((await one.leaseView(lease.id)).state).toBe('active')
    expect((await one.open()).map((row) => row.code)).toEqual(['not-seen'])
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is removed by its id')
    expect(one.running()).toEqual([])
    expect([one.count('create'), one.count('remove')]).toEqual([1, 1])
  })

  it('the twin: one that its id does not find either is missing (case I5)', async () => {
    const one = await cases.open(await open())
    one.fault('list', 'lag', { lengthMs: 90_000 })
    const lease = await one.lease()
    one.cloud.end(lease.cloudID)
    await one.sweep(20)
    await one.sweep(20)
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'failed', failureCode: 'resource_missing' })
  })

  it('a kind that may not be listed is in the certificate and told by its permission; the others are judged (case I7)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const nic = await one.launch(await one.lease(), 'nic')
    one.fault('list', 'denied', { kind: 'nic' })
    const view = await one.sweep()
    expect(view.cells.filter((cell) => cell.state === 'denied').map((cell) => [cell.location, cell.kind])).toEqual([
      ['sim-a', 'nic'],
      ['sim-b', 'nic'],
    ])
    expect(view.cells.filter((cell) => cell.state === 'complete')).toHaveLength(6)
    const denied = (await one.open()).filter((row) => row.code === 'denied-kind').map((row) => row.message)
    expect(denied.toSorted()).toEqual(['sim-a', 'sim-b'].map((place) => `nic in ${place} may not be listed: simulated:list:nic`))
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    expect(one.isRunning(nic.id)).toBe(true)
    // The twin: with the permission nothing is denied any more.
    one.cloud.clearFaults()
    await one.sweep()
    expect((await one.sweep()).outcome).toBe('clean')
    expect(await one.told()).toEqual([])
  })

  it('the credentials of a backend stay until nothing of ours is left there, also when the removal takes long (case I8)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    await expect(deleteBackend(one.engine.context, root, 'local', 'default')).rejects.toMatchObject({ code: 'in_use' })
    one.fault('delete', 'error-before')
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'failed', 'the removal fails')
    await deleteBackend(one.engine.context, root, 'local', 'default')
    const backends = () => one.store.read(({ db }) => db.selectFrom('backends').select(['name', 'config']).execute())
    await one.sweep()
    await one.sweep(graceSeconds)
    expect(await backends()).toMatchObject([{ name: 'local', config: expect.stringContaining('simulated.db') }])
    expect(one.isRunning(lease.cloudID)).toBe(true)
    // The twin: when the last is proved gone, the backend goes too.
    one.cloud.clearFaults()
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is removed', 300)
    await one.advanceUntil(async () => (await backends()).length === 0, 'the backend is drained', 900)
  })

  it('one kind whose endpoint never answers is bounded, and the others settle (case I10)', async () => {
    const one = await cases.open(await open())
    const live = await one.lease()
    const orphan = await one.orphan()
    one.fault('list', 'hang', { kind: 'ip', location: 'sim-b' })
    const view = await one.sweep()
    expect(view.outcome).toBe('unsettled')
    expect(view.cells.filter((cell) => cell.state !== 'complete')).toMatchObject([{ location: 'sim-b', kind: 'ip', state: 'partial' }])
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    expect(one.running()).toEqual([live.cloudID])
  })

  it('an idle project with one orphan: report, then delete: found, quarantined and taken back without any other activity', async () => {
    const one = await cases.open(await open(), { mode: 'report' })
    const orphan = await one.orphan()
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${orphan.cloudID}`])
    for (let i = 0; i < 3; i++) await one.scheduled()
    expect(one.isRunning(orphan.cloudID)).toBe(true)
    one.settings.mode = 'delete'
    const standing = (await one.open())[0]
    // A failed page in between neither counts nor resets.
    one.fault('list', 'fail-page', { count: 1, kind: 'machine', location: 'sim-a' })
    await one.scheduled()
    const [after] = await one.open()
    expect([after?.complete_sightings, after?.standing_since]).toEqual([standing?.complete_sightings, standing?.standing_since])
    expect(one.isRunning(orphan.cloudID)).toBe(true)
    await one.scheduled()
    await one.gone(orphan.cloudID)
    await one.scheduled()
    expect((await one.scheduled())?.outcome).toBe('clean')
  })

  it('a member that protects its group protects it also while its kind may not be listed (leases R68)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const nic = await one.launch(orphan, 'nic')
    const tags = one.cloud.get(nic.id)?.tags ?? {}
    one.cloud.setTags(nic.id, { ...tags, keep: 'true' })
    await one.sweep()
    expect(await one.told()).toEqual([`protected ${orphan.cloudID}`])
    one.fault('list', 'denied', { kind: 'nic' })
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds + 60)
    expect(one.count('remove')).toBe(0)
    expect(await one.told()).toContain(`protected ${orphan.cloudID}`)
    // The twin: seen again without its label, the group is found, and goes.
    one.cloud.database.run('delete from faults')
    one.cloud.setTags(nic.id, tags)
    await one.sweep(60)
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
  })
})
