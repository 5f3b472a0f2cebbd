/** Class E: "terminated" is never written without proof. */
import { afterEach, expect, it } from 'vitest'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import { ann } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases } from './support.ts'

eachStore('proof of an end', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('a provider that can not be reached leaves the removal open, retried every 300 s with its age in sight, and never gone (case E1)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    one.hooks.remove = async () => {
      throw new Error('connect ENETUNREACH')
    }
    await releaseLease(one.engine.context, ann, lease.id, {})
    const since = new Date(await one.store.now()).toISOString()
    for (let tries = 1; tries <= 5; tries++) {
      const { cleanup } = await until(async () => {
        const view = await one.leaseView(lease.id)
        return view.cleanup.attempts === tries ? view : undefined
      }, `try ${tries}`)
      expect(cleanup).toMatchObject({ state: 'failed', goneAt: null, stuck: tries >= 3, error: expect.stringContaining('ENETUNREACH') })
      expect(cleanup.startedAt).toBe(since)
      await one.advance(300)
    }
    const { state } = await one.store.read(({ db }) => db.selectFrom('instances').select('state').executeTakeFirstOrThrow())
    expect(state).toBe('terminating')
    // The twin: reached again, it goes, and is called so.
    one.hooks.remove = undefined
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is proved gone', 300)
    expect(one.running()).toEqual([])
  })

  it('an accepted deletion that never happens is not called an end (case E1)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    one.fault('delete', 'ignore')
    await releaseLease(one.engine.context, ann, lease.id, {})
    for (let i = 0; i < 20; i++) {
      await one.advance(60)
      const { cleanup } = await one.leaseView(lease.id)
      expect(cleanup.state).not.toBe('gone')
    }
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'failed', 'it is called failed')
    expect(one.isRunning(lease.cloudID)).toBe(true)
    expect(await one.events('removal.gone')).toEqual([])
    one.cloud.clearFaults()
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is proved gone', 300)
  })

  it('one that is being deleted for an hour is told as stuck and asked for once more, is never called gone before it is, and ends with its proof (case E4, M1)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const hours = 3 * 3_600_000
    // As a real one does it: from now on it says "terminating", for hours.
    one.hooks.remove = async (resource) => {
      if (one.count('remove') === 1) one.cloud.end(resource.nativeId, { durationMs: hours })
      return { kind: 'accepted', requestId: one.cloud.requestId() }
    }
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(() => one.count('remove') === 1, 'it is accepted')
    const cleanup = async () => (await one.leaseView(lease.id)).cleanup
    await until(async () => (await cleanup()).state === 'verifying', 'that is recorded')
    // Within the hour nobody is told, and nothing is asked for again.
    for (let i = 0; i < 11; i++) await one.advance(300)
    expect(await one.events('removal.failed')).toEqual([])
    expect(one.count('remove')).toBe(1)
    await one.advanceUntil(async () => (await cleanup()).state === 'failed', 'it is told', 60)
    expect((await cleanup()).error).toMatch(/for an hour/)
    expect(await one.events('removal.failed')).toHaveLength(1)
    await one.advanceUntil(() => one.count('remove') === 2, 'it is asked for once more', 60)
    expect(await one.events('removal.gone')).toEqual([])
    await one.advanceUntil(async () => (await cleanup()).state === 'gone', 'it is proved gone', 900)
    const proofs = await one.store.read(({ db }) => db.selectFrom('audit').select('body').where('kind', '=', 'proof').execute())
    expect(proofs.map((row) => row.body).join()).toContain(lease.cloudID)
  })

  it('a read that has no answer is no proof (case E1)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    one.fault('get', 'error-before')
    await releaseLease(one.engine.context, ann, lease.id, {})
    one.cloud.end(lease.cloudID)
    for (let i = 0; i < 4; i++) await one.advance(300)
    await one.advanceUntil(async () => ((await one.leaseView(lease.id)).cleanup.attempts ?? 0) >= 1, 'it was tried')
    expect((await one.leaseView(lease.id)).cleanup.state).toBe('failed')
    one.cloud.clearFaults()
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is proved gone', 300)
    expect(one.count('remove')).toBe(0)
  })

  it('a machine whose record was closed and that was never ended is reclaimed, and its finding tells how long that took (case E3)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(orphan.cloudID)
    const finding = await one.store.read(({ db }) =>
      db.selectFrom('findings').selectAll().where('code', '=', 'orphan').executeTakeFirstOrThrow(),
    )
    expect(finding.state).toBe('resolved')
    expect((finding.resolved_at ?? 0) - finding.first_seen_at).toBeGreaterThanOrEqual(graceSeconds * 1000)
    expect((finding.resolved_at ?? 0) - finding.first_seen_at).toBeLessThan(2 * graceSeconds * 1000)
  })

  it('in report mode the same one is told of, and stands (case E3)', async () => {
    const one = await cases.open(await open(), { mode: 'report' })
    const orphan = await one.orphan()
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(await one.told()).toEqual([`orphan ${orphan.cloudID}`])
    expect(one.isRunning(orphan.cloudID)).toBe(true)
  })
})
