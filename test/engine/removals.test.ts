import { afterEach, expect, it } from 'vitest'
import { addFreeze, removeFreeze } from '../../src/engine/admin/freezes.ts'
import { addHold, removeHold } from '../../src/engine/admin/holds.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { createHeartbeat, getLease, releaseLease } from '../../src/engine/leases/index.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { RemoveOutcome } from '../../src/providers/contract.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from '../support/engine.ts'
import { gate, scriptedProvider, testScope, type Scripted } from '../support/scripted-provider.ts'
import { eachStore, setClock, type TestDatabase } from '../support/stores.ts'
import { statementsOf } from '../support/statements.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)

eachStore('the removal of a box', (_open, database) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const on = async (store: Store, provider: Scripted): Promise<Engine> => {
    const engine = await makeEngine(store, provider)
    engines.push(engine)
    await engine.start()
    return engine
  }
  const started = async (
    provider = scriptedProvider(),
  ): Promise<{ engine: Engine; provider: Scripted; store: Store; db: TestDatabase }> => {
    const db = await database()
    const store = await db.open()
    await setClock(store, t0)
    return { engine: await on(store, provider), provider, store, db }
  }
  /** Moves the clock; the pipelines look at once instead of at their next tick. */
  const at = async (engine: Engine, ms: number): Promise<void> => {
    await setClock(engine.context.store, ms)
    for (const pipeline of ['expire', 'provision', 'remove'] as const) engine.context.signals.wake(pipeline)
  }
  const removal = (store: Store, lease: LeaseView) =>
    store.read(({ db }) =>
      db
        .selectFrom('removals')
        .selectAll()
        .where('lease_id', '=', lease.id as never)
        .executeTakeFirstOrThrow(),
    )
  const findings = (store: Store) =>
    store.read(({ db }) => db.selectFrom('findings').select(['code', 'state', 'target_id', 'message']).orderBy('id').execute())
  const events = async (store: Store, code: string): Promise<string[]> =>
    (await store.read(({ db }) => db.selectFrom('events').select('message').where('code', '=', code).orderBy('id').execute())).map(
      (row) => row.message,
    )
  const gone = (engine: Engine, lease: LeaseView): Promise<LeaseView> =>
    leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
  const cleanup = (engine: Engine, lease: LeaseView, state: string): Promise<LeaseView> =>
    leaseWhen(engine, lease.id, (view) => view.cleanup.state === state)

  it('waits while a hold or a freeze stands, and goes on at once when it is lifted; the one beside it goes', async () => {
    const { engine, provider, store } = await started()
    const { context } = engine
    const held = await leaseOn(engine)
    const beside = await leaseOn(engine)
    const hold = await addHold(context, root, { targetType: 'lease', targetID: held.id, reason: 'look at it first' })
    await releaseLease(context, ann, held.id, {})
    await releaseLease(context, ann, beside.id, {})
    await gone(engine, beside)
    expect(await cleanup(engine, held, 'held')).toMatchObject({ state: 'released', cleanup: { heldBy: `hold ${hold.id}`, attempts: 0 } })
    expect(provider.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual([beside.cloudID])
    // The clock stands: nothing but the lifting can have woken it.
    await removeHold(context, root, hold.id)
    expect((await gone(engine, held)).cleanup.heldBy).toBeNull()

    for (const scope of ['*', testScope]) {
      const frozen = await leaseOn(engine)
      await addFreeze(context, root, { scope, reason: 'maintenance' })
      await releaseLease(context, ann, frozen.id, {})
      expect((await cleanup(engine, frozen, 'held')).cleanup.heldBy).toBe(scope === '*' ? 'freeze' : `freeze of ${scope}`)
      expect(provider.boxes.has(frozen.cloudID as string)).toBe(true)
      await removeFreeze(context, root, scope)
      await gone(engine, frozen)
    }
    // Once for each that was held, however often it was looked at.
    expect(await events(store, 'removal.held')).toHaveLength(3)
    expect(provider.boxes.size).toBe(0)
  })

  it('that expiry ordered waits for a hold too: the lease stays as it is, and no beat revives it (leases R22)', async () => {
    const { engine, provider, store } = await started()
    const { context } = engine
    const held = await leaseOn(engine, { idleTimeoutSeconds: 10 })
    const twin = await leaseOn(engine, { idleTimeoutSeconds: 10 })
    const hold = await addHold(context, root, {
      targetType: 'instance',
      targetID: held.instanceID,
      reason: 'evidence',
      durationSeconds: 600,
    })
    await at(engine, t0 + 10_000)
    expect((await gone(engine, twin)).state).toBe('expired')
    expect(await cleanup(engine, held, 'held')).toMatchObject({ state: 'active', cleanup: { heldBy: `hold ${hold.id}` } })
    await expect(createHeartbeat(context)(ann, held.id, {})).rejects.toMatchObject({ code: 'lease_expired' })
    expect(provider.boxes.size).toBe(1)
    // Its end is an end to the millisecond, found by the look every minute.
    await at(engine, t0 + 599_999)
    await until(async () => ((await removal(store, held)).due_at ?? 0) > t0 + 599_999, 'it was looked at')
    expect(provider.boxes.size).toBe(1)
    await at(engine, t0 + 660_000)
    expect(await gone(engine, held)).toMatchObject({ state: 'expired' })
  })

  it('a hold that is added while the fresh read is under way still wins over the removal', async () => {
    const provider = scriptedProvider()
    const reading = gate()
    const { engine, store } = await started(provider)
    const lease = await leaseOn(engine)
    provider.onRead = async () => {
      await reading.promise
      return undefined
    }
    await releaseLease(engine.context, ann, lease.id, {})
    await until(() => provider.count('read') === 1, 'the fresh read')
    const hold = await addHold(engine.context, root, { targetType: 'lease', targetID: lease.id, reason: 'wait' })
    reading.open()
    await cleanup(engine, lease, 'held')
    expect(provider.count('remove')).toBe(0)
    expect(await store.read(({ db }) => db.selectFrom('audit').selectAll().where('kind', '=', 'intent').execute())).toEqual([])
    await removeHold(engine.context, root, hold.id)
    await gone(engine, lease)
    expect(provider.count('remove')).toBe(1)
  })

  it('another box under the same name, or one whose tags say something else, is reported and not touched (case leases 8, I6)', async () => {
    const { engine, provider, store } = await started()
    const [replaced, retagged, untagged, honest] = [
      await leaseOn(engine),
      await leaseOn(engine),
      await leaseOn(engine),
      await leaseOn(engine),
    ]
    const alter = (lease: LeaseView, change: (box: NonNullable<ReturnType<typeof provider.boxes.get>>) => object): void => {
      const box = provider.boxes.get(lease.cloudID as string)
      if (!box) throw new Error('no such box')
      provider.boxes.set(lease.cloudID as string, { ...box, ...change(box) })
    }
    alter(replaced, (box) => ({ resource: { ...box.resource, immutableId: 'made by somebody else' } }))
    alter(retagged, (box) => ({ tags: { ...box.tags, installation: 'another1' } }))
    alter(untagged, () => ({ tags: { ref: null, installation: null, attempt: null, mac: null } }))
    for (const lease of [replaced, retagged, untagged, honest]) await releaseLease(engine.context, ann, lease.id, {})
    await gone(engine, honest)
    for (const lease of [replaced, retagged, untagged])
      expect(await cleanup(engine, lease, 'failed')).toMatchObject({ state: 'released', cleanupAttempts: 1 })
    expect(provider.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual([honest.cloudID])
    expect(provider.boxes.size).toBe(3)
    const open = await findings(store)
    expect(open.map((one) => `${one.code} ${one.state} ${one.target_id}`).toSorted()).toEqual(
      [replaced, retagged, untagged].map((lease) => `contradiction open scripted/here/${lease.cloudID as string}`).toSorted(),
    )
    // Found again at the next try: the same finding, no second event.
    await at(engine, (await store.now()) + 300_000)
    for (const lease of [replaced, retagged, untagged]) await leaseWhen(engine, lease.id, (view) => view.cleanup.attempts === 2)
    expect(await findings(store)).toHaveLength(3)
    expect(await events(store, 'finding.opened')).toHaveLength(3)
    expect(provider.count('remove')).toBe(1)
  })

  it('says why it failed, without secrets, is stuck from the third time on, and goes when it can (leases R40, R41, R47)', async () => {
    const { engine, provider, store } = await started()
    const lease = await leaseOn(engine)
    const answers: [RemoveOutcome | Error, string][] = [
      [{ kind: 'denied', permission: 'ec2:TerminateInstances' }, 'permission denied: ec2:TerminateInstances'],
      [{ kind: 'blocked', by: 'termination protection' }, 'blocked by termination protection'],
      [{ kind: 'retryLater', why: 'too many requests', afterSeconds: 3 }, 'the provider asks to try later: too many requests'],
      [{ kind: 'unknown', error: 'HTTP 500 for token=canary\0' }, 'HTTP 500 for token=***'],
      [new Error('socket closed, password=canary'), 'socket closed, password=***'],
    ]
    provider.onRemove = () => {
      const [answer] = answers[provider.count('remove') - 1] ?? []
      if (answer instanceof Error) throw answer
      return answer
    }
    await releaseLease(engine.context, ann, lease.id, {})
    for (const [i, [, text]] of answers.entries()) {
      const failed = await leaseWhen(engine, lease.id, (view) => view.cleanup.attempts === i + 1)
      const now = await store.now()
      expect(failed.cleanup).toMatchObject({ state: 'failed', error: text, stuck: i + 1 >= 3 })
      expect(Date.parse(failed.cleanup.retryAt as string) - now).toBe(300_000)
      await at(engine, now + 300_000)
    }
    const done = await gone(engine, lease)
    expect(done.cleanup).toMatchObject({ attempts: 0, error: null, retryAt: null, stuck: false })
    const stored = await store.read(async ({ db }) => [
      await db.selectFrom('audit').selectAll().execute(),
      await db.selectFrom('events').selectAll().execute(),
      await db.selectFrom('removals').selectAll().execute(),
    ])
    expect(JSON.stringify(stored)).not.toContain('canary')
  })

  it('a fresh read that fails is no absence: nothing is called, and it is tried again (I5)', async () => {
    const { engine, provider, store } = await started()
    const lease = await leaseOn(engine)
    provider.onRead = () => ({ kind: 'unknown', error: 'HTTP 403' })
    await releaseLease(engine.context, ann, lease.id, {})
    expect((await cleanup(engine, lease, 'failed')).cleanup.error).toBe('the fresh read failed: HTTP 403')
    expect(provider.count('remove')).toBe(0)
    provider.onRead = undefined
    await at(engine, (await store.now()) + 300_000)
    await gone(engine, lease)
  })

  it('accepted is not gone: it is looked at until absence is proved; a lease that expired is expired meanwhile (leases R35)', async () => {
    const { engine, provider, store } = await started()
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 5 })
    const box = provider.boxes.get(lease.cloudID as string)
    provider.onRemove = (resource) => {
      provider.boxes.set(resource.nativeId, {
        ...(box as NonNullable<typeof box>),
        existence: 'going',
        tags: { ref: null, installation: null, attempt: null, mac: null },
      })
      return { kind: 'accepted', requestId: 'req-1' }
    }
    await at(engine, t0 + 5_000)
    expect((await cleanup(engine, lease, 'verifying')).state).toBe('expired')
    // Slow, but on its way: no failure after 40 min (case orphan 11), and no second call.
    for (const minutes of [1, 4, 6, 40]) {
      await at(engine, t0 + minutes * 60_000)
      const now = t0 + minutes * 60_000
      await until(async () => ((await removal(store, lease)).due_at ?? 0) > now, `it was looked at after ${minutes} min`)
      expect((await getLease(engine.context, ann, lease.id)).cleanup).toMatchObject({ state: 'verifying', attempts: 0 })
    }
    expect(provider.count('remove')).toBe(1)
    provider.boxes.delete(lease.cloudID as string)
    await at(engine, (await store.now()) + 30_000)
    expect((await gone(engine, lease)).state).toBe('expired')
    expect(await events(store, 'removal.gone')).toHaveLength(1)
  })

  it('one that still stands as before five minutes after it was accepted has failed, and is asked for once more', async () => {
    const { engine, provider, store } = await started()
    const lease = await leaseOn(engine)
    provider.onRemove = () => ({ kind: 'accepted', requestId: null })
    await releaseLease(engine.context, ann, lease.id, {})
    await cleanup(engine, lease, 'verifying')
    await at(engine, t0 + 300_000)
    await until(async () => ((await removal(store, lease)).due_at ?? 0) > t0 + 300_000, 'it was looked at')
    expect((await getLease(engine.context, ann, lease.id)).cleanup.state).toBe('verifying')
    const later = t0 + 330_001
    await at(engine, later)
    expect((await cleanup(engine, lease, 'failed')).cleanup).toMatchObject({
      error: 'the provider accepted the removal, and the resource still stands',
      retryAt: new Date(later + 300_000).toISOString(),
    })
    expect(provider.count('remove')).toBe(1)
    provider.onRemove = undefined
    await at(engine, later + 300_000)
    await gone(engine, lease)
    expect(provider.count('remove')).toBe(2)
  })

  it('"gone" is believed only after a look: what still stands is looked at again', async () => {
    const { engine, provider, store } = await started()
    const lease = await leaseOn(engine)
    provider.onRemove = () => ({ kind: 'gone', requestId: null })
    await releaseLease(engine.context, ann, lease.id, {})
    await until(async () => (await removal(store, lease)).polls > 0, 'it was looked at')
    expect((await getLease(engine.context, ann, lease.id)).cleanup.state).toBe('verifying')
    provider.boxes.clear()
    await at(engine, (await store.now()) + 2_000)
    await gone(engine, lease)
  })

  it('a proof that is there at once shares the transaction of the answer; one that takes long is not waited for (I3, I7)', async () => {
    const { engine, provider, store } = await started()
    const records = async (lease: LeaseView): Promise<string[]> => {
      const { id } = await removal(store, lease)
      const rows = await store.read(({ db }) => db.selectFrom('audit').select('kind').where('removal_id', '=', id).orderBy('id').execute())
      return rows.map((row) => row.kind)
    }
    const applies = (texts: readonly string[]): number =>
      texts.filter((text) => text.startsWith('select id from "removals" where (id, lock_fence)')).length
    const [quick, slow] = [await leaseOn(engine), await leaseOn(engine)]
    const atOnce = await statementsOf(store, async () => {
      await releaseLease(engine.context, ann, quick.id, {})
      await gone(engine, quick)
    })
    const row = await removal(store, quick)
    expect([row.accepted_at, row.gone_at]).toEqual([t0, t0])
    expect(await records(quick)).toEqual(['intent', 'outcome', 'proof'])

    const look = gate()
    let reads = 0
    provider.onRead = async () => {
      if (++reads > 1) await look.promise
      return undefined
    }
    const later = await statementsOf(store, async () => {
      await releaseLease(engine.context, ann, slow.id, {})
      await until(async () => (await records(slow)).includes('outcome'), 'the answer is on record')
      expect(await records(slow)).toEqual(['intent', 'outcome'])
      expect((await getLease(engine.context, ann, slow.id)).cleanup.state).toBe('verifying')
      look.open()
      await gone(engine, slow)
    })
    expect(await records(slow)).toEqual(['intent', 'outcome', 'proof'])
    expect(applies(later)).toBe(applies(atOnce) + 1)
  })

  it('a removal of an unknown version is refused untouched, and a person is told (leases R89, case leases 13)', async () => {
    const { engine, provider, store } = await started()
    const { context } = engine
    const leases = [await leaseOn(engine), await leaseOn(engine)] as const
    await addFreeze(context, root, { reason: 'so that they wait' })
    for (const lease of leases) await releaseLease(context, ann, lease.id, {})
    for (const lease of leases) await cleanup(engine, lease, 'held')
    const versions = [3, 99] as const
    for (const [i, version] of versions.entries())
      await store.write(async (tx) => {
        await tx.db
          .updateTable('removals')
          .set({ version })
          .where('lease_id', '=', leases[i as 0 | 1].id as never)
          .execute()
      })
    const calls = provider.calls.length
    await removeFreeze(context, root, '*')
    await until(async () => (await findings(store)).length === 2, 'both are reported')
    for (const [i, version] of versions.entries()) {
      const row = await removal(store, leases[i as 0 | 1])
      expect(row).toMatchObject({
        version,
        identity: null,
        progress: '[]',
        state: 'preparing',
        started_at: null,
        lock_owner: null,
      })
      expect(row.error).toMatch(new RegExp(`version ${version} is not known here`))
      expect((await getLease(context, ann, leases[i as 0 | 1].id)).cleanup.state).toBe('failed')
    }
    expect(provider.calls).toHaveLength(calls)
    expect((await findings(store)).map((one) => one.code)).toEqual(['removal-needs-person', 'removal-needs-person'])
    expect(provider.boxes.size).toBe(2)
    // It stays due, so that whoever knows the version goes on with it.
    await store.write(async (tx) => void (await tx.db.updateTable('removals').set({ version: 2 }).execute()))
    await at(engine, (await store.now()) + 61_000)
    for (const lease of leases) await gone(engine, lease)
    expect(provider.boxes.size).toBe(0)
  })

  it('without a recorded identity its look-up decides: found, it goes; not found, a person decides; unclear, it is tried again (leases R46)', async () => {
    const { engine, provider, store } = await started()
    const { context } = engine
    const input = { idleTimeoutSeconds: 10 }
    const [found, lost, unclear] = [await leaseOn(engine, input), await leaseOn(engine, input), await leaseOn(engine, input)]
    await store.write(async (tx) => {
      await tx.db.updateTable('attempts').set({ native_id: null, immutable_id: null, kind: null, facts: null }).execute()
    })
    let listing: 'fails' | 'works' = 'fails'
    provider.onFind = (ref) => {
      if (ref === lost.ref) return { kind: 'complete', found: [], contradictions: [] }
      return ref === unclear.ref && listing === 'fails' ? { kind: 'incomplete', why: 'page 2 answered 500' } : undefined
    }
    await at(engine, t0 + 10_000)
    await gone(engine, found)
    const failed = await leaseWhen(engine, lost.id, (view) => view.state === 'failed')
    expect(failed).toMatchObject({
      failureCode: 'removal_needs_person',
      failureError: 'no identity was recorded, and its look-up finds nothing',
      cleanup: { state: 'failed', retryAt: null },
    })
    expect(await findings(store)).toMatchObject([{ code: 'removal-needs-person', state: 'open', target_id: lost.instanceID }])
    expect(await cleanup(engine, unclear, 'failed')).toMatchObject({ state: 'active', cleanupError: 'page 2 answered 500' })
    listing = 'works'
    await at(engine, t0 + 310_000)
    expect((await gone(engine, unclear)).state).toBe('expired')
    // The one that waits for a person is not tried again by itself, and is never called gone.
    await at(engine, t0 + 100 * 3_600_000)
    context.signals.wake('remove')
    const again = await leaseOn(engine)
    await releaseLease(context, ann, again.id, {})
    await gone(engine, again)
    expect(await removal(store, lost)).toMatchObject({ state: 'preparing', due_at: null })
    expect(provider.boxes.has(lost.cloudID as string)).toBe(true)
  })
})
