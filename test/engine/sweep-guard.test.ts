import { afterEach, expect, it } from 'vitest'
import { letCountsPass } from '../../src/engine/admin/index.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { readEvents } from '../../src/store/events.ts'
import { ann, leaseOn, leaseWhen, root } from '../support/engine.ts'
import { everything } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'
import { engines, long, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'

eachStore('a listing that shows far less than it should', (open) => {
  const world = engines()
  afterEach(() => world.stop())

  const begin = async (given: Parameters<typeof sweepRounds>[1] = {}): Promise<{ w: Rounds; leases: LeaseView[] }> => {
    const w = world.keep(await sweepRounds(await open(), given))
    const leases: LeaseView[] = []
    for (let i = 0; i < 10; i++) leases.push(await leaseOn(w.engine, long))
    return { w, leases }
  }
  /** The listing shows only so many of the live boxes, and everything else that there is. */
  const show = (w: Rounds, leases: readonly LeaseView[], count: number): void => {
    const hidden = new Set(leases.slice(count).map((lease) => lease.cloudID))
    w.provider.onList = () => [...everything(new Map([...w.provider.boxes].filter(([id]) => !hidden.has(id))), 'here')]
  }
  const codes = async (w: Rounds) => (await w.open()).map((row) => row.code).toSorted()
  const states = async (w: Rounds, leases: readonly LeaseView[]) =>
    Promise.all(leases.map(async (lease) => (await leaseWhen(w.engine, lease.id, () => true)).state))

  it('concludes nothing while exact reads find what it hides: nothing is missing, no quarantine advances, no watermark moves (I5, decisions, guard on counts)', async () => {
    const { w, leases } = await begin({ mode: 'delete' })
    const { box } = await w.orphan()
    await w.round()
    expect((await w.open())[0]).toMatchObject({ code: 'orphan', complete_sightings: 1 })
    const before = await w.cleanup()
    show(w, leases, 7)
    for (let i = 0; i < 4; i++)
      expect(await w.round()).toMatchObject({ outcome: 'unsettled', guard: expect.stringMatching(/^tripped: of 10 refs .* only 7/) })
    expect(await codes(w)).toEqual(['counts-implausible', 'orphan'])
    expect((await w.open()).find((row) => row.code === 'orphan')).toMatchObject({ complete_sightings: 1 })
    expect((await w.cleanup()).clean_at).toBe(before.clean_at)
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    expect(new Set(await states(w, leases))).toEqual(new Set(['active']))
    // The twin: 8 of 10 are plausible, and the sweep goes on where it stood.
    show(w, leases, 8)
    await w.round()
    expect(await codes(w)).not.toContain('counts-implausible')
    await expect.poll(() => w.provider.boxes.has(box.resource.nativeId), { timeout: 20_000 }).toBe(false)
  })

  it('an orphan whose quarantine had ended is not taken back on the word of an implausible listing (I5, I8)', async () => {
    const { w, leases } = await begin({ mode: 'report' })
    const { box } = await w.orphan()
    for (let i = 0; i < 3; i++) await w.round()
    w.settings.mode = 'delete'
    show(w, leases, 3)
    for (let i = 0; i < 2; i++) expect((await w.round())?.plan).toBeNull()
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    w.provider.onList = undefined
    expect((await w.round())?.plan).toMatchObject({ kind: 'begin' })
    await expect.poll(() => w.provider.boxes.has(box.resource.nativeId), { timeout: 20_000 }).toBe(false)
  })

  it('exact reads that prove the rest absent explain it, without a person (decisions 2, guard on counts)', async () => {
    const { w, leases } = await begin()
    for (const lease of leases.slice(3)) w.provider.boxes.delete(lease.cloudID ?? '')
    expect(await w.round()).toMatchObject({ guard: 'passed' })
    expect(await codes(w)).toEqual(Array(7).fill('not-seen'))
    expect(new Set(await states(w, leases))).toEqual(new Set(['active']))
    await w.round()
    expect(await states(w, leases)).toEqual([...Array(3).fill('active'), ...Array(7).fill('failed')])
  })

  it('an exact read without an answer explains nothing (case I1)', async () => {
    const { w, leases } = await begin()
    for (const lease of leases.slice(3)) w.provider.boxes.delete(lease.cloudID ?? '')
    w.provider.onRead = () => ({ kind: 'unknown', error: '503' })
    for (let i = 0; i < 3; i++) expect((await w.round())?.guard).toMatch(/^tripped/)
    expect(new Set(await states(w, leases))).toEqual(new Set(['active']))
  })

  it('a person lets exactly these counts pass, for one sweep, by name and reason, and it is kept for ever (decisions, guard on counts)', async () => {
    const { w, leases } = await begin()
    show(w, leases, 2)
    await w.round()
    const reason = 'a region was emptied on purpose'
    await expect(letCountsPass(w.engine.context, ann, { backend: 'local', reason })).rejects.toMatchObject({ code: 'forbidden' })
    await letCountsPass(w.engine.context, root, { backend: 'local', reason })
    expect(await w.round()).toMatchObject({ guard: expect.stringMatching(/^let pass by root: of 10 refs/) })
    expect(await codes(w)).toEqual(Array(8).fill('not-seen'))
    // Once: the next one stops again.
    expect((await w.round())?.guard).toMatch(/^tripped/)
    expect(new Set(await states(w, leases))).toEqual(new Set(['active']))
    const audit = await w.store.read(({ db }) => db.selectFrom('audit').selectAll().where('kind', '=', 'operator').execute())
    expect(audit.map((row) => [row.actor, JSON.parse(row.body) as unknown])).toEqual([
      [
        'root',
        expect.objectContaining({
          action: 'let-counts-pass',
          backend: 'local',
          reason,
          counts: expect.objectContaining({ expected: 10, seen: 2 }),
        }),
      ],
    ])
    const told = (await readEvents(w.store, { project: null, after: 0, limit: 500, target: 'default/local' })).map(
      ({ event }) => event.code,
    )
    expect(told).toContain('sweep.let-pass')
  })

  it('other counts than those that were shown are not let pass, and the pass is used up', async () => {
    const { w, leases } = await begin()
    show(w, leases, 2)
    await w.round()
    await letCountsPass(w.engine.context, root, { backend: 'local', reason: 'as shown' })
    show(w, leases, 1)
    expect((await w.round())?.guard).toMatch(/^tripped/)
    show(w, leases, 2)
    expect((await w.round())?.guard).toMatch(/^tripped/)
    expect((await w.cleanup()).let_pass).toBeNull()
  })

  it('a listing that failed uses up no pass, and there is nothing to let pass where the counts are plausible', async () => {
    const { w, leases } = await begin()
    await w.round()
    await expect(letCountsPass(w.engine.context, root, { backend: 'local', reason: 'just in case' })).rejects.toMatchObject({
      code: 'not_found',
    })
    // Activity, so that the next one lists.
    await w.orphan()
    show(w, leases, 2)
    await w.round()
    await letCountsPass(w.engine.context, root, { backend: 'local', reason: 'as shown' })
    w.provider.onList = () => {
      throw new Error('503')
    }
    expect((await w.round())?.outcome).toBe('failed')
    show(w, leases, 2)
    expect((await w.round())?.guard).toMatch(/^let pass by root/)
  })

  it('tags that can not be read any more are not tags that are not there: the sweep stops, and goes on when they can (case I2)', async () => {
    // Five of fifteen are beyond the limits, so that none of them goes; an open orphan opens the gate each time.
    const { w } = await begin({ mode: 'delete' })
    // Leftovers beside the live boxes: nothing else tells whether they have tags.
    const leftovers: ListedResource[] = []
    for (let i = 0; i < 5; i++) leftovers.push((await w.orphan()).box)
    await w.round()
    await w.round()
    const before = (await w.open()).filter((row) => row.code === 'orphan').map((row) => row.complete_sightings)
    expect(before).toEqual([2, 2, 2, 2, 2])
    for (const box of leftovers.slice(0, 4)) w.provider.boxes.set(box.resource.nativeId, { ...box, labels: null })
    expect((await w.round())?.guard).toBe('tripped: the tags of 4 of 15 resources that had readable ones can not be read now')
    // The one that can be read stands still, and nothing of the others is resolved.
    expect((await w.open()).filter((row) => row.code === 'orphan').map((row) => row.complete_sightings)).toEqual(before)
    for (const box of leftovers) w.provider.boxes.set(box.resource.nativeId, box)
    expect((await w.round())?.guard).toBe('passed')
    expect((await w.open()).filter((row) => row.code === 'orphan').map((row) => row.complete_sightings)).toEqual([3, 3, 3, 3, 3])
  })

  it('what never had readable tags does not stop it for ever', async () => {
    const { w } = await begin()
    const { box } = await w.orphan()
    await w.round()
    for (let i = 0; i < 3; i++)
      w.provider.boxes.set(`strange-${i}`, {
        ...box,
        labels: null,
        tags: { ref: null, installation: null, attempt: null, mac: null },
        fixedAttemptToken: null,
        resource: { ...box.resource, nativeId: `strange-${i}`, immutableId: `strange#${i}` },
      })
    await letSee(w)
    w.provider.boxes.set('strange-3', {
      ...(w.provider.boxes.get('strange-2') as ListedResource),
      resource: { ...box.resource, nativeId: 'strange-3', immutableId: 'strange#3' },
    })
    expect((await w.round())?.guard).toBe('passed')
  })
  /** Three of eleven are new and unreadable: that is over a fifth, and a person looks at it once. */
  const letSee = async (w: Rounds): Promise<void> => {
    expect((await w.round())?.guard).toMatch(/^tripped/)
    await letCountsPass(w.engine.context, root, { backend: 'local', reason: 'they belong to another tool' })
    expect((await w.round())?.guard).toMatch(/^let pass/)
  }
})
