/** What is over is let go of after its time; what is said of it, and what it is known by, stays. */
import { sql } from 'kysely'
import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { addHold, removeHold } from '../../src/engine/admin/index.ts'
import { explainKey } from '../../src/engine/explain/index.ts'
import { createLease, getLease, putLease, releaseLease } from '../../src/engine/leases/index.ts'
import { readReceipt } from '../../src/engine/receipt/index.ts'
import { compactOld, defaultRetain } from '../../src/engine/retain.ts'
import { hex } from '../../src/lib/ids.ts'
import { LeaseholdError } from '../../src/model/errors.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, root } from '../support/engine.ts'
import { statementsOf } from '../support/statements.ts'
import { advance, eachStore } from '../support/stores.ts'
import { intervalMs, long, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'
import { until } from '../support/until.ts'

const day = 86_400_000
const signal = new AbortController().signal

eachStore('what is over', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const world = async (given: Parameters<typeof sweepRounds>[1] = {}): Promise<Rounds> => {
    const w = await sweepRounds(await open(), given)
    engines.push(w.engine)
    return w
  }
  const ended = async (w: Rounds, input = {}): Promise<LeaseView> => {
    const lease = await leaseOn(w.engine, { ...long, ...input })
    await releaseLease(w.engine.context, ann, lease.id, { delete: true })
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    return lease
  }
  const compact = (w: Rounds) => compactOld(w.engine.context, defaultRetain)
  const countOf = async (store: Store, table: string): Promise<number> =>
    Number((await store.read(({ db }) => sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db))).rows[0]?.n)
  const codeOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'answered',
      (error: unknown) => (error instanceof LeaseholdError ? error.code : String(error)),
    )

  it('keeps its rows until its time has come, and is told of truthfully afterwards; its ref, removals and audit stay (I2)', async () => {
    const w = await world()
    const { store } = w
    const context = w.engine.context
    const id = `lh_${hex(6)}`
    const { lease: made } = await putLease(context, ann, id, long)
    await leaseWhen(w.engine, made.id, (view) => view.state === 'active')
    await releaseLease(context, ann, id, { delete: true })
    await leaseWhen(w.engine, id, (view) => view.cleanup.state === 'gone')
    await advance(store, 89 * day)
    expect(await compact(w)).toEqual({ instances: 0, findings: 0 })
    expect(await getLease(context, ann, id)).toMatchObject({ state: 'released' })
    const before = [
      await countOf(store, 'ledger'),
      await countOf(store, 'attempts'),
      await countOf(store, 'removals'),
      await countOf(store, 'audit'),
    ]

    await advance(store, 2 * day)
    expect((await compact(w)).instances).toBe(1)
    expect([await countOf(store, 'leases'), await countOf(store, 'instances')]).toEqual([0, 0])
    expect([
      await countOf(store, 'ledger'),
      await countOf(store, 'attempts'),
      await countOf(store, 'removals'),
      await countOf(store, 'audit'),
    ]).toEqual(before)
    for (const key of [id, made.slug, made.ref, made.instanceID]) {
      const told = await explainKey(context, ann, key, signal)
      expect(told, key).toMatchObject({ verdict: 'gone', tree: { fact: expect.stringContaining(`Compacted at`) } })
      expect(told.tree.fact).toContain(id)
      const receipt = await readReceipt(context, ann, key)
      expect(receipt, key).toMatchObject({ whole: true, removals: [{ verdict: 'deleted' }] })
    }
    // Its id is never used again (leases R11), and it is nobody else's business.
    expect(await codeOf(putLease(context, ann, id, long))).toBe('lease_id_conflict')
    expect(await codeOf(explainKey(context, { ...ann, project: 'other' }, id, signal))).toBe('not_found')
    expect(await codeOf(getLease(context, ann, id))).toBe('not_found')
  })

  it('is not let go of while anything is left to say: a box that is kept, a removal that a person has to look at, an open finding, a live lease', async () => {
    const w = await world()
    const { store, provider } = w
    const kept = await leaseOn(w.engine, long)
    await releaseLease(w.engine.context, ann, kept.id, { delete: false })
    const live = await leaseOn(w.engine, long)
    const stuck = await leaseOn(w.engine, long)
    provider.onRemove = (resource) => (resource.nativeId === stuck.cloudID ? { kind: 'denied', permission: 'box.remove' } : undefined)
    await releaseLease(w.engine.context, ann, stuck.id, { delete: true })
    await until(() => provider.count('remove') > 0, 'it is tried')
    const found = await ended(w)
    await store.write((tx) => sql`update findings set state = 'open'`.execute(tx.db))
    await store.write((tx) =>
      sql`insert into findings (id, code, state, project, scope, target_type, target_id, target_name, message, evidence, fingerprint, first_seen_at, last_seen_at,
        times_seen, ref) values ('fd_x', 'orphan', 'open', 'default', 'scripted:one', 'resource', 'scripted/here/x', 'x', 'm', '{}', 'f', ${tx.now}, ${tx.now}, 1, ${found.ref})`.execute(
        tx.db,
      ),
    )
    // The clock of the leases is held: only retention looks.
    await w.engine.stop(0)
    engines.splice(0)
    await advance(store, 400 * day)
    expect((await compact(w)).instances).toBe(0)
    const left = await store.read(({ db }) => db.selectFrom('instances').select('lease_id').execute())
    expect(left.map((row) => row.lease_id as string).toSorted()).toEqual([kept.id, live.id, stuck.id, found.id].toSorted())
    // The twin: with its finding resolved, the one that ended goes.
    await store.write((tx) => sql`update findings set state = 'resolved', resolved_at = ${tx.now} where id = 'fd_x'`.execute(tx.db))
    expect((await compact(w)).instances).toBe(1)
  })

  it('is not let go of while somebody holds it: what turns up under its ref is held still (I10)', async () => {
    const w = await world({ mode: 'delete' })
    const { lease, box } = await w.orphan()
    const hold = await addHold(w.engine.context, root, { targetType: 'lease', targetID: lease.id, reason: 'mine' })
    const { nativeId } = box.resource
    const removes = w.provider.count('remove')
    w.provider.boxes.delete(nativeId)
    await advance(w.store, 91 * day)
    expect((await compact(w)).instances).toBe(0)
    w.provider.boxes.set(nativeId, box)
    await w.round()
    await w.round(2 * intervalMs)
    expect(w.provider.boxes.has(nativeId)).toBe(true)
    expect(w.provider.count('remove')).toBe(removes)
    // The twin: without the hold its rows go.
    w.provider.boxes.delete(nativeId)
    await removeHold(w.engine.context, root, hold.id)
    await w.store.write((tx) => sql`update findings set state = 'resolved', resolved_at = ${tx.now}`.execute(tx.db))
    expect((await compact(w)).instances).toBe(1)
  })

  it('is known again by a sweep: what turns up under its ref is ours, by its ledger row and its attempt (orphans R51)', async () => {
    const w = await world({ mode: 'delete' })
    const { store, provider } = w
    const { lease, box } = await w.orphan()
    provider.boxes.delete(box.resource.nativeId)
    await advance(store, 91 * day)
    expect((await compact(w)).instances).toBe(1)
    provider.boxes.set(box.resource.nativeId, box)
    await w.round()
    expect(await w.open()).toMatchObject([{ code: 'orphan', ref: lease.ref, target_id: `scripted/here/${box.resource.nativeId}` }])
    await w.round(2 * intervalMs)
    await until(() => !provider.boxes.has(box.resource.nativeId), 'it is taken back')
    // The twin: the same thing under a ref that nobody here issued is none of ours.
    const removals = provider.count('remove')
    provider.boxes.set('foreign', {
      ...box,
      resource: { ...box.resource, nativeId: 'foreign', immutableId: 'foreign#1' },
      tags: { ...box.tags, ref: 'zzzzzzzzzzzz' },
    })
    for (let i = 0; i < 3; i++) await w.round(2 * intervalMs)
    expect([provider.boxes.has('foreign'), provider.count('remove')]).toEqual([true, removals])
  })

  it('findings that are resolved and certificates go; what a removal stands on, and the newest certificate, stay', async () => {
    const w = await world({ mode: 'delete' })
    const { store, provider } = w
    const { box } = await w.orphan()
    await w.round()
    await w.round(2 * intervalMs)
    await until(() => !provider.boxes.has(box.resource.nativeId), 'it is taken back')
    await until(async () => (await w.open()).length === 0, 'its finding is resolved')
    const named = await store.read(({ db }) => db.selectFrom('removals').select('evidence').where('cause', 'like', 'orphan.%').execute())
    const sweep = (JSON.parse(named[0]?.evidence ?? '{}') as { found?: { sweep: string } }).found?.sweep
    expect(sweep).toMatch(/^sw_/)
    await w.round(2 * intervalMs)
    await w.round(100 * day)
    const before = await store.read(({ db }) => db.selectFrom('sweeps').select('id').execute())
    expect(before.length).toBeGreaterThanOrEqual(3)
    expect((await compact(w)).findings).toBe(1)
    const after = (await store.read(({ db }) => db.selectFrom('sweeps').select('id').orderBy('started_at').execute())).map((row) => row.id)
    expect(after).toHaveLength(2)
    expect(after[0]).toBe(sweep)
    const receipt = await readReceipt(w.engine.context, root, `scripted/here/${box.resource.nativeId}`)
    expect(receipt.whole).toBe(true)
  })

  it('a request key is forgotten with its lease, and makes a new one then', async () => {
    const w = await world()
    const createAttemptID = `cat_${hex(16)}`
    const { lease } = await createLease(w.engine.context, ann, { ...long, createAttemptID })
    await leaseWhen(w.engine, lease.id, (view) => view.state === 'active')
    await releaseLease(w.engine.context, ann, lease.id, { delete: true })
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    await advance(w.store, 91 * day)
    await compact(w)
    const again = await createLease(w.engine.context, ann, { ...long, createAttemptID })
    expect([again.replayed, again.lease.id === lease.id]).toEqual([false, false])
  })

  it('slows nothing with age: what retention and the pipelines ask reads no whole table', async () => {
    const w = await world()
    const { store } = w
    await ended(w)
    await advance(store, 100 * day)
    const texts = (await statementsOf(store, () => compact(w))).filter((text) => /^\s*(select|delete)/i.test(text))
    expect(texts.length).toBeGreaterThan(4)
    const plan = async (text: string): Promise<string> => {
      const filled = text.replaceAll(/\$\d+|\?/g, "'1'")
      const asked = store.dialect === 'sqlite' ? `explain query plan ${filled}` : `explain ${filled}`
      const rows = await store.write(async (tx) => {
        // Small tables are read whole whatever the index: here the question is whether there is one.
        if (tx.dialect === 'postgresql') await sql`set local enable_seqscan = off`.execute(tx.db)
        return (await sql.raw<Record<string, unknown>>(asked).execute(tx.db)).rows
      })
      return rows.map((row) => String(row['detail'] ?? row['QUERY PLAN'])).join('\n')
    }
    // Of looks by ids the number of ids is the cost.
    const asked = texts.filter((one) => /from (instances|findings|sweeps)\b/.test(one) && !/\bin \([$?]/.test(one))
    expect(asked.length).toBeGreaterThanOrEqual(3)
    for (const text of asked) {
      const shown = await plan(text)
      expect(shown, text).not.toMatch(/SCAN (i|instances|findings|s|sweeps)(?! USING)\b|Seq Scan/)
    }
  })
})
