/** A cascade that was bound explains a missing member only while it stands (leases R80). */
import { afterEach, expect, it } from 'vitest'
import { eachStore } from '../../support/stores.ts'
import { getRemoval } from '../../../src/engine/admin/index.ts'
import { readReceipt } from '../../../src/engine/receipt/index.ts'
import { root } from '../../support/engine.ts'
import { openCases, type Case } from '../cases/support.ts'
import { acknowledge, findings, groupOn, isStopped, progress, release, removalWhen, vanish, type Ids } from './support.ts'

eachStore('a member that was to go with its machine', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  const cascading = async (): Promise<{ one: Case; ids: Ids; go: () => Promise<unknown> }> => {
    const one = await cases.open(await open(), { config: { group: 'full', cascade: 'delete' } })
    const { lease, ids } = await groupOn(one)
    return { one, ids, go: () => release(one, lease) }
  }
  const off = (one: Case): unknown => one.cloud.database.run("update attachments set on_end = 'keep'")

  it('and went with it is explained; where the cascade was off by the read before the call it is not (leases R80)', async () => {
    for (const turned of [true, false]) {
      const { one, ids, go } = await cascading()
      let reads = 0
      one.hooks.read = async (resource, real) => {
        // The first is for the binding.
        if (resource.kind === 'machine' && ++reads === 2 && turned) off(one)
        return real()
      }
      one.hooks.remove = async (resource, real) => {
        const answer = await real()
        if (resource.kind === 'machine' && turned) for (const id of [ids.nic, ids.disk]) if (one.isRunning(id)) vanish(one, id)
        return answer
      }
      await go()
      if (!turned) {
        const row = await removalWhen(one, 'it is gone', (now) => now.state === 'gone')
        expect(progress(row)).toContain(ids.disk)
        continue
      }
      const row = await removalWhen(one, 'it stops', isStopped)
      expect(row.error).toContain(`disk ${ids.disk}`)
      expect(row.error).toContain('nothing of ours explains it')
      expect(progress(row)).toEqual([ids.machine])
      expect(await findings(one)).toEqual(['unexplained-absence'])
    }
  })

  it('and was read after its machine was proved gone is not explained by it (leases R80)', async () => {
    const { one, ids, go } = await cascading()
    one.hooks.remove = async (resource, real) => {
      // The cascade fails without a word.
      if (resource.kind === 'machine') off(one)
      const answer = await real()
      if (resource.kind === 'nic') vanish(one, ids.disk)
      return answer
    }
    await go()
    const row = await removalWhen(one, 'it stops', isStopped)
    expect(row.error).toContain(`disk ${ids.disk} of its group is gone, and nothing of ours explains it`)
    expect(progress(row)).toEqual([ids.machine, ids.nic])
  })

  it('and that others took is claimed by no headline, and left by no removal that is closed; the twin claims all (leases R80, I7)', async () => {
    for (const taken of [true, false]) {
      const { one, ids, go } = await cascading()
      one.hooks.remove = async (resource, real) => {
        if (resource.kind === 'machine' && taken) off(one)
        const answer = await real()
        if (resource.kind === 'nic') vanish(one, ids.disk)
        return answer
      }
      await go()
      if (taken) {
        const stopped = await removalWhen(one, 'it stops', isStopped)
        expect((await getRemoval(one.engine.context, root, stopped.id)).left).toEqual([expect.stringContaining(ids.ip)])
        await acknowledge(one, 'taken over')
      }
      const row = await removalWhen(one, 'it is gone', (now) => now.state === 'gone')
      const { summary } = await readReceipt(one.engine.context, root, row.id)
      const [ours = '', others = ''] = summary.split('; by no call of ours: ')
      expect(ours).toContain(ids.machine)
      expect(ours.slice(0, ours.indexOf(' was deleted')).includes(ids.disk)).toBe(!taken)
      expect(others).toBe(taken ? `disk simulated/sim-a/${ids.disk}` : '')
    }
  })
})
