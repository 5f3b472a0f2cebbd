/** Class D: a leak after a crash between create and record. */
import { afterEach, expect, it } from 'vitest'
import { addBackend, runDoctor } from '../../../src/engine/admin/index.ts'
import { cancelCreate, createLease, releaseLease } from '../../../src/engine/leases/index.ts'
import { ann, root } from '../../support/engine.ts'
import { gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, long, openCases, requestKey, type Case } from './support.ts'

eachStore('leaks', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  const states = async (one: Case, ids: readonly string[]): Promise<string[]> =>
    Promise.all(ids.map(async (id) => (await one.leaseView(id)).state))
  const activeIds = (one: Case): Promise<string[]> =>
    one.store.read(async ({ db }) => {
      const rows = await db
        .selectFrom('instances')
        .innerJoin('attempts', 'attempts.id', 'instances.attempt_id')
        .select('attempts.native_id')
        .where('instances.state', '=', 'busy')
        .execute()
      return rows.map((row) => row.native_id ?? '').toSorted()
    })

  it('30 creates and a coordinator that dies four times among them: what runs is exactly what the rows call active (case D1)', async () => {
    const one = await cases.open(await open())
    let generation = 0
    let calls = 0
    const never = new Promise<never>(() => {})
    one.hooks.create = async (_request, real) => {
      const mine = generation
      // Each dies at another point: before the call, after it, or not at all.
      const point = calls++ % 3
      const death = () => until(() => generation > mine || generation >= 4, 'a death')
      if (point === 0) await death()
      if (mine !== generation) return never
      const made = await real()
      if (point === 1) await death()
      return mine === generation ? made : never
    }
    const ids: string[] = []
    for (let batch = 0; batch < 5; batch++) {
      for (let i = 0; i < 6; i++) {
        const key = batch === 4 || i > 0 ? { createAttemptID: requestKey() } : {}
        ids.push((await createLease(one.engine.context, ann, { ...long, ...key })).lease.id)
      }
      if (batch === 4) break
      await until(() => calls >= (batch + 1) * 3, 'calls are under way')
      generation++
      await one.restart()
    }
    await one.advanceUntil(async () => !(await states(one, ids)).includes('provisioning'), 'every create is settled', 31)
    await one.advanceUntil(async () => one.running().length === (await activeIds(one)).length, 'what nobody can learn of is taken back', 31)
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    expect(one.running().toSorted()).toEqual(await activeIds(one))
    expect((await states(one, ids)).filter((state) => state === 'active').length).toBeGreaterThanOrEqual(24)
    expect(await one.told()).toEqual([])
  })

  it('created, then the answer is lost: found by its ref and adopted, without a second create (case D3, D4)', async () => {
    const one = await cases.open(await open())
    one.fault('create', 'error-after', { count: 1 })
    const { lease } = await createLease(one.engine.context, ann, { ...long, createAttemptID: requestKey() })
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).state === 'active', 'it is adopted', 1)
    expect(one.count('create')).toBe(1)
    expect(one.running()).toEqual([(await one.leaseView(lease.id)).cloudID])
  })

  it('refused before anything was made: nothing is looked for, and the next create is its own (case D4)', async () => {
    const one = await cases.open(await open())
    one.fault('create', 'denied', { count: 1 })
    const { lease } = await createLease(one.engine.context, ann, long)
    await until(async () => (await one.leaseView(lease.id)).state === 'failed', 'the create is refused')
    expect(await one.leaseView(lease.id)).toMatchObject({ failureCode: 'permission_denied', provisioningResourceMayExist: false })
    expect([one.count('find'), one.running().length]).toEqual([0, 0])
    await one.lease()
    expect(one.running()).toHaveLength(1)
  })

  it('taking it back was given up: a later sweep takes it back (case D4)', async () => {
    const one = await cases.open(await open())
    one.fault('create', 'error-after', { count: 1 })
    one.fault('delete', 'error-before')
    const { lease } = await createLease(one.engine.context, ann, long)
    const gaveUp = async () => (await one.leaseView(lease.id)).cleanup.state === 'gave-up'
    await one.advanceUntil(gaveUp, 'it is given up', 31)
    const [left] = one.running()
    one.cloud.clearFaults()
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(left ?? '')
  })

  it('an open attempt is not closed while nobody can look: a release waits for a complete look (case D6)', async () => {
    const one = await cases.open(await open())
    one.fault('create', 'error-after', { count: 1 })
    one.fault('list', 'fail-page')
    const { lease } = await createLease(one.engine.context, ann, { ...long, createAttemptID: requestKey() })
    await until(() => one.count('create') === 1, 'it is asked for')
    await until(async () => (await one.events('attempt.uncertain')).length === 1, 'its answer is lost')
    await releaseLease(one.engine.context, ann, lease.id, {})
    for (let i = 0; i < 20; i++) await one.advance(300)
    await until(() => one.count('find') > 2, 'it is looked for')
    const instance = () => one.store.read(({ db }) => db.selectFrom('instances').select('state').executeTakeFirstOrThrow())
    expect((await instance()).state).not.toBe('terminated')
    expect((await one.leaseView(lease.id)).provisioningResourceMayExist).toBe(true)
    expect(one.running()).toHaveLength(1)
    // The twin: with a complete look it is found, taken back, and closed.
    one.cloud.clearFaults()
    await one.advanceUntil(async () => (await instance()).state === 'terminated', 'it is closed', 10)
    expect(one.running()).toEqual([])
    expect((await one.leaseView(lease.id)).provisioningResourceMayExist).toBe(false)
  })

  it('cancelled in the middle of its create: the machine goes, and would end by itself if nobody came back (case D7)', async () => {
    const one = await cases.open(await open())
    const answer = gate()
    one.hooks.create = async (_request, real) => {
      const made = await real()
      await answer.promise
      return made
    }
    const key = requestKey()
    const { lease } = await createLease(one.engine.context, ann, { ttlSeconds: 3_600, idleTimeoutSeconds: 3_600, createAttemptID: key })
    await until(() => one.running().length === 1, 'it is made')
    await cancelCreate(one.engine.context, ann, lease.id, key)
    answer.open()
    await until(() => one.running().length === 0, 'it is taken back')
    // The twin: no coordinator at all; the time that was part of the create ends it.
    const never = gate()
    one.hooks.create = async (_request, real) => {
      await real()
      await never.promise
      throw new Error('never')
    }
    await createLease(one.engine.context, ann, { ttlSeconds: 3_600, idleTimeoutSeconds: 3_600 })
    await until(() => one.running().length === 1, 'it is made')
    await one.engine.stop(0)
    await one.advance(3_590)
    expect(one.running()).toHaveLength(1)
    await one.advance(15)
    expect(one.running()).toEqual([])
  })

  it('what owns a machine is written before it is asked for, so that a release in that very gap leaks nothing (case D10, I1)', async () => {
    const one = await cases.open(await open())
    const written: unknown[] = []
    one.hooks.create = async (request, real) => {
      // Nothing was made yet, and all that is needed to take it back is committed.
      const row = await one.store.read(({ db }) =>
        db
          .selectFrom('ledger')
          .innerJoin('attempts', 'attempts.ref', 'ledger.ref')
          .select(['ledger.ref', 'attempts.token', 'attempts.outcome', 'ledger.owner_closed_at'])
          .where('ledger.ref', '=', request.ref)
          .executeTakeFirst(),
      )
      written.push(row)
      const lease = await one.store.read(({ db }) => db.selectFrom('leases').select('id').executeTakeFirstOrThrow())
      await releaseLease(one.engine.context, ann, lease.id, {})
      return real()
    }
    await createLease(one.engine.context, ann, long)
    await until(() => written.length === 1, 'it is asked for')
    expect(written).toEqual([expect.objectContaining({ outcome: 'open', owner_closed_at: null })])
    await one.advanceUntil(() => one.running().length === 0 && one.count('remove') > 0, 'it is taken back', 10)
  })

  it('a provider that can create and not list is warned of: nothing is ever found there (case D9)', async () => {
    const one = await cases.open(await open())
    const warned = async (): Promise<string[]> =>
      (await runDoctor(one.engine.context, root, '/nowhere'))
        .filter((check) => check.name === 'simulated: sweeps')
        .map((check) => check.level)
    expect(await warned()).toEqual([])
    Object.defineProperty(one.provider, 'list', { value: undefined })
    expect(await warned()).toEqual(['warning'])
    await expect(one.sweep()).rejects.toMatchObject({ code: 'sweep_disabled' })
  })

  it('a backend with regions of its own: what a lost create left there is ours, and goes when nobody can learn of it (case D4)', async () => {
    const one = await cases.open(await open())
    await addBackend(one.engine.context, root, {
      name: 'north',
      project: 'default',
      provider: 'simulated',
      config: { path: one.cloud.path, group: 'machine', locations: ['north-1', 'north-2'] },
    })
    one.fault('create', 'lag', { count: 1, lengthMs: 1_800_000 })
    one.fault('create', 'error-after', { count: 1 })
    const { lease } = await createLease(one.engine.context, ann, { ...long, backend: 'north' })
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).state === 'failed', 'the create has failed', 61)
    const [left] = one.running()
    expect(one.cloud.get(left ?? '')?.location).toBe('north-1')
    await one.advance(1_800)
    await one.sweep(60, { backend: 'north' })
    expect(await one.told()).toEqual([`orphan ${left}`])
    await one.sweep(graceSeconds + 60, { backend: 'north' })
    await one.gone(left ?? '')
  })
})
