/** One command says what needs a person: `doctor` and `status` tell of sweeps, circuits, removals and findings alike. */
import { afterEach, expect, it } from 'vitest'
import { readStatus, runDoctor } from '../../../src/engine/admin/index.ts'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import type { DoctorCheck, StatusView } from '../../../src/model/wire.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { insertProject } from '../../../src/store/projects.ts'
import type { ListedResource } from '../../../src/providers/contract.ts'
import { ann, leaseOn, leaseWhen, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { long, sweepWorld, type SweepWorld } from '../../support/sweep-world.ts'
import { actor } from './support.ts'

eachStore('what needs a person', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const one of worlds.splice(0)) await one.engine.stop(0)
  })
  const world = async (given: Parameters<typeof sweepWorld>[1] = {}): Promise<SweepWorld> => {
    const made = await sweepWorld(await open(), given)
    worlds.push(made)
    return made
  }
  const status = (w: SweepWorld, who = root): Promise<StatusView> =>
    readStatus(w.engine.context, who, { version: 'test', expiryPaused: null })
  const check = async (w: SweepWorld, name: string, who = root): Promise<DoctorCheck | undefined> =>
    (await runDoctor(w.engine.context, who, null)).find((one) => one.name === name)

  it('both say in which mode each provider is swept, and where that comes from (orphans R75a)', async () => {
    const w = await world({ mode: 'delete' })
    expect((await status(w)).sweeps).toEqual([
      { provider: 'process', mode: 'delete', origin: 'test', intervalSeconds: 900, graceSeconds: 900, canList: true, backends: 1 },
    ])
    expect(await check(w, 'process: sweep mode')).toMatchObject({
      level: 'ok',
      message: expect.stringMatching(/^delete \(test\), every 15m: /),
    })
    w.settings.mode = 'off'
    expect((await status(w)).sweeps).toMatchObject([{ mode: 'off' }])
    expect((await check(w, 'process: sweep mode'))?.message).toBe('off (test): nothing is looked for')
  })

  it('an account whose listings fail is told while it is left alone, and after (leases R60)', async () => {
    const w = await world()
    expect(await check(w, 'process: listings')).toBeUndefined()
    await w.sweep()
    w.provider.onList = () => {
      throw new Error('401 unauthorized')
    }
    for (let i = 0; i < 3; i++) await w.sweep()
    expect(await check(w, 'process: listings')).toMatchObject({
      level: 'error',
      message: expect.stringMatching(
        /^scripted:one: 3 listings in a row failed: 401 unauthorized; no sweep of it begins by itself until 20/,
      ),
      remedy: expect.stringContaining('leasehold sweep'),
    })
    await w.advance(301)
    expect(await check(w, 'process: listings')).toMatchObject({
      level: 'warning',
      message: expect.stringContaining('the next sweep that is due'),
    })
    w.provider.onList = undefined
    await w.sweep()
    expect(await check(w, 'process: listings')).toBeUndefined()
  })

  it('a removal that fails is told from the first failure on, and one that was given up as that (orphans R91)', async () => {
    const w = await world()
    expect(await check(w, 'removals')).toMatchObject({ level: 'ok' })
    expect((await status(w)).troubles).toEqual([])
    const lease = await leaseOn(w.engine, { ...long, slug: 'calm-otter' })
    w.provider.onRemove = () => ({ kind: 'denied', permission: 'boxes.delete' })
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'failed')
    const [trouble] = (await status(w)).troubles
    expect(trouble).toMatchObject({
      leaseID: lease.id,
      name: 'calm-otter',
      state: 'removing',
      failures: 1,
      error: 'permission denied: boxes.delete',
      retryAt: expect.any(String),
    })
    expect(await check(w, 'removals')).toMatchObject({
      level: 'warning',
      message: expect.stringContaining(`the last: ${trouble?.removalID} of calm-otter: permission denied: boxes.delete`),
    })
    expect(await check(w, 'given-up removals')).toBeUndefined()
    await w.store.write((tx) => tx.db.updateTable('removals').set({ failures: 3 }).execute())
    expect(await check(w, 'removals')).toMatchObject({ level: 'error' })
    await w.store.write((tx) => tx.db.updateTable('removals').set({ state: 'gave-up', due_at: null }).execute())
    expect(await check(w, 'removals')).toMatchObject({ level: 'ok' })
    expect(await check(w, 'given-up removals')).toMatchObject({ level: 'error', message: expect.stringMatching(/^1 removal was given up/) })
    expect((await status(w)).troubles).toMatchObject([{ state: 'gave-up', retryAt: null }])
    // Those of another project are not told of it.
    await w.store.write((tx) => insertProject(tx, 'other'))
    expect((await status(w, actor('operator', 'other'))).troubles).toEqual([])
    expect(await check(w, 'given-up removals', actor('operator', 'other'))).toBeUndefined()
  })

  it('findings that only a person makes better are told apart from those that time does', async () => {
    const w = await world()
    const { box } = await w.orphan()
    await w.sweep()
    expect(await status(w)).toMatchObject({ findingsByCode: { orphan: 1 }, forPerson: [], counts: { findings: 1 } })
    expect((await check(w, 'findings'))?.message).toBe('1 open, none of which needs a person')
    const lease = await leaseOn(w.engine, long)
    const copied = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    w.provider.boxes.set('copy', {
      ...copied,
      fixedAttemptToken: null,
      resource: { ...copied.resource, nativeId: 'copy', immutableId: 'copy#1' },
    })
    await w.sweep()
    expect(await status(w)).toMatchObject({ findingsByCode: { contradiction: 1, orphan: 1 }, forPerson: ['contradiction'] })
    expect(await check(w, 'findings')).toMatchObject({ level: 'warning', message: 'a person is needed for 1 contradiction; 1 more open' })
    expect(box.resource.kind).toBe('box')
  })

  it('a provider that only another project uses has no backend for those of one', async () => {
    const w = await world()
    await w.store.write(async (tx) => {
      await insertProject(tx, 'other')
      await insertBackend(tx, { project: 'other', name: 'far', provider: 'aws', config: '{}', scope: null, is_default: 1 })
    })
    expect((await status(w)).sweeps.map((one) => [one.provider, one.canList, one.backends])).toEqual([
      ['aws', false, 1],
      ['process', true, 1],
    ])
    expect((await status(w, actor('operator', 'default'))).sweeps.map((one) => one.provider)).toEqual(['process'])
  })
})
