import { expect, it } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { readEvents } from '../../src/store/events.ts'
import { enrol } from '../../src/store/cleanups.ts'
import { enrolMissing } from '../../src/engine/sweep/enrol.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { everything } from '../support/scripted-provider.ts'
import { advance, eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

import { intervalMs, marginMs } from '../support/sweep-rounds.ts'
import { sweepSuite } from '../support/sweep-suite.ts'

eachStore('a sweep, and what it belongs to', (open) => {
  const { world, certificates, openFindings, nextSweep, orphanOn } = sweepSuite(open)

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
