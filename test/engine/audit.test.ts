import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { getLease, releaseLease } from '../../src/engine/leases/index.ts'
import { auditOfRemoval, type AuditRecord } from '../../src/store/audit.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from '../support/engine.ts'
import { gate, scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { eachStore, setClock, type TestDatabase } from '../support/stores.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)

eachStore('the record of what was deleted (I7)', (_open, database) => {
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
  const started = async (provider: Scripted, wrap: (store: Store) => Store = (store) => store) => {
    const db: TestDatabase = await database()
    const store = await db.open()
    await setClock(store, t0)
    return { engine: await on(wrap(store), provider), store, db }
  }
  const records = async (store: Store): Promise<AuditRecord[]> => {
    const ids = await store.read(({ db }) => db.selectFrom('removals').select('id').execute())
    return (await Promise.all(ids.map(({ id }) => store.read((session) => auditOfRemoval(session, id))))).flat()
  }
  const bodies = (rows: readonly AuditRecord[]): Record<string, unknown>[] =>
    rows.map((row) => JSON.parse(row.body) as Record<string, unknown>)

  it('the intent is committed before the call, with the identity, what was read, the cause and the fence; the outcome names it', async () => {
    const provider = scriptedProvider()
    const { engine, store, db } = await started(provider)
    const lease = await leaseOn(engine)
    const box = provider.boxes.get(lease.cloudID as string)
    const elsewhere = await db.open()
    let during: AuditRecord[] = []
    provider.onRemove = async () => {
      // Another process sees it: it is committed, not only written.
      during = await records(elsewhere)
      return undefined
    }
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(during).toMatchObject([{ kind: 'intent', ref: lease.ref, project: 'default', at: t0 }])
    expect(bodies(during)).toMatchObject([
      { call: 'remove', cause: 'released', identity: box?.resource, read: { tags: box?.tags }, fence: 1, lease: lease.id },
    ])
    const rows = await records(store)
    expect(rows.map((row) => row.kind)).toEqual(['intent', 'outcome'])
    expect(rows[1]?.intent_id).toBe(rows[0]?.id)
    expect(bodies(rows)[1]).toEqual({ kind: 'gone', requestId: null })
  })

  it('an intent that can not be written stops the call', async () => {
    const provider = scriptedProvider()
    let full = false
    const { engine, store } = await started(provider, (inner) => ({
      dialect: inner.dialect,
      description: inner.description,
      now: () => inner.now(),
      read: (body) => inner.read(body),
      close: () => inner.close(),
      write: async (body) =>
        inner.write(async (tx) => {
          const value = await body(tx)
          const intents = await tx.db.selectFrom('audit').select('id').where('kind', '=', 'intent').execute()
          if (full && intents.length > 0) throw new Error('disk full')
          return value
        }),
    }))
    const lease = await leaseOn(engine)
    full = true
    await releaseLease(engine.context, ann, lease.id, {})
    await until(() => provider.count('read') > 0, 'it was read')
    // The row comes back when its lock ends, and it is tried again in vain.
    await setClock(store, t0 + 30_000)
    engine.context.signals.wake('remove')
    await until(() => provider.count('read') > 1, 'it was tried again')
    expect(provider.count('remove')).toBe(0)
    full = false
    await setClock(store, t0 + 60_000)
    engine.context.signals.wake('remove')
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(provider.count('remove')).toBe(1)
    expect((await records(store)).map((row) => row.kind)).toEqual(['intent', 'outcome'])
  })

  it('a worker that stalls in the middle of its call is overtaken: nothing is deleted twice, and both calls have their records (I3)', async () => {
    const provider = scriptedProvider()
    const { engine: slow, db } = await started(provider)
    const lease = await leaseOn(slow)
    // A neighbour with the same name is made in the very gap: what the stalled call then finds is not what was bound.
    const deleted: string[] = []
    const stalled = gate()
    provider.onRemove = async (resource) => {
      if (provider.count('remove') === 1) await stalled.promise
      const there = provider.boxes.get(resource.nativeId)
      if (there?.resource.immutableId !== resource.immutableId) return { kind: 'gone', requestId: 'late' }
      provider.boxes.delete(resource.nativeId)
      deleted.push(resource.immutableId)
      return { kind: 'gone', requestId: 'first' }
    }
    const box = provider.boxes.get(lease.cloudID as string) as NonNullable<ReturnType<typeof provider.boxes.get>>
    await releaseLease(slow.context, ann, lease.id, {})
    await until(() => provider.count('remove') === 1, 'the slow one calls')
    await slow.stop(0)
    const other = await db.open()
    await setClock(other, t0 + 30_000)
    const quick = await on(other, provider)
    await leaseWhen(quick, lease.id, (view) => view.cleanup.state === 'gone')
    expect(deleted).toEqual([box.resource.immutableId])
    const neighbour = { ...box, resource: { ...box.resource, immutableId: 'somebody else’s' } }
    provider.boxes.set(neighbour.resource.nativeId, neighbour)
    const before = await getLease(quick.context, ann, lease.id)

    stalled.open()
    await until(async () => (await records(other)).length === 4, 'the late answer is recorded')
    const rows = await records(other)
    const intents = rows.filter((row) => row.kind === 'intent')
    expect(bodies(intents).map((body) => body['fence'])).toEqual([1, 2])
    const outcomes = rows.filter((row) => row.kind === 'outcome')
    expect(new Set(outcomes.map((row) => row.intent_id))).toEqual(new Set(intents.map((row) => row.id)))
    expect(outcomes).toHaveLength(2)
    expect(bodies(outcomes.filter((row) => row.intent_id === intents[0]?.id))).toEqual([{ kind: 'gone', requestId: 'late' }])
    // The late answer changed nothing else.
    expect(await getLease(quick.context, ann, lease.id)).toEqual(before)
    expect(deleted).toHaveLength(1)
    expect(provider.boxes.get(neighbour.resource.nativeId)).toEqual(neighbour)
  })

  it('after a crash between the call and its outcome the intent stays, and the absence that is found explains it', async () => {
    const provider = scriptedProvider()
    const { engine: dead, db } = await started(provider)
    const lease = await leaseOn(dead)
    provider.onRemove = (resource) => {
      provider.boxes.delete(resource.nativeId)
      return new Promise<never>(() => {})
    }
    await releaseLease(dead.context, ann, lease.id, {})
    await until(() => provider.count('remove') === 1, 'it calls')
    await dead.stop(0)
    const store = await db.open()
    await setClock(store, t0 + 30_000)
    const engine = await on(store, provider)
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    // Deleted, with a record that says so; and not called again for what is not there.
    expect((await records(store)).map((row) => row.kind)).toEqual(['intent'])
    expect(provider.count('remove')).toBe(1)
    const [proof] = await store.read(({ db: kysely }) =>
      kysely.selectFrom('events').select('message').where('code', '=', 'removal.gone').execute(),
    )
    expect(proof?.message).toContain('not in the list')
  })

  it('every kind of answer is kept, without secrets', async () => {
    const provider = scriptedProvider()
    const { engine, store } = await started(provider)
    const answers = [
      { kind: 'accepted', requestId: 'req-1' },
      { kind: 'blocked', by: 'a lock' },
      { kind: 'retryLater', why: 'busy', afterSeconds: 7 },
      { kind: 'denied', permission: 'x:Delete' },
      { kind: 'unknown', error: 'answered 500 to Authorization: Bearer canary' },
    ] as const
    const leases = await Promise.all(answers.map(() => leaseOn(engine)))
    provider.onRemove = (resource) => answers[leases.findIndex((lease) => lease.cloudID === resource.nativeId)]
    for (const lease of leases) await releaseLease(engine.context, ann, lease.id, {})
    await until(async () => (await records(store)).length === 2 * answers.length, 'all are recorded')
    const rows = await records(store)
    const byIntent = new Map(rows.filter((row) => row.kind === 'outcome').map((row) => [row.intent_id, row]))
    const told = rows.filter((row) => row.kind === 'intent').map((row) => bodies([byIntent.get(row.id) as AuditRecord])[0])
    expect(told).toHaveLength(answers.length)
    for (const answer of answers)
      expect(told).toContainEqual(
        answer.kind === 'unknown' ? { kind: 'unknown', error: 'answered 500 to Authorization: Bearer ***' } : answer,
      )
    expect(JSON.stringify(rows)).not.toContain('canary')
  })
})
