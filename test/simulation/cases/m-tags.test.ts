/** Class M: what people wrote on a resource is theirs. */
import { afterEach, expect, it } from 'vitest'
import { createHeartbeat, releaseLease } from '../../../src/engine/leases/index.ts'
import { ann } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { openCases } from './support.ts'

eachStore('tags of people', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('are as they were after everything that may happen to a living machine, also where the coordinator dies in between (case M9)', async () => {
    const one = await cases.open(await open(), { mode: 'report' })
    const live = await one.lease()
    const orphan = await one.orphan()
    const tags = (id: string) => one.cloud.get(id)?.tags
    for (const { cloudID } of [live, orphan]) one.cloud.setTags(cloudID, { ...tags(cloudID), team: 'x', note: 'mine' })
    const before = [tags(live.cloudID), tags(orphan.cloudID)]
    expect(before[0]).toMatchObject({ team: 'x' })
    await createHeartbeat(one.engine.context)(ann, live.id, {})
    for (let i = 0; i < 2; i++) await one.sweep(60)
    await one.restart()
    await one.sweep(60)
    await releaseLease(one.engine.context, ann, live.id, { delete: false })
    await one.sweep(60)
    expect([tags(live.cloudID), tags(orphan.cloudID)]).toEqual(before)
    expect(one.isRunning(live.cloudID) && one.isRunning(orphan.cloudID)).toBe(true)
  })
})
