/** What a lease says of a fleet's box, on which nothing of it is written. */
import { afterEach, expect, it } from 'vitest'
import { createFleet } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, openCases } from '../cases/support.ts'

eachStore('a box of a fleet whose record has ended by mistake', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it.each([{ keep: true }, { labels: { 'do-not-delete': 'true' } }])(
    'is protected from what sweeps find by %j of its lease, and without it is not (decisions 4)',
    async (input) => {
      const one = await cases.open(await open())
      await createFleet(one.engine.context, root, { name: 'ci', size: 0 })
      const kept = await one.orphan({ fleet: 'ci', ...input })
      const twin = await one.orphan({ fleet: 'ci' })
      for (let i = 0; i < 3; i++) await one.sweep(graceSeconds + 60)
      await one.gone(twin.cloudID)
      expect([one.isRunning(kept.cloudID), await one.told()]).toEqual([true, [`protected ${kept.cloudID}`]])
    },
  )
})
