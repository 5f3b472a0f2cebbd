import { describe, expect, it } from 'vitest'
import { addFreeze, addHold, listFindings, listSweeps } from '../../../src/engine/admin/index.ts'
import { explainKey } from '../../../src/engine/explain/index.ts'
import { releaseLease, createLease } from '../../../src/engine/leases/index.ts'
import type { ListedResource } from '../../../src/providers/contract.ts'
import { insertProject } from '../../../src/store/projects.ts'
import { ann, leaseOn, leaseWhen, root } from '../../support/engine.ts'
import { everything, gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { long, t0, type SweepWorld } from '../../support/sweep-world.ts'
import { until } from '../../support/until.ts'
import { actor } from '../admin/support.ts'
import { explaining, facts } from './support.ts'

const never = new AbortController().signal

eachStore('explain', (open) => {
  const { world, ask, refused } = explaining(open)
  const attemptOf = (w: SweepWorld, ref: string) =>
    w.store.read(({ db }) =>
      db
        .selectFrom('attempts')
        .selectAll()
        .where('ref', '=', ref as never)
        .executeTakeFirstOrThrow(),
    )
  const removalOf = (w: SweepWorld, ref: string) =>
    w.store.read(({ db }) =>
      db
        .selectFrom('removals')
        .selectAll()
        .where('ref', '=', ref as never)
        .executeTakeFirstOrThrow(),
    )

  it('a live box is tracked by whatever name it is called, until its end or a heartbeat before', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, { slug: 'calm-otter', ttlSeconds: 3600, idleTimeoutSeconds: 600 })
    const attempt = await attemptOf(w, lease.ref)
    const keys = [
      lease.id,
      lease.slug,
      lease.ref,
      lease.instanceID,
      attempt.id,
      `process/${lease.location}/${lease.cloudID}`,
      lease.cloudID ?? '',
    ]
    for (const key of keys) {
      const view = await ask(w, key)
      expect(view, key).toMatchObject({ verdict: 'tracked', reason: 'tracked.bound', project: 'default' })
      expect(view.heldBack, key).toEqual([{ what: `lease ${lease.id} of ann holds it`, until: lease.expiresAt }])
      expect(view.change).toContain(`a heartbeat before ${lease.expiresAt}, or its end then`)
      expect(view.change).toContain(new Date(t0 + 3_600_000).toISOString())
    }
    expect(facts(await ask(w, lease.id))).toContain('its idle time is 10m')
  })

  it('a lease at its maximum lifetime says that no heartbeat moves its end', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, { ttlSeconds: 600, idleTimeoutSeconds: 600 })
    expect((await ask(w, lease.id)).change).toContain('which no heartbeat moves')
  })

  it('what is being made is in flight until its attempt is stuck', async () => {
    const w = await world()
    const hung = gate()
    w.provider.onCreate = async () => {
      await hung.promise
      return undefined
    }
    const { lease } = await createLease(w.engine.context, ann, long)
    await until(() => w.provider.count('create') === 1, 'the create is called')
    const view = await ask(w, lease.id)
    expect(view).toMatchObject({
      verdict: 'inFlight',
      reason: 'inFlight.pending',
      heldBack: [{ what: 'attempt 1 is open', until: new Date(t0 + 120_000).toISOString() }],
    })
    await w.advance(130)
    expect(await ask(w, lease.id)).toMatchObject({ reason: 'inFlight.stuck', heldBack: [{ until: null }] })
    expect(await ask(w, (await attemptOf(w, lease.ref)).id)).toMatchObject({ type: 'attempt', verdict: 'inFlight' })
    hung.open()
    await leaseWhen(w.engine, lease.id, (one) => one.state === 'active')
    expect(await ask(w, lease.id)).toMatchObject({ verdict: 'tracked' })
  })

  it('an ended lease is gone, by its id and by its slug', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, { ...long, slug: 'calm-otter' })
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    const view = await ask(w, lease.id)
    expect(view).toMatchObject({ verdict: 'gone', heldBack: [] })
    expect(facts(view)).toMatch(/the removal of .* was about to be asked for\nthe provider answered gone/)
    expect(await ask(w, (await removalOf(w, lease.ref)).id)).toMatchObject({ type: 'removal', verdict: 'gone' })
    expect(await ask(w, lease.cloudID ?? '')).toMatchObject({ type: 'resource', verdict: 'gone' })
    expect(await ask(w, 'calm-otter')).toMatchObject({ type: 'lease', subject: expect.stringContaining(lease.id), verdict: 'gone' })
    await refused(w, 'calm-otters')
  })

  it('of several leases that had a slug it tells of the live one, else of the newest, and of none of another project', async () => {
    const w = await world()
    const first = await leaseOn(w.engine, { ...long, slug: 'calm-otter' })
    await releaseLease(w.engine.context, ann, first.id, {})
    await w.advance(1)
    const second = await leaseOn(w.engine, { ...long, slug: 'calm-otter', keep: true })
    expect(await ask(w, 'calm-otter')).toMatchObject({ verdict: 'tracked', subject: expect.stringContaining(second.id) })
    await releaseLease(w.engine.context, ann, second.id, {})
    // A retained one: what a person most wants to look at, and no live lease.
    expect(await ask(w, 'calm-otter')).toMatchObject({
      verdict: 'held',
      reason: 'held.retained',
      subject: expect.stringContaining(second.id),
    })
    await w.store.write((tx) => insertProject(tx, 'other'))
    await refused(w, 'calm-otter', actor('operator', 'other'))
    await w.store.write((tx) => insertProject(tx, 'calm-otter'))
    expect(await ask(w, 'calm-otter')).toMatchObject({ type: 'project' })
  })

  it('of a machine that is gone it says so, with the proof, and then what is left of it by its own verdict', async () => {
    const w = await world()
    Object.assign(w.provider, { kinds: ['box', 'disk'] })
    const lease = await leaseOn(w.engine, { ...long, slug: 'calm-otter' })
    const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    const resource = { ...box.resource, kind: 'disk', nativeId: 'disk-1', immutableId: 'disk-1#1' }
    w.provider.boxes.set('disk-1', { ...box, resource, name: 'its disk' })
    w.provider.onList = () =>
      ['box', 'disk'].flatMap((kind) => [
        {
          type: 'page' as const,
          location: 'here',
          kind,
          resources: [...w.provider.boxes.values()].filter((one) => one.resource.kind === kind),
        },
        { type: 'coverage' as const, coverage: { location: 'here', kind, state: { kind: 'complete' as const }, pages: 1 } },
      ])
    await w.sweep()
    for (const key of [`process/here/${lease.cloudID}`, lease.id, 'calm-otter', lease.instanceID, lease.ref]) {
      const view = await ask(w, key)
      expect(view, key).toMatchObject({ verdict: 'gone', reason: null })
      expect(view.tree.fact, key).toContain(`box ${lease.cloudID}: not in the list.`)
      expect(view.tree.fact, key).toContain('is left: process/here/disk-1 (orphan)')
      expect(facts(view), key).toContain('orphan (orphan.owner-ended): Its owner has ended.')
      expect(facts(view), key).toContain(`${lease.cloudID} was proved absent: not in the list`)
      expect(view.heldBack[0]?.what, key).toContain('of what is left: the mode is report')
      expect(view.change, key).toContain('explain process/here/disk-1')
    }
    expect(await ask(w, 'process/here/disk-1')).toMatchObject({ verdict: 'orphan', reason: 'orphan.owner-ended' })
    // The twin: where the machine itself is there again, it is no more gone than it was ever.
    w.provider.boxes.set(box.resource.nativeId, box)
    await w.sweep()
    expect(await ask(w, lease.id)).toMatchObject({ verdict: 'orphan' })
  })

  it('a retained box is held by the release that kept it', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, { ...long, keep: true })
    await releaseLease(w.engine.context, ann, lease.id, {})
    const view = await ask(w, lease.id)
    expect(view).toMatchObject({ verdict: 'held', reason: 'held.retained' })
    expect(view.change).toContain(`leasehold stop ${lease.id}`)
  })

  it('a removal that fails says with what, and when the next try comes', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    w.provider.onRemove = () => ({ kind: 'denied', permission: 'boxes.delete' })
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'failed')
    const retryAt = new Date(t0 + 300_000).toISOString()
    for (const key of [lease.id, (await removalOf(w, lease.ref)).id]) {
      const view = await ask(w, key)
      expect(view).toMatchObject({ verdict: 'inFlight', reason: 'inFlight.removal-open', change: `the next try at ${retryAt}` })
      expect(view.heldBack).toEqual([{ what: expect.stringContaining('boxes.delete'), until: retryAt }])
    }
  })

  it('holds and freezes are told with who, why and until when', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    const context = w.engine.context
    const hold = await addHold(context, root, { targetType: 'lease', targetID: lease.id, reason: 'looking into it', durationSeconds: 3600 })
    await addFreeze(context, root, { reason: 'an outage' })
    await releaseLease(context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'held')
    const view = await ask(w, lease.id)
    expect(view.verdict).toBe('held')
    expect(view.heldBack).toEqual([
      { what: 'a freeze of every scope: an outage', until: null },
      { what: `hold ${hold.id} on lease ${lease.id}: looking into it`, until: hold.until },
    ])
    expect(await ask(w, hold.id)).toMatchObject({
      type: 'hold',
      verdict: 'held',
      change: expect.stringContaining(`its end at ${hold.until}`),
    })
    await w.advance(4000)
    expect(await ask(w, hold.id)).toMatchObject({ verdict: 'ended' })
  })

  describe('what a sweep judged', () => {
    it('an orphan: the verdict with its facts, mode and quarantine with their end, and what would save it', async () => {
      const w = await world({ mode: 'report' })
      const { lease, key } = await w.orphan()
      await w.sweep()
      const [finding] = await listFindings(w.engine.context, root, { limit: 10 })
      for (const name of [
        key,
        finding?.id ?? '',
        lease.id,
        lease.ref,
        lease.instanceID,
        lease.cloudID ?? '',
        (await attemptOf(w, lease.ref)).id,
      ]) {
        const view = await ask(w, name)
        expect(view, name).toMatchObject({ verdict: 'orphan', reason: 'orphan.owner-ended', change: 'a hold or a keep label on it' })
        expect(view.heldBack.map(({ what }) => what)).toEqual([
          expect.stringContaining('the mode is report'),
          expect.stringMatching(/^quarantine: /),
        ])
        expect(view.heldBack[1]?.until).toBe(finding?.quarantine?.eligibleAt)
        expect(facts(view)).toMatch(/is ours by two facts: its tags, and /)
      }
      w.settings.mode = 'delete'
      expect((await ask(w, key)).heldBack).toHaveLength(1)
      await addFreeze(w.engine.context, root, { reason: 'wait' })
      expect((await ask(w, key)).heldBack[0]).toEqual({ what: 'a freeze of every scope: wait', until: null })
    })

    it('one beyond the limits waits for a person, and the plan is explained by its id', async () => {
      const w = await world({ mode: 'delete', graceMs: 0 })
      const orphans = []
      for (let i = 0; i < 3; i++) orphans.push(await w.orphan())
      await w.sweep()
      const { plan } = await w.sweep()
      expect(plan?.kind).toBe('wait')
      const view = await ask(w, orphans[0]?.key ?? '')
      expect(view.heldBack).toEqual([
        {
          what: expect.stringMatching(new RegExp(`^plan ${plan?.id} is beyond the limits: .*leasehold approve`)),
          until: null,
        },
      ])
      const waiting = await ask(w, plan?.id ?? '')
      expect(waiting).toMatchObject({ verdict: 'held', project: 'default' })
      expect(facts(waiting)).toContain(orphans[0]?.key ?? 'nothing')
    })

    it('one whose removal has begun is in flight, and gone afterwards', async () => {
      const w = await world({ mode: 'delete', graceMs: 0 })
      const { key } = await w.orphan()
      await w.sweep()
      w.provider.onRemove = () => ({ kind: 'denied', permission: 'boxes.delete' })
      await w.sweep()
      await until(async () => (await ask(w, key)).change.startsWith('the next try at '), 'the removal failed')
      expect(await ask(w, key)).toMatchObject({ verdict: 'inFlight', reason: 'inFlight.removal-open' })
      w.provider.onRemove = undefined
      await w.advance(300)
      w.engine.context.signals.wake('remove')
      await until(() => w.provider.boxes.size === 0, 'it is taken back')
      await until(async () => (await ask(w, key)).verdict === 'gone', 'it is proved gone')
      const [finding] = await listFindings(w.engine.context, root, { state: 'resolved', limit: 10 })
      expect(await ask(w, finding?.id ?? '')).toMatchObject({ verdict: 'gone' })
    })

    it('a copy of a live box is a contradiction, and the box stays tracked', async () => {
      const w = await world({ mode: 'delete', graceMs: 0 })
      const lease = await leaseOn(w.engine, long)
      const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
      const copy = { ...box, resource: { ...box.resource, nativeId: 'copy', immutableId: 'copy#1' }, fixedAttemptToken: null }
      w.provider.boxes.set('copy', copy)
      for (let i = 0; i < 3; i++) await w.sweep()
      expect(await ask(w, 'process/here/copy')).toMatchObject({
        type: 'resource',
        verdict: 'contradiction',
        reason: 'contradiction.tags-only',
      })
      expect(await ask(w, 'copy')).toMatchObject({ verdict: 'contradiction' })
      const view = await ask(w, lease.id)
      expect(view.verdict).toBe('tracked')
      expect(facts(view)).toContain('(contradiction) on process/here/copy')
    })

    it('a box that was not seen, and then is missing', async () => {
      const w = await world()
      const lease = await leaseOn(w.engine, long)
      w.provider.boxes.clear()
      w.provider.onList = () => [...everything(w.provider.boxes, 'here')]
      await w.sweep()
      const [notSeen] = await listFindings(w.engine.context, root, { limit: 10 })
      expect(await ask(w, notSeen?.id ?? '')).toMatchObject({
        verdict: 'missing',
        change: expect.stringContaining('a second complete inventory'),
      })
      expect(facts(await ask(w, lease.id))).toContain('(not-seen)')
      await w.sweep()
      await leaseWhen(w.engine, lease.id, (view) => view.state === 'failed')
      expect(await ask(w, `process/here/${lease.cloudID}`)).toMatchObject({ verdict: 'missing' })
      expect(facts(await ask(w, lease.id))).toContain('resource_missing')
    })
  })

  it('sweeps, events and backends have explanations of their own', async () => {
    const w = await world()
    await leaseOn(w.engine, long)
    const { id } = await w.sweep()
    const sweep = await ask(w, id ?? '')
    expect(sweep).toMatchObject({ type: 'sweep', verdict: 'clean' })
    expect(facts(sweep)).toContain('here, box: complete, 1 resource, 1 page')
    for (const key of ['default/local', 'local']) {
      const backend = await ask(w, key)
      expect(backend).toMatchObject({ type: 'backend', change: expect.stringMatching(/^the next sweep of its backend, due at \d/) })
      expect(facts(backend)).toContain('the mode of its sweeps is report (test)')
    }
    const event = await w.store.read(({ db }) =>
      db.selectFrom('events').selectAll().where('code', '=', 'lease.created').executeTakeFirstOrThrow(),
    )
    expect(await ask(w, event.id)).toMatchObject({ type: 'event', subject: `event ${event.id}` })
  })

  it('what belongs to another project is not found, and neither is what there is not', async () => {
    const w = await world()
    await w.store.write((tx) => insertProject(tx, 'other'))
    const { lease, key } = await w.orphan()
    const { id } = await w.sweep()
    const hold = await addHold(w.engine.context, root, { targetType: 'lease', targetID: lease.id, reason: 'r' })
    const stranger = actor('admin', 'other')
    const mine = actor('user', 'default')
    const [finding] = await listFindings(w.engine.context, root, { limit: 1 })
    const [sweep] = await listSweeps(w.engine.context, root, { limit: 1 })
    expect(sweep?.id).toBe(id)
    for (const name of [
      lease.id,
      lease.ref,
      lease.instanceID,
      lease.cloudID ?? '',
      key,
      id ?? '',
      hold.id,
      finding?.id ?? '',
      'default/local',
    ]) {
      await refused(w, name, stranger)
      expect(await ask(w, name, mine), name).toMatchObject({ project: 'default' })
    }
    for (const name of [
      'lh_000000000000',
      'in_0190f3c2a1b47d4c8e5f60718293a4b5',
      'fd_0190f3c2a1b47d4c8e5f60718293a4b5',
      'nothing',
      'a/b',
      'a/b/c',
      'pl_00',
      '%',
      "'",
    ])
      await refused(w, name)
  })

  it('a native id that two resources have is not enough', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    const other = await leaseOn(w.engine, long)
    const attempt = await attemptOf(w, other.ref)
    await w.store.write((tx) =>
      tx.db.updateTable('attempts').set({ native_id: lease.cloudID, location: 'there' }).where('id', '=', attempt.id).execute(),
    )
    await expect(explainKey(w.engine.context, root, lease.cloudID ?? '', never)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(/process\/here\/\S+ and process\/there\//),
    })
    expect(await ask(w, `process/here/${lease.cloudID}`)).toMatchObject({
      subject: `resource process/here/${lease.cloudID}`,
      verdict: 'tracked',
    })
  })

  it('a record that somebody deleted by hand is unknown until a sweep judges what is left', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    await w.store.write(async (tx) => {
      await tx.db.deleteFrom('leases').execute()
      await tx.db.deleteFrom('instances').execute()
    })
    for (const key of [lease.ref, lease.instanceID, lease.cloudID ?? ''])
      expect(await ask(w, key), key).toMatchObject({ verdict: 'unknown', change: expect.stringContaining('leasehold sweep') })
    await w.sweep()
    for (const key of [lease.ref, lease.instanceID, lease.cloudID ?? ''])
      expect(await ask(w, key), key).toMatchObject({ verdict: 'orphan', reason: 'orphan.owner-gone' })
  })
})
