import { afterEach, expect, it } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import type { ListingItem } from '../../src/providers/contract.ts'
import { readEvents } from '../../src/store/events.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { everything, scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'
import { engines, intervalMs, long, marginMs, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'

const day = 86_400_000

/** Machines with disks, of which the disks may or may not be listed. */
const withDisks = (): { provider: Scripted; disks: { allowed: boolean } } => {
  const provider = Object.assign(scriptedProvider(), { kinds: ['box', 'disk'] })
  const disks = { allowed: true }
  provider.onList = (locations) =>
    locations.flatMap((location): ListingItem[] => [
      ...everything(provider.boxes, location),
      {
        type: 'coverage',
        coverage: disks.allowed
          ? { location, kind: 'disk', state: { kind: 'complete' }, pages: 1 }
          : { location, kind: 'disk', state: { kind: 'denied', permission: 'disk.list' }, pages: 0 },
      },
    ])
  return { provider, disks }
}

const cells = async ({ store }: Rounds) =>
  Object.fromEntries(
    (await store.read(({ db }) => db.selectFrom('cells').selectAll().execute())).map((row) => [
      row.kind,
      { state: row.state, at: row.clean_at },
    ]),
  )

eachStore('a kind that may not be listed', (open) => {
  const world = engines()
  afterEach(() => world.stop())
  const begin = async () => {
    const { provider, disks } = withDisks()
    const w = world.keep(await sweepRounds(await open(), { provider }))
    await leaseOn(w.engine, long)
    return { w, provider, disks }
  }

  it('is reported once with the permission’s name; then sweeps are clean again, and only its cell keeps its old watermark (orphans R26, R102)', async () => {
    const { w, disks } = await begin()
    expect((await w.round())?.outcome).toBe('clean')
    const first = await w.cleanup()
    expect(await cells(w)).toEqual({ box: { state: 'complete', at: first.clean_at }, disk: { state: 'complete', at: first.clean_at } })
    disks.allowed = false
    await leaseOn(w.engine, long)
    const told = await w.round()
    expect(told).toMatchObject({ outcome: 'unsettled', why: ['1 kind may not be listed'] })
    expect((await w.open()).map((row) => [row.code, row.message])).toEqual([['denied-kind', 'disk in here may not be listed: disk.list']])
    expect((await w.cleanup()).clean_at).toBe(first.clean_at)
    // Reported once, it holds back nothing but itself: the others are judged, and their watermark goes on.
    await w.orphan()
    const next = await w.round()
    expect(next).toMatchObject({ outcome: 'unsettled', why: ['1 orphan is in quarantine'] })
    const last = await w.round(2 * intervalMs)
    expect(last?.outcome).toBe('clean')
    const { clean_at: cleanAt } = await w.cleanup()
    expect(cleanAt).toBe((last?.startedAt ?? 0) - marginMs)
    expect(await cells(w)).toEqual({ box: { state: 'complete', at: cleanAt }, disk: { state: 'denied', at: first.clean_at } })
    expect(last?.cells.find((cell) => cell.kind === 'disk')).toMatchObject({ state: 'denied', cleanAt: first.clean_at })
  })

  it('is asked for once an interval, and listed as soon as the permission is there, without any activity (orphans R40, R102)', async () => {
    const { w, provider, disks } = await begin()
    disks.allowed = false
    await w.round()
    expect((await w.round())?.outcome).toBe('clean')
    const sweeps = (await w.certificates()).length
    const lists = provider.count('list')
    for (let i = 0; i < 3; i++) await w.round(intervalMs)
    expect((await w.certificates()).length).toBe(sweeps)
    expect(provider.count('list')).toBe(lists + 3)
    disks.allowed = true
    expect(await w.round(intervalMs)).toMatchObject({ outcome: 'clean', reasons: ['permission-appeared'] })
    expect(await w.open()).toEqual([])
    expect((await cells(w))['disk']).toEqual({ state: 'complete', at: (await w.cleanup()).clean_at })
    // Nothing is denied any more, so nothing is asked any more (orphans R39).
    const calls = provider.calls.length
    for (let i = 0; i < 3; i++) await w.round(intervalMs)
    expect(provider.calls.length).toBe(calls)
  })

  it('is asked for by the provider’s own cheap question where it has one, and an error is no permission (orphans R102)', async () => {
    const { w, provider, disks } = await begin()
    disks.allowed = false
    const asked: string[] = []
    const answers: (boolean | Error)[] = [false, new Error('500'), true]
    provider.mayList = async (location, kind) => {
      asked.push(`${location}/${kind}`)
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return answer === true
    }
    await w.round()
    await w.round()
    const sweeps = (await w.certificates()).length
    const lists = provider.count('list')
    for (let i = 0; i < 2; i++) await w.round(intervalMs)
    expect([asked, provider.count('list'), (await w.certificates()).length]).toEqual([['here/disk', 'here/disk'], lists, sweeps])
    await w.round(intervalMs)
    expect(provider.count('list')).toBe(lists + 1)
  })

  it('is told again once a day, not at every interval after the first day (orphans R40, R68)', async () => {
    const { provider, disks } = withDisks()
    const w = world.keep(await sweepRounds(await open(), { provider }))
    // No live lease: its end after a day would be activity.
    const lease = await leaseOn(w.engine, long)
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    disks.allowed = false
    await w.round()
    await w.round()
    await w.round(day)
    const sweeps = (await w.certificates()).length
    for (let i = 0; i < 3; i++) await w.round(intervalMs)
    expect((await w.certificates()).length).toBe(sweeps)
    const told = (await readEvents(w.store, { project: null, after: 0, limit: 500, target: null })).filter(
      ({ event }) => event.code === 'finding.standing',
    )
    expect(told).toHaveLength(1)
  })
})
