import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { readEvents } from '../../src/store/events.ts'
import { enrol } from '../../src/store/cleanups.ts'
import { enrolMissing } from '../../src/engine/sweep/enrol.ts'
import type { SweepMode } from '../../src/model/sweep-settings.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from '../support/engine.ts'
import { everything, scriptedProvider } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { sweepsAs } from '../support/sweep-settings.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const intervalMs = 900_000
const marginMs = 600_000

eachStore('a sweep', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })

  const world = async (mode: SweepMode = 'report', graceMs = 900_000) => {
    const store = await open()
    await setClock(store, t0)
    const provider = scriptedProvider()
    const settings = { mode, graceMs }
    const engine = await makeEngine(store, provider, { sweeps: sweepsAs(settings) })
    engines.push(engine)
    await engine.start()
    return { store, provider, engine, settings }
  }
  type World = Awaited<ReturnType<typeof world>>

  const certificates = (store: Store) => store.read(({ db }) => db.selectFrom('sweeps').selectAll().orderBy('id').execute())
  const cleanup = (store: Store) => store.read(({ db }) => db.selectFrom('cleanups').selectAll().executeTakeFirstOrThrow())
  const findings = (store: Store) => store.read(({ db }) => db.selectFrom('findings').selectAll().orderBy('id').execute())
  const openFindings = async (store: Store) => (await findings(store)).filter((row) => row.state === 'open')

  /** Moves the clock to the next time that a sweep is due, and waits until the row was processed. @returns the newest certificate */
  const nextSweep = async ({ store, engine }: Pick<World, 'store' | 'engine'>, afterMs = 2 * intervalMs) => {
    await enrolMissing(engine.context)
    // One that is under way from before would end without a lock of its own to count.
    const before = await until(async () => {
      const row = await cleanup(store)
      return row.lock_owner === null ? row : undefined
    }, 'the cleanup is free')
    await advance(store, afterMs)
    await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).where('lock_owner', 'is', null).execute())
    engine.context.signals.wake('sweep')
    await until(async () => {
      const now = await cleanup(store)
      return now.lock_fence > before.lock_fence && now.lock_owner === null
    }, 'the cleanup is processed')
    return (await certificates(store)).at(-1)
  }

  /** A lease whose box is gone and whose leftover turns up again, exactly as it was recorded: an orphan. */
  const orphanOn = async (w: World): Promise<{ lease: LeaseView; box: ListedResource }> => {
    const lease = await leaseOn(w.engine)
    const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    w.provider.boxes.set(box.resource.nativeId, box)
    return { lease, box }
  }

  it('in report mode an orphan is one finding and one event, and nothing is removed (orphans R55, R67, R68, case leases 14)', async () => {
    const w = await world('report')
    const { lease, box } = await orphanOn(w)
    const removals = w.provider.count('remove')
    for (let i = 0; i < 3; i++) await nextSweep(w)
    const [finding] = await openFindings(w.store)
    expect(finding).toMatchObject({ code: 'orphan', target_id: `scripted/here/${box.resource.nativeId}`, times_seen: 2, ref: lease.ref })
    const told = (await readEvents(w.store, { project: null, after: 0, limit: 500, target: lease.instanceID })).filter(
      ({ event }) => event.code === 'finding.opened',
    )
    expect(told).toHaveLength(1)
    // It is told again once a day, also in a project where nothing else happens.
    await nextSweep(w, 86_400_000)
    const again = (await readEvents(w.store, { project: null, after: 0, limit: 500, target: null })).filter(
      ({ event }) => event.code === 'finding.standing',
    )
    expect(again).toHaveLength(1)
    expect(w.provider.count('remove')).toBe(removals)
    expect(w.provider.boxes.size).toBe(1)
  })

  it('in delete mode it goes once it has stood in two complete inventories past the grace, with proof (orphans R69, leases R58, case E3)', async () => {
    const w = await world('delete')
    const { box } = await orphanOn(w)
    expect((await nextSweep(w))?.outcome).toBe('unsettled')
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    await nextSweep(w)
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'the orphan is removed')
    await until(async () => (await openFindings(w.store)).length === 0, 'its finding is resolved')
    const audit = await w.store.read(({ db }) => db.selectFrom('audit').selectAll().where('kind', '=', 'intent').orderBy('id').execute())
    expect(JSON.parse(audit.at(-1)?.body ?? '{}')).toMatchObject({
      cause: 'orphan.owner-ended',
      identity: { immutableId: box.resource.immutableId },
    })
    expect((await nextSweep(w))?.outcome).toBe('clean')
  })

  it('a keep label that the fresh read shows, put there since the listing, holds it back; with the label gone it goes (leases R58, R68)', async () => {
    const w = await world('delete')
    const { box } = await orphanOn(w)
    const removals = w.provider.count('remove')
    w.provider.onRead = () => ({ kind: 'present', found: { ...box, labels: { ...box.labels, keep: 'yes' } }, contradictions: [] })
    for (let i = 0; i < 2; i++) await nextSweep(w)
    const held = (): Promise<string | null | undefined> =>
      w.store.read(
        async ({ db }) => (await db.selectFrom('removals').select('held_by').where('state', '<>', 'gone').executeTakeFirst())?.held_by,
      )
    await until(async () => (await held()) === 'label keep=yes', 'the removal is held')
    expect(w.provider.count('remove')).toBe(removals)
    w.provider.onRead = undefined
    await advance(w.store, 61_000)
    w.engine.context.signals.wake('remove')
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'it goes when nobody keeps it')
  })

  it('within the grace nothing goes, however often it is seen (leases R58)', async () => {
    const w = await world('delete', 40 * intervalMs)
    const { box } = await orphanOn(w)
    for (let i = 0; i < 4; i++) await nextSweep(w)
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    expect((await openFindings(w.store))[0]?.complete_sightings).toBe(4)
  })

  it('a failed page in between neither counts nor resets (case I4, case I1, orphans R78)', async () => {
    const w = await world('delete')
    const { box } = await orphanOn(w)
    await nextSweep(w)
    w.provider.onList = () => [
      { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'partial', why: 'page 2 answered 500' }, pages: 1 } },
    ]
    expect((await nextSweep(w))?.outcome).toBe('unsettled')
    expect((await openFindings(w.store))[0]).toMatchObject({ code: 'orphan', complete_sightings: 1 })
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    w.provider.onList = undefined
    await nextSweep(w)
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'the orphan is removed at its second complete sighting')
  })

  it('a listing of which no page of any cell arrives has failed, and is put off as one that raised (orphans R22, R79, leases R60, case orphan 10)', async () => {
    const w = await world('report')
    await orphanOn(w)
    await nextSweep(w)
    const nothing = (pages: number) => () => [
      {
        type: 'coverage' as const,
        coverage: { location: 'here', kind: 'box', state: { kind: 'partial' as const, why: 'HTTP 503' }, pages },
      },
    ]
    w.provider.onList = nothing(0)
    const failed = await nextSweep(w)
    expect(failed?.outcome).toBe('failed')
    expect(JSON.parse(failed?.certificate ?? '{}')).toMatchObject({
      error: 'nothing could be listed: HTTP 503',
      why: ['the listing failed'],
      cells: [{ state: 'partial', pages: 0 }],
    })
    const circuit = () => w.store.read(({ db }) => db.selectFrom('circuits').selectAll().executeTakeFirst())
    expect([(await cleanup(w.store)).failures, (await circuit())?.failures]).toEqual([1, 1])
    expect((await openFindings(w.store))[0]).toMatchObject({ code: 'orphan', complete_sightings: 1 })
    // The twin: with one page it is a listing with gaps (orphans R77).
    w.provider.onList = nothing(1)
    expect((await nextSweep(w))?.outcome).toBe('unsettled')
    expect([(await cleanup(w.store)).failures, await circuit()]).toEqual([0, undefined])
  })

  it('a lease whose clock ran out, and whose removal keeps failing, is no contradiction (leases R40, I10)', async () => {
    const w = await world('report')
    const lease = await leaseOn(w.engine, { ttlSeconds: 600, idleTimeoutSeconds: 600 })
    w.provider.onRemove = () => ({ kind: 'denied', permission: 'boxes.delete' })
    await advance(w.store, 601_000)
    w.engine.context.signals.wake('expire')
    const failing = await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'failed')
    // By its row it is live until its removal succeeds.
    expect(failing.state).toBe('active')
    const sweep = await nextSweep(w)
    expect(JSON.parse(sweep?.certificate ?? '{}').verdicts).toEqual({ 'inFlight.terminating': 1 })
    expect(await openFindings(w.store)).toEqual([])
  })

  it('a change starts the quarantine afresh, and so does its reversal (leases R58, R59)', async () => {
    const w = await world('delete', 3 * intervalMs)
    const { box } = await orphanOn(w)
    await nextSweep(w)
    w.provider.boxes.set(box.resource.nativeId, { ...box, labels: { ...box.labels, team: 'x' } })
    await nextSweep(w)
    expect((await openFindings(w.store))[0]).toMatchObject({ complete_sightings: 1 })
    w.provider.boxes.set(box.resource.nativeId, box)
    await nextSweep(w)
    expect((await openFindings(w.store))[0]).toMatchObject({ complete_sightings: 1 })
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
  })

  it('a listing that fails is no empty listing: nothing is resolved, and the next try is put off (orphans R22, R79, R36, case orphan 10)', async () => {
    const w = await world('report')
    await orphanOn(w)
    await nextSweep(w)
    w.provider.onList = () => {
      throw new Error('401 unauthorized')
    }
    const failed = await nextSweep(w)
    expect(failed?.outcome).toBe('failed')
    expect(JSON.parse(failed?.certificate ?? '{}')).toMatchObject({ error: '401 unauthorized' })
    expect((await openFindings(w.store)).map((row) => row.code)).toEqual(['orphan'])
    const first = await cleanup(w.store)
    expect(first.failures).toBe(1)
    await nextSweep(w, 7 * 3_600_000)
    const second = await cleanup(w.store)
    expect(second.failures).toBe(2)
    expect((second.due_at ?? 0) - (await w.store.now())).toBeGreaterThanOrEqual(2 * intervalMs)
    expect(second.clean_at).toBe(first.clean_at)
  })

  it('live boxes, strangers, other installations and malformed refs are not touched; a copy is reported (cases orphan 7, B1, B4, orphans R50, R103)', async () => {
    const w = await world('delete')
    const live = await leaseOn(w.engine, { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    const box = w.provider.boxes.get(live.cloudID ?? '') as ListedResource
    const other = (nativeId: string, over: Partial<ListedResource>): void =>
      void w.provider.boxes.set(nativeId, { ...box, ...over, resource: { ...box.resource, nativeId, immutableId: `other-${nativeId}` } })
    other('copy', { fixedAttemptToken: null })
    other('stranger', { fixedAttemptToken: null, tags: { ref: 'zzzzzzzzzzzz', installation: null, attempt: null, mac: null } })
    other('foreign', { fixedAttemptToken: null, tags: { ref: 'zzzzzzzzzzzz', installation: 'other123', attempt: 'x', mac: null } })
    other('malformed', { fixedAttemptToken: null, tags: { ref: ' R000000ABCD1', installation: null, attempt: null, mac: null } })
    for (let i = 0; i < 4; i++) await nextSweep(w)
    expect(w.provider.count('remove')).toBe(0)
    expect([...w.provider.boxes.keys()].toSorted()).toEqual([box.resource.nativeId, 'copy', 'foreign', 'malformed', 'stranger'].toSorted())
    expect((await openFindings(w.store)).map((row) => `${row.code} ${row.target_id}`).toSorted()).toEqual([
      'contradiction scripted/here/copy',
      'malformed-ref scripted/here/malformed',
    ])
  })

  it('a hard-deleted owner leaves its ledger row: an orphan, with the old id and name on its event (case orphan 3, orphans R10, R51, R84)', async () => {
    const w = await world('report')
    const { lease, box } = await orphanOn(w)
    await w.store.write((tx) =>
      tx.db
        .deleteFrom('instances')
        .where('id', '=', lease.instanceID as never)
        .execute(),
    )
    await nextSweep(w)
    expect((await openFindings(w.store))[0]).toMatchObject({ code: 'orphan', target_id: `scripted/here/${box.resource.nativeId}` })
    const [told] = (await readEvents(w.store, { project: null, after: 0, limit: 500, target: lease.instanceID })).filter(
      ({ event }) => event.code === 'finding.opened',
    )
    expect(told?.targets).toContainEqual(expect.objectContaining({ type: 'instance', id: lease.instanceID, name: lease.slug }))
  })

  it('what changed around the listing is not judged yet (orphans R62, R64, case orphan 5)', async () => {
    const w = await world('report')
    await orphanOn(w)
    expect((await nextSweep(w, marginMs - 1_000))?.outcome).toBe('unsettled')
    expect(await openFindings(w.store)).toEqual([])
    await nextSweep(w, 2_000)
    expect((await openFindings(w.store)).map((row) => row.code)).toEqual(['orphan'])
  })

  it('an idle project is not listed again after a clean sweep, and costs no provider call (orphans R39-R41, R76)', async () => {
    const w = await world('report')
    await leaseOn(w.engine, { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    expect((await nextSweep(w))?.outcome).toBe('clean')
    await nextSweep(w)
    const lists = w.provider.count('list')
    const sweeps = (await certificates(w.store)).length
    const calls = w.provider.calls.length
    for (let i = 0; i < 3; i++) await nextSweep(w)
    expect(w.provider.count('list')).toBe(lists)
    expect(w.provider.calls.length).toBe(calls)
    expect((await certificates(w.store)).length).toBe(sweeps)
    // The twin: activity opens the gate.
    await leaseOn(w.engine, { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    await nextSweep(w)
    expect(w.provider.count('list')).toBe(lists + 1)
  })

  it('off, report, delete, report on an idle project with one orphan (case orphan 8, orphans R33, R43, R73)', async () => {
    const w = await world('off')
    const { box } = await orphanOn(w)
    expect(await enrolMissing(w.engine.context)).toBe(0)
    expect(w.provider.count('list')).toBe(0)
    w.settings.mode = 'report'
    expect(await enrolMissing(w.engine.context)).toBe(1)
    await nextSweep(w)
    await nextSweep(w)
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    w.settings.mode = 'delete'
    await nextSweep(w)
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'delete mode removes it without any other activity')
  })

  it('a mode that changes in the middle of a plan stops what has not begun', async () => {
    const w = await world('delete')
    const { box } = await orphanOn(w)
    await nextSweep(w)
    w.provider.onRead = () => {
      w.settings.mode = 'report'
      return { kind: 'unknown', error: 'busy' }
    }
    await nextSweep(w)
    await until(
      async () =>
        (await w.store.read(({ db }) => db.selectFrom('removals').selectAll().where('cause', 'like', 'orphan.%').execute()))[0]
          ?.failures === 1,
      'the first try failed',
    )
    w.provider.onRead = undefined
    await advance(w.store, 300_000)
    w.engine.context.signals.wake('remove')
    await until(
      async () =>
        (await w.store.read(({ db }) => db.selectFrom('removals').selectAll().where('cause', 'like', 'orphan.%').execute()))[0]?.held_by ===
        'mode report',
      'it is held',
    )
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
  })

  it('a plan beyond the limits is not begun at all, and a person is told (I8, case C7)', async () => {
    const w = await world('delete')
    for (let i = 0; i < 12; i++) await orphanOn(w)
    const removals = w.provider.count('remove')
    for (let i = 0; i < 3; i++) await nextSweep(w)
    expect(w.provider.count('remove')).toBe(removals)
    expect(w.provider.boxes.size).toBe(12)
    const waiting = (await openFindings(w.store)).find((row) => row.code === 'plan-waiting')
    expect(waiting?.message).toMatch(/12 groups/)
  })

  it('a box that vanished ends its lease after two complete inventories and an exact read, and not before (decisions 2, case J5)', async () => {
    const w = await world('report')
    const long = { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 }
    const lagging = await leaseOn(w.engine, long)
    const vanished = await leaseOn(w.engine, long)
    // A listing that lags hides both; only one is really gone.
    w.provider.boxes.delete(vanished.cloudID ?? '')
    w.provider.onList = () => [...everything(new Map(), 'here')]
    await nextSweep(w)
    expect((await openFindings(w.store)).map((row) => row.code)).toEqual(['not-seen', 'not-seen'])
    expect((await leaseWhen(w.engine, vanished.id, () => true)).state).toBe('active')
    await nextSweep(w)
    expect(await leaseWhen(w.engine, vanished.id, (view) => view.state === 'failed')).toMatchObject({
      failureCode: 'resource_missing',
      cleanup: { state: 'gone' },
    })
    expect((await leaseWhen(w.engine, lagging.id, () => true)).state).toBe('active')
    expect((await openFindings(w.store)).filter((row) => row.code === 'missing')).toHaveLength(1)
  })

  it('a partial or denied cell makes nothing missing (I5, case I7, C3)', async () => {
    const w = await world('report')
    const lease = await leaseOn(w.engine, { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    w.provider.boxes.delete(lease.cloudID ?? '')
    w.provider.onList = () => [
      { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'denied', permission: 'box.list' }, pages: 0 } },
    ]
    for (let i = 0; i < 3; i++) await nextSweep(w)
    expect((await leaseWhen(w.engine, lease.id, () => true)).state).toBe('active')
    expect((await openFindings(w.store)).map((row) => [row.code, row.message])).toEqual([
      ['denied-kind', 'box in here may not be listed: box.list'],
    ])
  })

  it('another account behind the backend: no verdict, one finding that lists what is still open there (orphans R100, U16, case leases 19)', async () => {
    const w = await world('delete')
    const lease = await leaseOn(w.engine, { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    const { box } = await orphanOn(w)
    const lists = w.provider.count('list')
    w.provider.scope = async () => ({ kind: 'known', scope: 'scripted:two' as never, description: 'another' })
    for (let i = 0; i < 3; i++) await nextSweep(w)
    expect(w.provider.count('list')).toBe(lists)
    expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
    const [finding] = await openFindings(w.store)
    expect(finding?.code).toBe('scope-stranded')
    expect(finding?.evidence).toContain(lease.ref)
  })

  it('enrolment is for backends of projects with a ref, once, also when two do it at once (orphans R28-R32)', async () => {
    const w = await world('report')
    expect(await enrolMissing(w.engine.context)).toBe(0)
    await leaseOn(w.engine)
    await Promise.all([
      enrolMissing(w.engine.context),
      enrolMissing(w.engine.context),
      w.store.write((tx) => enrol(tx, 'default', 'local', tx.now)),
    ])
    expect(await w.store.read(({ db }) => db.selectFrom('cleanups').select('id').execute())).toEqual([{ id: 'default/local' }])
  })

  it('a deleted backend drains: its row goes when nothing of ours is left (orphans R34, U7)', async () => {
    const w = await world('report')
    const lease = await leaseOn(w.engine)
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    await w.store.write((tx) => tx.db.updateTable('backends').set({ deleted_at: tx.now, is_default: 0 }).execute())
    await enrolMissing(w.engine.context)
    await advance(w.store, 2 * intervalMs)
    await w.store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).execute())
    w.engine.context.signals.wake('sweep')
    await until(
      async () => (await w.store.read(({ db }) => db.selectFrom('backends').select('name').execute())).length === 0,
      'the backend is gone',
    )
    expect(await w.store.read(({ db }) => db.selectFrom('cleanups').select('id').execute())).toEqual([])
  })
})
