/** The cases of orphan cleanup that turn on the mode, on answers that are none, and on giving up. */
import { afterEach, expect, it } from 'vitest'
import { createLease } from '../../../src/engine/leases/index.ts'
import { enrolMissing } from '../../../src/engine/sweep/enrol.ts'
import { effectiveMode } from '../../../src/model/sweep-settings.ts'
import { ann } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, long, openCases, type Case } from './support.ts'

eachStore('orphan cleanup by mode', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())
  const cleanup = (one: Case) => one.store.read(({ db }) => db.selectFrom('cleanups').selectAll().executeTakeFirstOrThrow())

  it('off, report, delete, report in an idle project with one orphan (case orphan 8)', async () => {
    const one = await cases.open(await open(), { mode: 'off' })
    const orphan = await one.orphan()
    await one.advance(60)
    expect(await enrolMissing(one.engine.context)).toBe(0)
    expect(await one.store.read(({ db }) => db.selectFrom('cleanups').selectAll().execute())).toEqual([])
    expect(one.count('list')).toBe(0)

    one.settings.mode = 'report'
    expect(await enrolMissing(one.engine.context)).toBe(1)
    for (let i = 0; i < 4; i++) await one.scheduled()
    expect(await one.events('finding.opened')).toHaveLength(1)
    expect([one.isRunning(orphan.cloudID), one.count('remove')]).toEqual([true, 0])
    const lists = one.count('list')

    one.settings.mode = 'delete'
    await one.scheduled()
    expect(one.count('list')).toBe(lists + 1)
    await one.gone(orphan.cloudID)

    one.settings.mode = 'report'
    for (let i = 0; i < 4; i++) await one.scheduled()
    expect((await cleanup(one)).clean_mode).toBe('report')
    expect(await one.told()).toEqual([])
    expect(one.count('remove')).toBe(1)
  })

  it('back to off in the middle: the row stays, and nothing is listed any more (case orphan 8)', async () => {
    const one = await cases.open(await open(), { mode: 'report' })
    const orphan = await one.orphan()
    await enrolMissing(one.engine.context)
    await one.scheduled()
    const lists = one.count('list')
    one.settings.mode = 'off'
    for (let i = 0; i < 3; i++) await one.scheduled()
    expect(one.count('list')).toBe(lists)
    expect(one.isRunning(orphan.cloudID)).toBe(true)
  })

  it.each([
    ['403', 'denied', 'denied'],
    ['500', 'error-before', 'partial'],
    ['429', 'throttle', 'partial'],
    ['a page that is lost', 'fail-page', 'partial'],
  ] as const)('a provider that answers %s instead of data is never an empty list (case orphan 10)', async (_what, effect, state) => {
    const one = await cases.open(await open())
    const live = [await one.lease(), await one.lease()]
    const orphan = await one.orphan()
    await one.sweep()
    one.fault('list', effect)
    for (let i = 0; i < 4; i++) {
      const view = await one.sweep(graceSeconds)
      expect(new Set(view.cells.map((cell) => cell.state))).toEqual(new Set([state]))
      // Where not one page arrives, that is a failure (orphans R79); what may not be listed is known to be so (orphans R102).
      expect(view.outcome === 'failed').toBe(state === 'partial')
    }
    // Nothing is missing, nothing is resolved, nothing is deleted on the word of such a listing.
    expect((await one.open()).filter((row) => row.code !== 'denied-kind').map((row) => row.code)).toEqual(['orphan'])
    for (const lease of live) expect((await one.leaseView(lease.id)).state).toBe('active')
    expect(one.count('remove')).toBe(0)
    const denied = (await one.open()).filter((row) => row.code === 'denied-kind').map((row) => row.message)
    if (effect === 'denied') expect(denied).toContain('machine in sim-a may not be listed: simulated:list:machine')
    else expect(denied).toEqual([])
    // The twin: with data again it goes.
    one.cloud.clearFaults()
    await one.sweep()
    await one.gone(orphan.cloudID)
  })

  it('an empty page is not the end of a list, and a 401 for everything is a failure with a longer and longer delay (case orphan 10)', async () => {
    const one = await cases.open(await open(), { config: { pageSize: 1 } })
    const live = [await one.lease(), await one.lease()]
    one.fault('list', 'empty-page', { page: 1 })
    await one.sweep()
    await one.sweep()
    expect((await one.sweep()).outcome).toBe('clean')
    for (const lease of live) expect((await one.leaseView(lease.id)).state).toBe('active')
    one.hooks.list = () => {
      throw new Error('401 unauthorized')
    }
    const delays: number[] = []
    for (let i = 0; i < 2; i++) {
      const view = await one.sweep()
      expect(view).toMatchObject({ outcome: 'failed', error: '401 unauthorized' })
      delays.push(((await cleanup(one)).due_at ?? 0) - (await one.store.now()))
    }
    expect(delays[0]).toBeGreaterThanOrEqual(900_000)
    expect(delays[1]).toBeGreaterThanOrEqual(1_800_000)
    expect(await one.told()).toEqual([])
  })

  /** A create of which nobody can learn, and a provider that does not take it back. */
  const notTakenBack = async (one: Case): Promise<string> => {
    one.fault('create', 'error-after', { count: 1 })
    one.fault('delete', 'error-before')
    const { lease } = await createLease(one.engine.context, ann, long)
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'failed', 'the first try fails', 1)
    return lease.id
  }
  const gaveUp = (one: Case, mode: 'manual' | 'cleanup-retries') => one.events(`terminate.gave-up.${mode}`)
  const at = async (one: Case, leaseId: string): Promise<string> => (await one.leaseView(leaseId)).cleanup.state

  it('given up after 15 min, in delete mode: told once that cleanup will retry, and cleanup does (case orphan 11)', async () => {
    const one = await cases.open(await open())
    const lease = await notTakenBack(one)
    const since = await one.store.now()
    await one.advanceUntil(async () => (await at(one, lease)) === 'gave-up', 'it is given up', 31)
    expect((await one.store.now()) - since).toBeGreaterThan(14 * 60_000)
    expect((await one.store.now()) - since).toBeLessThanOrEqual(16 * 60_000)
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect([(await gaveUp(one, 'cleanup-retries')).length, (await gaveUp(one, 'manual')).length]).toEqual([1, 0])
    expect(one.running()).toHaveLength(1)
    const [left] = one.running()
    one.cloud.clearFaults()
    await one.advanceUntil(() => one.running().length === 0, 'cleanup deletes it', 300)
    await one.gone(left ?? '')
  })

  it('the twin: in report mode it is told to end it by hand, and cleanup leaves it (case orphan 11)', async () => {
    const one = await cases.open(await open(), { mode: 'report' })
    const lease = await notTakenBack(one)
    await one.advanceUntil(async () => (await at(one, lease)) === 'gave-up', 'it is given up', 31)
    one.cloud.clearFaults()
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect([(await gaveUp(one, 'cleanup-retries')).length, (await gaveUp(one, 'manual')).length]).toEqual([0, 1])
    expect(one.running()).toHaveLength(1)
  })

  it('a success in between ends it: nothing is given up and nothing is left to do (case orphan 11)', async () => {
    const one = await cases.open(await open())
    const lease = await notTakenBack(one)
    for (let i = 0; i < 5; i++) await one.advance(31)
    one.cloud.clearFaults()
    await one.advanceUntil(async () => (await at(one, lease)) === 'gone', 'it is taken back', 31)
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect([(await gaveUp(one, 'cleanup-retries')).length, (await gaveUp(one, 'manual')).length]).toEqual([0, 0])
    expect(await one.told()).toEqual([])
  })

  it('a deletion that takes 40 min and goes on is not called failed, and its end is seen (case orphan 11)', async () => {
    const one = await cases.open(await open(), { config: { deleteSeconds: 2_400 } })
    one.fault('create', 'error-after', { count: 1 })
    const { lease } = await createLease(one.engine.context, ann, long)
    await one.advanceUntil(async () => (await at(one, lease.id)) === 'verifying', 'it is accepted', 1)
    for (let minute = 0; minute < 38; minute++) await one.advance(60)
    await one.sweep(1)
    expect(await one.events('removal.failed')).toEqual([])
    expect(one.count('remove')).toBe(1)
    await one.advanceUntil(async () => (await at(one, lease.id)) === 'gone', 'its end is proved', 120)
    expect(one.count('remove')).toBe(1)
  })
})

it('an unknown mode is refused, and never deletes (case orphan 8)', () => {
  for (const word of ['purge', 'deletee', 'true', '1']) {
    const answer = effectiveMode({ LEASEHOLD_ORPHAN_CLEANUP_MODE: word }, 'simulated')
    expect(answer).toMatchObject({ ok: false, problem: expect.stringContaining(word) })
  }
  expect(effectiveMode({ LEASEHOLD_ORPHAN_CLEANUP_MODE: 'delete' }, 'simulated')).toMatchObject({ ok: true, mode: { value: 'delete' } })
})
