import { expect, it } from 'vitest'
import {
  createHeartbeat,
  createLease,
  getLease,
  putLease,
  releaseLease,
  cancelCreate,
  settledLease,
} from '../../src/engine/leases/index.ts'
import { hex } from '../../src/lib/ids.ts'
import { LeaseholdError } from '../../src/model/errors.ts'
import { ann, leaseOn, leaseWhen, root } from '../support/engine.ts'
import { gate, scriptedProvider } from '../support/scripted-provider.ts'
import { startedEngines, t0 } from '../support/lease-suite.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const code = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise
    return 'no error'
  } catch (error) {
    return error instanceof LeaseholdError ? error.code : String(error)
  }
}
const requestKey = (): string => `cat_${hex(16)}`

eachStore('a lease', (open) => {
  const started = startedEngines(open)

  it('is active with its box once the provider has answered, with both clocks at their defaults (leases R4, R13-R15)', async () => {
    const { engine } = await started()
    const lease = await leaseOn(engine)
    expect(lease).toMatchObject({
      state: 'active',
      ttlSeconds: 5400,
      idleTimeoutSeconds: 1800,
      expiresAt: new Date(t0 + 1_800_000).toISOString(),
    })
    expect(lease.cloudID).toBe(`${lease.ref}-1`)
  })

  it('keeps ref and instance from the placeholder to the box (orphans R1, R4-R7)', async () => {
    const hold = gate()
    const provider = scriptedProvider()
    provider.onCreate = async () => {
      await hold.promise
      return undefined
    }
    const { engine } = await started(provider)
    const { lease } = await createLease(engine.context, ann, {})
    await until(() => provider.count('create') === 1, 'the provider is called')
    const rows = await engine.context.store.read(async ({ db }) => ({
      ledger: await db.selectFrom('ledger').selectAll().execute(),
      attempts: await db.selectFrom('attempts').selectAll().execute(),
    }))
    expect(rows.ledger).toMatchObject([{ ref: lease.ref, owner_id: lease.instanceID, owner_closed_at: null }])
    expect(rows.attempts).toMatchObject([{ ref: lease.ref, outcome: 'open', called_at: t0 }])
    hold.open()
    const active = await settledLease(engine.context, lease.id, 5_000)
    expect(active).toMatchObject({ state: 'active', ref: lease.ref, instanceID: lease.instanceID })
  })

  it('accepts a heartbeat one millisecond before its end and refuses it at the end (leases R20, case leases 1, case G13)', async () => {
    const { engine } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 100 })
    await setClock(engine.context.store, t0 + 99_999)
    const beaten = await beat(ann, lease.id, {})
    expect(beaten.expiresAt).toBe(new Date(t0 + 199_999).toISOString())
    await setClock(engine.context.store, t0 + 199_999)
    expect(await code(beat(ann, lease.id, {}))).toMatch(/lease_expired|cleanup_in_progress|lease_ended/)
    const expired = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(expired).toMatchObject({ state: 'expired', expiresAt: new Date(t0 + 199_999).toISOString() })
    expect(await code(beat(ann, lease.id, {}))).toBe('lease_ended')
  })

  it('ends at createdAt + ttl however busy it is (leases R16, case leases 3)', async () => {
    const { engine } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine, { ttlSeconds: 10, idleTimeoutSeconds: 4 })
    for (let second = 1; second <= 9; second++) {
      await setClock(engine.context.store, t0 + second * 1000)
      const view = await beat(ann, lease.id, { idleTimeoutSeconds: 86_400 })
      expect(Date.parse(view.expiresAt)).toBeLessThanOrEqual(t0 + 10_000)
    }
    await setClock(engine.context.store, t0 + 10_000)
    expect(await leaseWhen(engine, lease.id, (view) => view.state === 'expired')).toMatchObject({
      endedAt: new Date(t0 + 10_000).toISOString(),
    })
  })

  it('a beat that shortens the idle time moves the end at once (leases R23)', async () => {
    const { engine } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine)
    expect((await beat(ann, lease.id, { idleTimeoutSeconds: 5 })).expiresAt).toBe(new Date(t0 + 5_000).toISOString())
    await setClock(engine.context.store, t0 + 5_000)
    expect((await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')).state).toBe('expired')
  })

  it('reading it never touches it (case G6)', async () => {
    const { engine } = await started()
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 60 })
    await setClock(engine.context.store, t0 + 30_000)
    for (let i = 0; i < 5; i++) await getLease(engine.context, ann, lease.id)
    expect(await getLease(engine.context, ann, lease.slug)).toMatchObject({
      lastTouchedAt: lease.lastTouchedAt,
      expiresAt: lease.expiresAt,
    })
  })

  it('release removes the box and the proof is absence (leases R29, R30)', async () => {
    const { engine, provider } = await started()
    const lease = await leaseOn(engine)
    expect(await releaseLease(engine.context, ann, lease.id, {})).toMatchObject({ state: 'released', releaseDeletesServer: true })
    const gone = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(gone.state).toBe('released')
    expect(provider.boxes.size).toBe(0)
    const audit = await engine.context.store.read(({ db }) => db.selectFrom('audit').selectAll().orderBy('id').execute())
    expect(audit.map((row) => row.kind)).toEqual(['intent', 'outcome', 'proof'])
    expect(audit[1]?.intent_id).toBe(audit[0]?.id)
    // Safe to repeat: no state change, no further call (leases R31).
    const before = provider.count('remove')
    expect((await releaseLease(engine.context, ann, lease.id, { delete: true })).state).toBe('released')
    expect(provider.count('remove')).toBe(before)
  })

  it('a kept lease that is released stays as retained, with an owner and a deadline, and goes when told so (leases R32, R37, case leases 7, case G12)', async () => {
    const { engine, provider } = await started()
    const lease = await leaseOn(engine, { keep: true })
    const retained = await releaseLease(engine.context, ann, lease.id, {})
    expect(retained).toMatchObject({
      state: 'released',
      releaseDeletesServer: false,
      retainedAt: new Date(t0).toISOString(),
      retainUntil: new Date(t0 + 86_400_000).toISOString(),
    })
    await until(() => provider.count('rearm') > 0, 'the dead-man clock is re-armed')
    await advance(engine.context.store, 86_400_000)
    const overdue = await until(
      () =>
        engine.context.store.read(({ db }) =>
          db.selectFrom('findings').selectAll().where('code', '=', 'retained-overdue').executeTakeFirst(),
        ),
      'the reminder opens',
    )
    expect(overdue).toMatchObject({ target_id: lease.id, state: 'open' })
    expect(provider.boxes.size).toBe(1)
    expect(provider.count('remove')).toBe(0)
    await releaseLease(engine.context, ann, lease.id, { delete: true })
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(provider.boxes.size).toBe(0)
    expect(await engine.context.store.read(({ db }) => db.selectFrom('findings').select('state').executeTakeFirst())).toEqual({
      state: 'resolved',
    })
  })

  it('keep exempts from neither clock (leases R36)', async () => {
    const { engine } = await started()
    const lease = await leaseOn(engine, { keep: true, idleTimeoutSeconds: 5 })
    await setClock(engine.context.store, t0 + 5_000)
    expect((await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')).state).toBe('expired')
  })

  it('a failed removal is tried again exactly 300 s later, and refused beats clear nothing (leases R22, R40, R41, R47)', async () => {
    const provider = scriptedProvider()
    provider.onRemove = () => ({ kind: 'unknown', error: 'the API answered 500' })
    const { engine } = await started(provider)
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine, { idleTimeoutSeconds: 10 })
    await setClock(engine.context.store, t0 + 10_000)
    const failed = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'failed')
    expect(failed).toMatchObject({
      state: 'active',
      cleanupAttempts: 1,
      cleanupError: 'the API answered 500',
      cleanupFailedAt: new Date(t0 + 10_000).toISOString(),
      cleanupRetryAt: new Date(t0 + 310_000).toISOString(),
    })
    expect(await code(beat(ann, lease.id, {}))).toBe('lease_expired')
    expect(await getLease(engine.context, ann, lease.id)).toMatchObject({ cleanupAttempts: 1, cleanupRetryAt: failed.cleanupRetryAt })
    await setClock(engine.context.store, t0 + 309_999)
    engine.context.signals.wake('remove')
    expect(provider.count('remove')).toBe(1)
    provider.onRemove = () => undefined
    await setClock(engine.context.store, t0 + 310_000)
    const gone = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(gone.state).toBe('expired')
    expect(gone.cleanupError).toBeUndefined()
    expect(provider.count('remove')).toBe(2)
  })

  it('one hung removal delays no other lease', async () => {
    const provider = scriptedProvider()
    const never = gate<undefined>()
    const { engine } = await started(provider)
    const stuck = await leaseOn(engine)
    provider.onRemove = (resource) => (resource.nativeId === stuck.cloudID ? never.promise : undefined)
    const others = await Promise.all(Array.from({ length: 5 }, () => leaseOn(engine)))
    await releaseLease(engine.context, ann, stuck.id, {})
    await until(() => provider.count('remove') === 1, 'the hung call is under way')
    for (const other of others) await releaseLease(engine.context, ann, other.id, {})
    for (const other of others) await leaseWhen(engine, other.id, (view) => view.cleanup.state === 'gone')
    expect((await getLease(engine.context, ann, stuck.id)).cleanup.state).toBe('removing')
    never.open(undefined)
    await leaseWhen(engine, stuck.id, (view) => view.cleanup.state === 'gone')
  })

  it('the same createAttemptID answers the same lease; another id for it, or another request, is refused (leases R10)', async () => {
    const { engine, provider } = await started()
    const createAttemptID = requestKey()
    const first = await createLease(engine.context, ann, { createAttemptID, ttlSeconds: 60 })
    await settledLease(engine.context, first.lease.id, 5_000)
    const again = await createLease(engine.context, ann, { createAttemptID, ttlSeconds: 60 })
    expect(again).toMatchObject({ replayed: true, leaseToken: first.leaseToken, lease: { id: first.lease.id, state: 'active' } })
    expect(await code(createLease(engine.context, ann, { createAttemptID, ttlSeconds: 61 }))).toBe('lease_id_conflict')
    expect(await code(createLease(engine.context, ann, { createAttemptID: requestKey(), leaseID: first.lease.id, ttlSeconds: 60 }))).toBe(
      'lease_id_conflict',
    )
    expect(provider.count('create')).toBe(1)
  })

  it('a fixed id is idempotent, refuses drift, and is never used again (leases R11, R12)', async () => {
    const { engine, provider } = await started()
    const id = `lh_${hex(6)}`
    await putLease(engine.context, ann, id, { slug: 'web' })
    await settledLease(engine.context, id, 5_000)
    expect(await putLease(engine.context, ann, id, { slug: 'web' })).toMatchObject({ replayed: true, lease: { id, state: 'active' } })
    expect(await code(putLease(engine.context, ann, id, { slug: 'other' }))).toBe('lease_id_conflict')
    await releaseLease(engine.context, ann, id, {})
    await leaseWhen(engine, id, (view) => view.cleanup.state === 'gone')
    expect(await code(putLease(engine.context, ann, id, { slug: 'web' }))).toBe('lease_id_conflict')
    expect(provider.count('create')).toBe(1)
  })

  it('a create cancelled before it came leaves a tombstone that wins, and nothing is made (leases R10)', async () => {
    const { engine, provider } = await started()
    const leaseID = `lh_${hex(6)}`
    const createAttemptID = requestKey()
    await cancelCreate(engine.context, ann, leaseID, createAttemptID)
    expect(await code(createLease(engine.context, ann, { leaseID, createAttemptID }))).toBe('create_canceled')
    expect(provider.count('create')).toBe(0)
  })

  it('a create cancelled while the provider works is taken back when it arrives (leases R6, R10, R33)', async () => {
    const hold = gate()
    const provider = scriptedProvider()
    provider.onCreate = async () => {
      await hold.promise
      return undefined
    }
    const { engine } = await started(provider)
    const leaseID = `lh_${hex(6)}`
    const createAttemptID = requestKey()
    await createLease(engine.context, ann, { leaseID, createAttemptID })
    await until(() => provider.count('create') === 1, 'the provider is called')
    const cancelled = await cancelCreate(engine.context, ann, leaseID, createAttemptID)
    expect(cancelled.lease?.state).toBe('released')
    hold.open()
    const gone = await leaseWhen(engine, leaseID, (view) => view.cleanup.state === 'gone')
    expect(gone).toMatchObject({ state: 'released', cleanup: { reason: 'cancelled' } })
    expect(provider.boxes.size).toBe(0)
    expect(await code(createLease(engine.context, ann, { leaseID, createAttemptID }))).toBe('create_canceled')
  })

  it('a cancel takes back a box that a release had kept (leases R10)', async () => {
    const { engine, provider } = await started()
    const leaseID = `lh_${hex(6)}`
    const createAttemptID = requestKey()
    await createLease(engine.context, ann, { leaseID, createAttemptID })
    await settledLease(engine.context, leaseID, 5_000)
    await releaseLease(engine.context, ann, leaseID, { delete: false })
    expect(provider.boxes.size).toBe(1)
    await cancelCreate(engine.context, ann, leaseID, createAttemptID)
    await leaseWhen(engine, leaseID, (view) => view.cleanup.state === 'gone')
    expect(provider.boxes.size).toBe(0)
  })

  it('released with delete: false while it was being made, the box is retained when it arrives (leases R33)', async () => {
    const hold = gate()
    const provider = scriptedProvider()
    provider.onCreate = async () => {
      await hold.promise
      return undefined
    }
    const { engine } = await started(provider)
    const { lease } = await createLease(engine.context, ann, {})
    await until(() => provider.count('create') === 1, 'the provider is called')
    await releaseLease(engine.context, ann, lease.id, { delete: false })
    hold.open()
    await until(() => provider.count('rearm') > 0, 'the dead-man clock is re-armed')
    expect(provider.boxes.size).toBe(1)
    expect(await getLease(engine.context, ann, lease.id)).toMatchObject({ state: 'released', cleanup: { state: 'none' } })
  })

  it('released with delete: false while it was being made, and nothing came of it: nothing is retained, and nobody is reminded (leases R33, R37)', async () => {
    const hold = gate()
    const provider = scriptedProvider()
    provider.onCreate = async () => {
      await hold.promise
      return { kind: 'rejected', code: 'quota', message: 'no room' }
    }
    const { engine } = await started(provider)
    const { lease } = await createLease(engine.context, ann, {})
    await until(() => provider.count('create') === 1, 'the provider is called')
    expect((await releaseLease(engine.context, ann, lease.id, { delete: false })).retainUntil).not.toBeNull()
    hold.open()
    await leaseWhen(engine, lease.id, (view) => view.retainUntil === null)
    expect(await getLease(engine.context, ann, lease.id)).toMatchObject({ state: 'released', retainedAt: null, cloudID: null })
    await advance(engine.context.store, 2 * 86_400_000)
    engine.context.signals.wake('expire')
    await leaseOn(engine).catch(() => undefined)
    const findings = await engine.context.store.read(({ db }) => db.selectFrom('findings').selectAll().execute())
    expect(findings.filter((finding) => finding.code === 'retained-overdue')).toEqual([])
  })

  it("a cancel of another project's create is told that there is no such lease, and leaves no tombstone", async () => {
    const { engine, provider } = await started()
    const leaseID = `lh_${hex(6)}`
    await createLease(engine.context, ann, { leaseID, createAttemptID: requestKey() })
    await settledLease(engine.context, leaseID, 5_000)
    const eve = { ...ann, name: 'eve', project: 'elsewhere' }
    const mine = requestKey()
    expect(await code(cancelCreate(engine.context, eve, leaseID, mine))).toBe('not_found')
    expect(await code(getLease(engine.context, ann, leaseID))).toBe('no error')
    expect(provider.boxes.size).toBe(1)
    const tombstones = await engine.context.store.read(({ db }) => db.selectFrom('create_requests').select('request_key').execute())
    expect(tombstones.map((row) => row.request_key)).not.toContain(mine)
  })

  it("others' leases are not managed, other projects' are not seen, and an operator manages them", async () => {
    const { engine } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine)
    const bob = { ...ann, name: 'bob' }
    expect(await code(beat(bob, lease.id, {}))).toBe('forbidden')
    expect(await code(releaseLease(engine.context, bob, lease.id, {}))).toBe('forbidden')
    const eve = { ...ann, project: 'elsewhere' }
    expect(await code(beat(eve, lease.id, {}))).toBe('not_found')
    expect(await code(getLease(engine.context, eve, lease.slug))).toBe('not_found')
    expect((await beat({ ...bob, role: 'operator' }, lease.id, {})).id).toBe(lease.id)
    expect((await beat(root, lease.slug, {})).id).toBe(lease.id)
  })

  it("a lease's own token beats and releases that lease only (case B9)", async () => {
    const { engine } = await started()
    const beat = createHeartbeat(engine.context)
    const lease = await leaseOn(engine)
    const other = await leaseOn(engine)
    const box = { name: 'box', role: 'user' as const, project: 'default', onlyLease: lease.id as never }
    expect((await beat(box, lease.id, {})).id).toBe(lease.id)
    expect(await code(beat(box, other.id, {}))).toBe('not_found')
    expect(await code(createLease(engine.context, box, {}))).toBe('forbidden')
    expect((await releaseLease(engine.context, box, lease.id, {})).state).toBe('released')
  })
})
