/** Class F: what is gone already is neither an error nor work. */
import { afterEach, expect, it } from 'vitest'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import type { ListedResource } from '../../../src/providers/contract.ts'
import { ann } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from './support.ts'

eachStore('what is gone already', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('a listing without the optional facts makes nothing fall over: what can not be told is protected (case F2)', async () => {
    const one = await cases.open(await open())
    const live = await one.lease()
    const orphan = await one.orphan()
    const bare: Partial<ListedResource> = { name: '', createdAt: null, labels: null, attachedTo: [], providerState: '' }
    one.hooks.list = (items) =>
      items.map((item) =>
        item.type === 'page'
          ? {
              ...item,
              resources: item.resources.map((seen) => ({ ...seen, ...bare, tags: { ...seen.tags, installation: null, attempt: null } })),
            }
          : item,
      )
    for (let i = 0; i < 3; i++) expect((await one.sweep(graceSeconds)).outcome).not.toBe('failed')
    expect(one.running()).toEqual([live.cloudID, orphan.cloudID])
    expect((await one.open()).map((row) => row.code)).not.toContain('orphan')
    // The twin: with all of them it goes, and only it.
    one.hooks.list = undefined
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    expect(one.running()).toEqual([live.cloudID])
  })

  it('one that ended is listed for an hour more, and is neither a candidate nor counted again (case F3)', async () => {
    const one = await cases.open(await open(), { config: { terminatedSeconds: 3_600 } })
    const orphan = await one.orphan()
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    for (let i = 0; i < 3; i++) {
      const view = await one.sweep(600)
      expect(view).toMatchObject({ outcome: 'clean', verdicts: {}, plan: null, counts: { listed: 1 } })
    }
    expect(one.count('remove')).toBe(1)
    expect(await one.events('removal.gone')).toHaveLength(1)
    await one.advance(3_600)
    expect((await one.sweep()).counts.listed).toBe(0)
  })

  it('a machine that was preempted is settled at the first look, without a call to remove it (case F5)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    one.cloud.end(lease.cloudID)
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is settled')
    expect(one.count('remove')).toBe(0)
    expect((await one.leaseView(lease.id)).cleanup.attempts ?? 0).toBe(0)
  })

  it('one that ends between the read and the call is settled by the answer, once (case F5)', async () => {
    const one = await cases.open(await open())
    const [first, second] = [await one.lease(), await one.lease()]
    one.hooks.remove = async (resource, real) => {
      if (resource.nativeId === first.cloudID) one.cloud.end(first.cloudID)
      return real()
    }
    await releaseLease(one.engine.context, ann, first.id, {})
    await releaseLease(one.engine.context, ann, second.id, {})
    for (const lease of [first, second]) await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is settled')
    expect([one.count('remove', first.cloudID), one.count('remove', second.cloudID)]).toEqual([1, 1])
    expect(await one.events('removal.failed')).toEqual([])
  })
})
