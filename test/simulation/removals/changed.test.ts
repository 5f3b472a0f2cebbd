/** What changes between its fresh read and the call is refused by the provider itself, read again, and judged by what it is then (leases R91). */
import { afterEach, expect, it } from 'vitest'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from '../cases/support.ts'
import { chain, groupOn, progress, release, removalOf, removalWhen } from './support.ts'

eachStore('a removal of what changes right before its call', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('calls nothing gone: a member that is not as it was bound stays, and a person is told (leases R91)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { lease, ids } = await groupOn(one)
    one.hooks.remove = async (resource, real) => {
      if (resource.kind === 'disk') one.cloud.setTags(ids.disk, { ...one.cloud.get(ids.disk)?.tags, team: 'theirs' })
      return real()
    }
    await release(one, lease)
    const row = await removalWhen(one, 'it has failed', (now) => now.failures === 1)
    expect(row.error).toBe(`it is not what was bound: the labels of disk ${ids.disk} have changed`)
    expect(progress(row)).toEqual([ids.machine, ids.nic, ids.ip])
    expect(one.running()).toEqual([ids.disk])
    expect(one.count('remove', ids.disk)).toBe(1)
    expect((await chain(one)).slice(-2)).toEqual([`intent ${ids.disk}`, 'outcome changed'])
    expect(await one.told()).toEqual([`contradiction ${ids.disk}`])
  })

  it('of what is still ours goes on with a new intent and a new call, and counts as no failure; one that changes for ever fails (leases R91)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    let changes = 1
    one.hooks.remove = async (_, real) => {
      if (changes-- > 0) one.cloud.setTags(lease.cloudID, { ...one.cloud.get(lease.cloudID)?.tags, count: String(changes) })
      return real()
    }
    const reads = (): number => one.count('read', lease.cloudID)
    const before = reads()
    await release(one, lease)
    await removalWhen(one, 'it is gone', (row) => row.state === 'gone')
    expect(await chain(one)).toEqual([
      `intent ${lease.cloudID}`,
      'outcome changed',
      `intent ${lease.cloudID}`,
      'outcome gone',
      `proof ${lease.cloudID}`,
    ])
    expect(reads() - before).toBeGreaterThanOrEqual(2)
    expect(await one.events('removal.failed')).toEqual([])

    const other = await cases.open(await open())
    const second = await other.lease()
    let count = 0
    other.hooks.remove = async (_, real) => {
      other.cloud.setTags(second.cloudID, { ...other.cloud.get(second.cloudID)?.tags, count: String(count++) })
      return real()
    }
    await release(other, second)
    const failed = await removalWhen(other, 'it fails at last', (row) => row.failures === 1)
    expect(failed.error).toMatch(/it changed after it was read, and nothing was done/)
    expect(other.isRunning(second.cloudID)).toBe(true)
  })

  it('that a sweep ordered is dropped, to be judged afresh (leases R59, R91)', async () => {
    const one = await cases.open(await open())
    const { cloudID } = await one.orphan()
    one.hooks.remove = async (_, real) => {
      one.cloud.setTags(cloudID, { ...one.cloud.get(cloudID)?.tags, cost: 'unit-7' })
      return real()
    }
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await until(async () => (await one.events('removal.dropped')).length > 0, 'it is dropped')
    expect((await removalOf(one)).error).toMatch(/^dropped: /)
    expect(one.isRunning(cloudID)).toBe(true)
    expect(one.count('remove')).toBe(1)
  })
})
