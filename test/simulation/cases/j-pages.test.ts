/** Class J: pagination and eventual consistency. */
import { afterEach, expect, it } from 'vitest'
import type { LaunchSpec } from '../../../src/providers/simulated/cloud.ts'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, openCases } from './support.ts'

const stranger = (index: number): LaunchSpec => ({
  kind: 'machine',
  location: 'sim-a',
  name: `stranger-${index}`,
  tags: { leasehold_ref: `r${String(index).padStart(11, '0')}` },
})
const strangers = (count: number): LaunchSpec[] => Array.from({ length: count }, (_, index) => stranger(index))

eachStore('pages', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('2,500 resources in pages of 1,000 are all listed, and what is on the last page is seen (case J1, J2)', async () => {
    const one = await cases.open(await open(), { config: { pageSize: 1_000 } })
    one.cloud.launch(strangers(2_498))
    const live = await one.lease()
    const orphan = await one.orphan()
    const view = await one.sweep()
    expect(view.counts).toMatchObject({ listed: 2_500, expected: 1, seen: 1 })
    expect(view.cells.find((cell) => cell.location === 'sim-a' && cell.kind === 'machine')).toMatchObject({ pages: 3, state: 'complete' })
    expect(view.verdicts).toEqual({ 'foreign.unknown-ref': 2_498, 'orphan.owner-ended': 1 })
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    expect(one.isRunning(live.cloudID)).toBe(true)
    expect(one.running()).toHaveLength(2_499)
  })

  it('what comes and goes while the pages are read makes nothing of ours missing, and is no orphan (case J4)', async () => {
    const one = await cases.open(await open(), { config: { pageSize: 10 } })
    const others = one.cloud.launch(strangers(100)).resources.map((resource) => resource.id)
    const live = []
    for (let i = 0; i < 6; i++) live.push(await one.lease())
    const made: string[] = []
    let pages = 0
    one.hooks.item = async (item) => {
      if (item.type !== 'page') return
      pages++
      for (const id of others.splice(0, 1)) one.cloud.end(id)
      for (const id of others.splice(-1)) one.cloud.end(id)
      if (pages % 5 === 0) made.push((await one.lease()).cloudID)
    }
    for (let i = 0; i < 3; i++) {
      const view = await one.sweep(graceSeconds)
      expect(view.cells.every((cell) => cell.state === 'complete')).toBe(true)
      expect(view.counts.seen).toBe(view.counts.expected)
    }
    one.hooks.item = undefined
    expect(made.length).toBeGreaterThan(2)
    expect(await one.told()).toEqual([])
    for (const id of [...live.map((lease) => lease.cloudID), ...made]) expect(one.isRunning(id)).toBe(true)
    expect(one.count('remove')).toBe(0)
  })

  it('a page that is repeated counts once, and one that says the next is itself does not go round for ever (case J4)', async () => {
    const one = await cases.open(await open(), { config: { pageSize: 2 } })
    for (let i = 0; i < 5; i++) await one.lease()
    one.fault('list', 'repeat-page', { page: 2 })
    const view = await one.sweep()
    expect(view).toMatchObject({ outcome: 'clean', counts: { listed: 5, expected: 5, seen: 5 } })
  })

  it('an empty list right after a create leaves the row bound, and nothing is made twice (case J5)', async () => {
    const one = await cases.open(await open())
    one.fault('list', 'lag', { lengthMs: 60_000 })
    const lease = await one.lease()
    for (let i = 0; i < 5; i++) await one.sweep(10)
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'active', cloudID: lease.cloudID })
    expect(await one.attemptOf(lease)).toMatchObject({ outcome: 'bound', immutable_id: lease.cloudID })
    await one.sweep(60)
    expect(await one.told()).toEqual([])
    expect(one.count('create')).toBe(1)
    expect(one.running()).toEqual([lease.cloudID])
  })

  it('the twin: one that is really gone is found missing (case J5)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    one.cloud.end(lease.cloudID)
    await one.sweep()
    await one.sweep()
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'failed', failureCode: 'resource_missing' })
  })
})
