import { afterEach, expect, it } from 'vitest'
import { requestSweep } from '../../src/engine/admin/index.ts'
import { enrolMissing } from '../../src/engine/sweep/enrol.ts'
import { leaseOn, root } from '../support/engine.ts'
import { everything, scriptedProvider } from '../support/scripted-provider.ts'
import { advance, eachStore } from '../support/stores.ts'
import { engines, intervalMs, long, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'
import { until } from '../support/until.ts'

eachStore('when sweeps run', (open) => {
  const world = engines()
  afterEach(() => world.stop())
  const begin = async (given: Parameters<typeof sweepRounds>[1] = {}): Promise<Rounds> => world.keep(await sweepRounds(await open(), given))
  const listed = async (w: Rounds, count: number) => until(() => w.provider.count('list') === count, `it is listed ${count} times`)

  it('the first one comes within a minute of its scheduling, which scheduling it again does not put off (leases R54)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    await w.engine.stop(0)
    const scheduledAt = await w.store.now()
    expect(await enrolMissing(w.engine.context)).toBe(1)
    const { due_at: first } = await w.cleanup()
    expect(first).toBeLessThanOrEqual(scheduledAt + 60_000)
    await advance(w.store, 30_000)
    expect(await enrolMissing(w.engine.context)).toBe(0)
    expect((await w.cleanup()).due_at).toBe(first)
  })

  it('the next one comes an interval after the end of the last, however long that took (leases R54)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    w.provider.onList = async () => {
      const items = [...everything(w.provider.boxes, 'here')]
      await advance(w.store, 120_000)
      return items
    }
    const certificate = await w.round()
    const due = (await w.cleanup()).due_at ?? 0
    const endedAt = certificate?.endedAt ?? 0
    expect(due).toBeGreaterThanOrEqual(endedAt + intervalMs)
    // Jitter only adds, up to a fifth.
    expect(due).toBeLessThanOrEqual(endedAt + 1.2 * intervalMs)
  })

  it('a person’s request runs now, and never beside one that is under way (leases R54)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    expect((await w.round())?.outcome).toBe('clean')
    // Not due for long, and nothing has happened: a request lists all the same.
    const before = w.provider.count('list')
    let under = 0
    let most = 0
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    w.provider.onList = async () => {
      most = Math.max(most, ++under)
      await held
      under--
      return [...everything(w.provider.boxes, 'here')]
    }
    const ask = () => requestSweep(w.engine.context, root, { backend: 'local' }, 20_000, new AbortController().signal)
    const asked = ask()
    await listed(w, before + 1)
    const again = ask()
    await until(async () => (await w.cleanup()).requested_at !== null, 'the second request is noted')
    w.engine.context.signals.wake('sweep')
    release()
    expect((await asked)[0]?.outcome).toBe('clean')
    expect((await again)[0]?.outcome).toBe('clean')
    expect(most).toBe(1)
  })

  it('it needs no lease that ends, and takes nothing back unless it was told to (leases R52)', async () => {
    const w = await begin()
    const { box } = await w.orphan()
    const live = await leaseOn(w.engine, long)
    for (let i = 0; i < 4; i++) await w.round()
    expect((await w.open()).map((row) => row.code)).toEqual(['orphan'])
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    // The twin: told to, it does, and no lease has ended for it.
    w.settings.mode = 'delete'
    await w.round()
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'it is taken back')
    expect(w.provider.boxes.has(live.cloudID ?? '')).toBe(true)
  })

  it('what a provider can not list is never enrolled, and what is enrolled can be (orphans R17)', async () => {
    const sighted = scriptedProvider()
    const blind = { ...sighted }
    delete blind.list
    const w = await begin({ provider: blind, mode: 'delete' })
    await leaseOn(w.engine, long)
    expect(await enrolMissing(w.engine.context)).toBe(0)
    expect(await w.store.read(({ db }) => db.selectFrom('cleanups').select('id').execute())).toEqual([])
    // The twin.
    blind.list = (...args) => sighted.list?.(...args) as never
    expect(await enrolMissing(w.engine.context)).toBe(1)
  })
})
