/** Blast radius and quarantine as people meet them: many at once, and a switch to `delete` after a time of reports. */
import { afterEach, expect, it } from 'vitest'
import { approvePlan, listPlans } from '../../../src/engine/admin/index.ts'
import type { Actor } from '../../../src/engine/actor.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from './support.ts'

const bea: Actor = { name: 'bea', role: 'approver', project: 'default', onlyLease: null }
const opal: Actor = { name: 'opal', role: 'operator', project: 'default', onlyLease: null }

eachStore('plans and quarantine', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('60 orphans under a limit of 10: none goes; approved by its hash by another token, exactly those that did not change go (I8, case C7)', async () => {
    const one = await cases.open(await open())
    const live = await one.lease()
    const orphans = []
    for (let i = 0; i < 60; i++) orphans.push((await one.orphan()).cloudID)
    await one.sweep()
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(one.count('remove')).toBe(0)
    const [plan] = await listPlans(one.engine.context, opal, { limit: 10 })
    expect(plan).toMatchObject({ state: 'waiting', madeBy: 'system' })
    expect(plan?.removals).toHaveLength(60)
    await expect(approvePlan(one.engine.context, opal, plan?.id ?? '', 'r')).rejects.toThrow(/role approver/)
    // Since it was made: three of them changed, and one more turned up.
    const changed = orphans.splice(0, 3)
    for (const id of changed) one.cloud.setTags(id, { ...one.cloud.get(id)?.tags, team: 'x' })
    const late = (await one.orphan()).cloudID
    await approvePlan(one.engine.context, bea, plan?.id ?? '', 'looked through')
    const spared = [live.cloudID, late, ...changed].toSorted()
    await until(() => one.running().length === spared.length, 'the others go', 60_000)
    expect(one.running().toSorted()).toEqual(spared)
    expect(new Set(one.calls.filter((call) => call.op === 'remove').map((call) => call.id))).toEqual(new Set(orphans))
  })

  it('reports are counted towards the quarantine, and what changed since is not taken at once when delete is turned on (leases R58, R59, R67, R69)', async () => {
    const one = await cases.open(await open(), { mode: 'report' })
    const [same, changed] = [(await one.orphan()).cloudID, (await one.orphan()).cloudID]
    await one.lease()
    await one.sweep()
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    one.cloud.setTags(changed, { ...one.cloud.get(changed)?.tags, team: 'x' })
    one.settings.mode = 'delete'
    await one.sweep(graceSeconds)
    await one.gone(same)
    expect(one.isRunning(changed)).toBe(true)
    // Its own time begins with the change: a failed look in between counts for nothing.
    one.fault('list', 'fail-page', { count: 1 })
    await one.sweep(graceSeconds + 60)
    expect(one.isRunning(changed)).toBe(true)
    await one.sweep()
    await one.gone(changed)
  })
})
