import { afterEach, describe, expect, it } from 'vitest'
import { dryRunSweep, getSweep, listFindings, listSweeps, requestSweep } from '../../../src/engine/admin/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Contradiction, Provider } from '../../../src/providers/contract.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { insertProject } from '../../../src/store/projects.ts'
import { leaseOn, root } from '../../support/engine.ts'
import { everything, gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { everyRow, long, sweepWorld, type SweepWorld } from '../../support/sweep-world.ts'
import { until } from '../../support/until.ts'
import { actor } from './support.ts'

const never = new AbortController().signal

eachStore('sweeps on demand', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const world = async (options: Parameters<typeof sweepWorld>[1] = {}): Promise<SweepWorld> => {
    const made = await sweepWorld(await open(), options)
    engines.push(made.engine)
    return made
  }
  const dry = async (w: SweepWorld) => (await dryRunSweep(w.engine.context, root, {}, never))[0]

  it('lists at once whatever the gate says, and answers with the certificate of a listing that began after the request', async () => {
    const w = await world()
    await leaseOn(w.engine, long)
    const first = await w.sweep()
    expect(first).toMatchObject({
      state: 'ended',
      project: 'default',
      backend: 'local',
      outcome: 'clean',
      orphans: [],
      plan: null,
      reasons: expect.arrayContaining(['requested']),
    })
    expect(first.cells).toEqual([
      { location: 'here', kind: 'box', state: 'complete', why: null, pages: 1, resources: 1, cleanAt: expect.any(String) },
    ])
    expect(first.counts).toMatchObject({ listed: 1, expected: 1, seen: 1 })
    const second = await w.sweep()
    expect(second.id).not.toBe(first.id)
    expect(Date.parse(second.startedAt ?? '')).toBe(await w.store.now())
    expect(w.provider.count('list')).toBe(2)
  })

  it('while one is under way, a request is answered by a listing of its own right after it', async () => {
    const w = await world()
    await leaseOn(w.engine, long)
    await w.advance(60)
    const hung = gate()
    w.provider.onList = async () => {
      await hung.promise
      return [...everything(w.provider.boxes, 'here')]
    }
    const first = requestSweep(w.engine.context, root, {}, 20_000, never)
    await until(() => w.provider.count('list') === 1, 'the first listing has begun')
    await w.advance(1)
    const second = requestSweep(w.engine.context, root, {}, 20_000, never)
    const asked = await w.store.now()
    await until(
      async () => (await w.store.read(({ db }) => db.selectFrom('cleanups').selectAll().executeTakeFirstOrThrow())).requested_at === asked,
      'the second is asked for',
    )
    hung.open()
    const [[one], [two]] = await Promise.all([first, second])
    expect(Date.parse(two?.startedAt ?? '')).toBe(asked)
    expect(one?.state).toBe('ended')
    expect(w.provider.count('list')).toBe(2)
  })

  it('what has not ended in time is pending, and is found later', async () => {
    const w = await world({ start: false })
    const [view] = await requestSweep(w.engine.context, root, {}, 10, never)
    expect(view).toMatchObject({ state: 'pending', id: null, outcome: null, cells: [], orphans: null })
    expect(await listSweeps(w.engine.context, root, { limit: 10 })).toEqual([])
    await w.engine.start()
    const [row] = await until(async () => {
      const rows = await listSweeps(w.engine.context, root, { limit: 10 })
      return rows.length > 0 ? rows : undefined
    }, 'it ended')
    expect(await getSweep(w.engine.context, root, row?.id ?? '')).toEqual(row)
  })

  it('says why each orphan waits, and until when; in delete mode, what it began', async () => {
    const w = await world({ mode: 'report' })
    const { key, lease } = await w.orphan()
    const [seen] = (await w.sweep()).orphans ?? []
    expect(seen).toMatchObject({ target: key, name: lease.slug, reason: 'orphan.owner-ended', removalID: null })
    expect(seen?.heldBack.map(({ what }) => what)).toEqual([
      expect.stringContaining('the mode is report'),
      expect.stringMatching(/^quarantine: 1 more/),
    ])
    expect(seen?.heldBack[1]?.until).toBe(seen?.eligibleAt)
    w.settings.mode = 'delete'
    const began = await w.sweep(900)
    expect(began.plan).toMatchObject({ kind: 'begin', removals: [key], waiting: 0 })
    await until(() => w.provider.boxes.size === 0, 'it is taken back')
  })

  it('a dry run writes nothing and calls only scope, list and read, and says what the sweep then does', async () => {
    const w = await world({ mode: 'delete' })
    const { key } = await w.orphan()
    await w.sweep()
    await w.advance(900)
    const before = await everyRow(w.store)
    const calls = w.provider.calls.length
    const view = await dry(w)
    expect(await everyRow(w.store)).toEqual(before)
    expect(new Set(w.provider.calls.slice(calls).map((call) => call.op))).toEqual(new Set(['list']))
    expect(view).toMatchObject({
      id: null,
      state: 'dry-run',
      outcome: 'unsettled',
      why: ['1 deletion would begin'],
      verdicts: { 'orphan.owner-ended': 1 },
      plan: { kind: 'begin', removals: [key] },
    })
    expect(view?.orphans).toMatchObject([{ target: key, heldBack: [] }])
    // The twin: the sweep itself writes, and does what was said.
    const real = await w.sweep(0)
    expect(real.plan).toEqual(view?.plan)
    expect(real.why).toEqual(['1 deletion is in progress'])
    expect(await everyRow(w.store)).not.toEqual(before)
  })

  it('a dry run in report mode shows the plan of delete mode, and an orphan that no sweep has seen is in no removal', async () => {
    const w = await world({ mode: 'report' })
    const { key } = await w.orphan()
    await w.advance(60)
    expect(await dry(w)).toMatchObject({
      plan: null,
      orphans: [{ target: key, findingID: null }],
      why: [expect.stringContaining('quarantine')],
    })
    await w.sweep(0)
    await w.advance(900)
    expect(await dry(w)).toMatchObject({
      mode: 'report',
      plan: { removals: [key] },
      orphans: [{ heldBack: [{ what: expect.stringContaining('the mode is report') }] }],
    })
  })

  it('is refused where sweeps are off, where the provider can not list, for what there is not, and to those who are no operators', async () => {
    const off = await world({ mode: 'off' })
    const disabled = { code: 'sweep_disabled', message: expect.stringContaining('are off (test)') as string }
    await expect(requestSweep(off.engine.context, root, {}, 10, never)).rejects.toMatchObject(disabled)
    await expect(dryRunSweep(off.engine.context, root, {}, never)).rejects.toMatchObject(disabled)
    const blind = await world({
      provider: (scripted) => Object.defineProperty(Object.create(scripted) as Provider, 'list', { value: undefined }),
    })
    await expect(requestSweep(blind.engine.context, root, {}, 10, never)).rejects.toMatchObject({
      code: 'sweep_disabled',
      message: expect.stringContaining('can not list'),
    })
    const w = await world()
    await expect(requestSweep(w.engine.context, root, { backend: 'nope' }, 10, never)).rejects.toMatchObject({ code: 'bad_request' })
    await expect(requestSweep(w.engine.context, root, { project: 'nope' }, 10, never)).rejects.toMatchObject({ code: 'bad_request' })
    for (const role of ['user', 'approver'] as const)
      await expect(requestSweep(w.engine.context, actor(role, null), {}, 10, never)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(requestSweep(w.engine.context, actor('operator', 'default'), { project: 'other' }, 10, never)).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  it('certificates are seen by those of their project', async () => {
    const w = await world()
    await w.store.write(async (tx) => {
      await insertProject(tx, 'other')
      await insertBackend(tx, { project: 'other', name: 'local', provider: 'process', config: '{}', scope: null, is_default: 1 })
    })
    const mine = await w.sweep()
    await w.sweep(60, { project: 'other' })
    const context = w.engine.context
    expect((await listSweeps(context, root, { limit: 10 })).map((one) => one.project).toSorted()).toEqual(['default', 'other'])
    expect((await listSweeps(context, actor('user', 'other'), { limit: 10 })).map((one) => one.project)).toEqual(['other'])
    await expect(listSweeps(context, root, { project: 'other', backend: 'nope', limit: 10 })).rejects.toMatchObject({ code: 'bad_request' })
    await expect(getSweep(context, actor('user', 'other'), mine.id ?? '')).rejects.toMatchObject({ code: 'not_found' })
    expect((await getSweep(context, actor('user', 'default'), mine.id ?? '')).id).toBe(mine.id)
  })

  it('findings are filtered by code and backend, and an orphan shows its quarantine', async () => {
    const w = await world()
    const { key, lease } = await w.orphan()
    await w.sweep()
    const context = w.engine.context
    const of = async (filter: object) => (await listFindings(context, root, { limit: 10, ...filter })).map((one) => one.code)
    expect(await of({ code: ['orphan', 'missing'] })).toEqual(['orphan'])
    expect(await of({ code: ['missing'] })).toEqual([])
    expect(await of({ backend: 'local' })).toEqual(['orphan'])
    await expect(of({ backend: 'nope' })).rejects.toMatchObject({ code: 'bad_request' })
    const [finding] = await listFindings(context, root, { limit: 10 })
    expect(finding).toMatchObject({
      backend: 'local',
      ref: lease.ref,
      reason: 'orphan.owner-ended',
      target: { id: key },
      quarantine: { timesSeen: 1 },
    })
    const { since, eligibleAt } = finding?.quarantine ?? { since: '', eligibleAt: '' }
    expect(Date.parse(eligibleAt) - Date.parse(since)).toBe(900_000)
  })

  describe('what a provider finds at odds with a ref', () => {
    const listing = (w: SweepWorld, ...contradictions: Contradiction[]) => {
      w.provider.onList = () => [
        ...contradictions.map((contradiction) => ({ type: 'contradiction', contradiction }) as const),
        ...everything(w.provider.boxes, 'here'),
      ]
    }
    const open = async (w: SweepWorld) => listFindings(w.engine.context, root, { state: 'open', limit: 10 })

    it('is one finding while it stands, and is resolved when it is gone', async () => {
      const w = await world()
      const lease = await leaseOn(w.engine, long)
      listing(w, { nativeId: 'pid:7', location: 'here', ref: lease.ref, why: 'process 7 carries the ref' })
      for (let i = 0; i < 2; i++) expect((await w.sweep()).outcome).toBe('clean')
      expect(await open(w)).toMatchObject([
        { code: 'contradiction', target: { id: 'process/here/pid:7' }, timesSeen: 2, ref: lease.ref, backend: 'local' },
      ])
      listing(w)
      await w.sweep()
      expect(await open(w)).toEqual([])
    })

    it('is nobody’s business where nobody here issued the ref (orphans R50)', async () => {
      const w = await world()
      await leaseOn(w.engine, long)
      listing(w, { nativeId: 'pid:7', location: 'here', ref: 'r00000000001', why: 'process 7 carries a ref' })
      await w.sweep()
      expect(await open(w)).toEqual([])
      // The twin: what carries no ref at all and yet is at odds is told.
      listing(w, { nativeId: 'damaged', location: 'here', why: 'its record can not be read' })
      await w.sweep()
      expect(await open(w)).toHaveLength(1)
    })
  })
})
