/** A removal whose record can't be read here: refused untouched, told, and in nobody else's way (leases R89). */
import { sql } from 'kysely'
import { afterEach, expect, it } from 'vitest'
import { listRemovals } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases, type Case } from '../cases/support.ts'
import { removals } from './support.ts'

eachStore('the record of a removal', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  /** A sweep's removal that has failed once and waits. */
  const tried = async (): Promise<{ one: Case; id: string }> => {
    const one = await cases.open(await open())
    const { cloudID } = await one.orphan()
    await one.sweep()
    one.hooks.remove = async () => ({ kind: 'retryLater', why: 'busy', afterSeconds: null })
    await one.sweep(graceSeconds + 60)
    await until(async () => {
      const [row] = await removals(one)
      return row?.failures === 1 && row.lock_owner === null
    }, 'it is tried')
    one.hooks.remove = undefined
    return { one, id: cloudID }
  }
  const spoil = (one: Case, set: ReturnType<typeof sql>): Promise<unknown> =>
    one.store.write((tx) => sql`update removals set ${set}`.execute(tx.db))

  it.each([
    ['a newer version, of another shape', sql`version = 3, state = 'gave-up', due_at = null, progress = '{"done":[]}'`],
    ['a newer version, of the same shape', sql`version = 3, state = 'gave-up', due_at = null`],
    ['a progress that was cut off', sql`progress = '["i-0'`],
    ['an identity that was cut off', sql`identity = '[{"na'`],
    ['a stop that was cut off', sql`stopped = '{"code":"une'`],
    ['members without an identity', sql`state = 'gave-up', due_at = null, identity = '[{"nativeId":"x"}]'`],
  ])('with %s stops no other, and stays as it is', async (_, set) => {
    const { one, id } = await tried()
    await spoil(one, set)
    const [before] = await removals(one)
    const other = await one.orphan()
    const calls = one.count('remove', id)
    await one.sweep(graceSeconds + 60)
    await one.sweep(graceSeconds + 60)
    await one.gone(other.cloudID)
    const after = (await removals(one)).find((row) => row.id === before?.id)
    const kept = ['state', 'version', 'identity', 'planned', 'progress', 'baseline', 'stopped', 'evidence', 'cause'] as const
    for (const key of kept) expect(after?.[key], key).toEqual(before?.[key])
    expect([one.isRunning(id), one.count('remove', id)]).toEqual([true, calls])
    // Open or given up, a person is told; a list shows it still.
    const about = (await one.open()).filter((row) => ['removal-needs-person', 'protected'].includes(row.code))
    expect(about.length).toBeGreaterThan(0)
    expect(about.map((row) => row.message).join()).toMatch(/record of a removal|can't be read|version 3 is not known/)
    expect((await listRemovals(one.engine.context, root, { limit: 50 })).map((row) => row.id)).toContain(before?.id)
  })

  it('that can be read again is gone on with', async () => {
    const { one, id } = await tried()
    await spoil(one, sql`version = 3`)
    await one.advance(3_700)
    await until(async () => (await one.open()).some((row) => row.code === 'removal-needs-person'), 'it is refused')
    await spoil(one, sql`version = 2`)
    await one.advance(120)
    await one.gone(id)
    expect((await removals(one)).map((row) => row.state)).toEqual(['gone'])
  })
})
