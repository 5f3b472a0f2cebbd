import { expect, it } from 'vitest'
import { readEvents } from '../../src/store/events.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { leaseOn, leaseWhen } from '../support/engine.ts'
import { advance, eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

import { intervalMs } from '../support/sweep-rounds.ts'
import { sweepSuite } from '../support/sweep-suite.ts'

eachStore('a sweep', (open) => {
  const { world, cleanup, openFindings, nextSweep, orphanOn } = sweepSuite(open)

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
})
