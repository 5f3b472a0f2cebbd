/** Class H: time, zones, defaults. */
import { afterEach, expect, it } from 'vitest'
import { sweepSettings, type Environment } from '../../../src/model/sweep-settings.ts'
import { kinds } from '../../../src/providers/simulated/words.ts'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, openCases } from './support.ts'

const settingsOf = (environment: Environment, allowZeroGrace = false) => sweepSettings(environment, 'simulated', allowZeroGrace)
const graceOf = (environment: Environment, allowZeroGrace = false): number | string => {
  const answer = settingsOf(environment, allowZeroGrace)
  return answer.ok ? answer.settings.graceMs.value : answer.problem
}

it('a grace of 0 is 0, and none given is the default; 0 in delete mode needs to be meant (case H3)', () => {
  const zero = { LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '0' }
  expect(graceOf(zero)).toBe(0)
  expect(graceOf({})).toBe(900_000)
  expect(graceOf({ LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '' })).toBe(900_000)
  const deleting = { ...zero, LEASEHOLD_ORPHAN_CLEANUP_MODE: 'delete' }
  expect(graceOf(deleting)).toMatch(/--allow-zero-grace/)
  expect(graceOf(deleting, true)).toBe(0)
})

it.each(['7 days', '-1', '1e3', 'soon', 'NaN', '10m'])(
  'a grace of %j is refused, and never falls back to a shorter one (case H6)',
  (text) => {
    expect(graceOf({ LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: text })).toMatch(/LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS/)
  },
)

eachStore('time', (open) => {
  const cases = openCases()
  const zone = process.env['TZ']
  afterEach(async () => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
    await cases.close()
  })

  it('no verdict depends on the zone of the host (case H2)', async () => {
    // Not by its own schedule meanwhile: the dry runs all see the same.
    const one = await cases.open(await open(), { mode: 'report' })
    await one.lease({ labels: { note: 'delete@2026-03-10' } })
    const orphan = await one.orphan()
    const protectedOne = await one.orphan({ labels: { keepUntil: '2026-03-10' } })
    await one.sweep()
    await one.advance(graceSeconds + 60)
    const seen = new Set<string>()
    for (const name of ['UTC', 'Pacific/Kiritimati', 'Pacific/Pago_Pago', 'America/St_Johns', 'Asia/Kathmandu']) {
      process.env['TZ'] = name
      const view = await one.dryRun()
      seen.add(JSON.stringify([view.startedAt, view.verdicts, view.orphans, view.plan]))
      expect(view.verdicts).toMatchObject({ 'orphan.owner-ended': 1, 'protected.keep': 1 })
    }
    expect(seen.size).toBe(1)
    process.env['TZ'] = 'Pacific/Kiritimati'
    one.settings.mode = 'delete'
    await one.sweep()
    await one.gone(orphan.cloudID)
    expect(one.isRunning(protectedOne.cloudID)).toBe(true)
  })

  it('a grace of 0 still needs two complete inventories, and the default needs its time too (case H3)', async () => {
    const one = await cases.open(await open())
    one.settings.graceMs = 0
    const first = await one.orphan()
    await one.sweep()
    expect(one.isRunning(first.cloudID)).toBe(true)
    await one.sweep(1)
    await one.gone(first.cloudID)
    one.settings.graceMs = 900_000
    const second = await one.orphan()
    for (let i = 0; i < 4; i++) await one.sweep(200)
    expect(one.isRunning(second.cloudID)).toBe(true)
    await one.sweep(300)
    await one.gone(second.cloudID)
  })

  it.each(kinds)('the engine holds the grace for a %s too, whatever the provider lists (case H5)', async (kind) => {
    const one = await cases.open(await open())
    const lease = await one.orphan()
    const left = kind === 'machine' ? lease.cloudID : (await one.launch(lease, kind)).id
    if (kind !== 'machine') one.cloud.end(lease.cloudID)
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${left}`])
    for (let seconds = 0; seconds < graceSeconds - 300; seconds += 200) {
      await one.sweep(200)
      expect(one.isRunning(left)).toBe(true)
    }
    await one.sweep(graceSeconds)
    await one.gone(left)
  })

  it.each(['7 days', 'garbage', 'TRUE', 'until friday'])(
    'a protection of %j that nobody can parse protects, and is told (case H6)',
    async (text) => {
      const one = await cases.open(await open())
      const orphan = await one.orphan()
      const keep = (value: string): void => one.cloud.setTags(orphan.cloudID, { ...one.cloud.get(orphan.cloudID)?.tags, keep: value })
      keep(text)
      for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
      expect(await one.told()).toEqual([`protected ${orphan.cloudID}`])
      expect([one.isRunning(orphan.cloudID), one.count('remove')]).toEqual([true, 0])
      // The twin: said to be none, it protects nothing.
      keep('false')
      await one.sweep()
      await one.sweep(graceSeconds + 60)
      await one.gone(orphan.cloudID)
    },
  )
})
