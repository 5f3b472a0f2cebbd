import { afterEach, expect, it } from 'vitest'
import { createProject, addBackend, deleteProject } from '../../src/engine/admin/index.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { enrolMissing } from '../../src/engine/sweep/enrol.ts'
import type { Actor } from '../../src/engine/actor.ts'
import type { AttemptId, Ref, ScopeId } from '../../src/model/ids.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { ann, leaseOn, leaseWhen, root } from '../support/engine.ts'
import { everything } from '../support/scripted-provider.ts'
import { advance, eachStore } from '../support/stores.ts'
import { engines, intervalMs, long, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000

eachStore('whose a resource is', (open) => {
  const world = engines()
  afterEach(() => world.stop())
  const begin = async (given: Parameters<typeof sweepRounds>[1] = {}): Promise<Rounds> => world.keep(await sweepRounds(await open(), given))
  const codes = async (w: Rounds) => (await w.open()).map((row) => `${row.code} ${row.target_id}`).toSorted()
  const boxOf = (w: Rounds, cloudId: string | null): ListedResource => w.provider.boxes.get(cloudId ?? '') as ListedResource

  /** What an earlier attempt for the same ref made, in another account or in the same one: recorded, and not what the instance is bound to. */
  const earlierAttempt = async (w: Rounds, ref: string, scope: string, backend: string, nativeId: string): Promise<ListedResource> => {
    const attempt = await w.store.read(({ db }) =>
      db
        .selectFrom('attempts')
        .selectAll()
        .where('ref', '=', ref as Ref)
        .executeTakeFirstOrThrow(),
    )
    const bound = boxOf(w, attempt.native_id)
    const token = `token-of-${nativeId}`
    const box: ListedResource = {
      ...bound,
      resource: { ...bound.resource, scope: scope as ScopeId, nativeId, immutableId: `${nativeId}#1` },
      tags: { ...bound.tags, attempt: token },
      fixedAttemptToken: token,
    }
    await w.store.write((tx) =>
      tx.db
        .insertInto('attempts')
        .values({
          ...attempt,
          id: `at_${nativeId}` as AttemptId,
          number: 2,
          token,
          backend,
          scope: scope as ScopeId,
          outcome: 'abandoned',
          ended_at: attempt.opened_at,
          native_id: nativeId,
          immutable_id: box.resource.immutableId,
        })
        .execute(),
    )
    w.provider.boxes.set(nativeId, box)
    return box
  }

  it('the account that really made a box decides, not the backend that is asked: a leftover on B of an instance on A is B’s orphan, and A’s box stays (orphans R59, R61)', async () => {
    const w = await begin({ mode: 'delete' })
    await w.addBackend('other', { account: 'scripted:two' })
    const lease = await leaseOn(w.engine, long)
    await leaseOn(w.engine, { ...long, backend: 'other' })
    const left = await earlierAttempt(w, lease.ref ?? '', 'scripted:two', 'other', 'left')
    expect((await w.round(2 * intervalMs, 'local'))?.verdicts).toEqual({})
    expect((await w.round(1000, 'other'))?.verdicts).toEqual({ 'orphan.lives-elsewhere': 1 })
    await w.round(2 * intervalMs, 'local')
    await w.round(1000, 'other')
    await until(() => !w.provider.boxes.has(left.resource.nativeId), 'the leftover is taken back')
    expect(w.provider.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual(['left'])
    expect((await leaseWhen(w.engine, lease.id, () => true)).state).toBe('active')
  })

  it('of several groups of one ref in one account only the bound one is tracked, each judged by itself (orphans R13, R57, R60)', async () => {
    const w = await begin()
    const lease = await leaseOn(w.engine, long)
    await earlierAttempt(w, lease.ref ?? '', 'scripted:one', 'local', 'twin')
    expect(await w.round()).toMatchObject({ verdicts: { 'orphan.not-the-bound-one': 1 }, counts: { expected: 1, seen: 1 } })
    expect(await codes(w)).toEqual(['orphan scripted/here/twin'])
  })

  it('a deletion that is accepted and not ended makes the next sweep unsettled (orphans R71)', async () => {
    const w = await begin({ mode: 'delete' })
    await w.orphan()
    w.provider.onRemove = () => ({ kind: 'accepted', requestId: null })
    await w.round()
    await w.round()
    await until(
      async () =>
        (await w.store.read(({ db }) => db.selectFrom('removals').select('state').where('cause', 'like', 'orphan.%').execute()))[0]
          ?.state === 'verifying',
      'it is accepted',
    )
    expect(await w.round(60_000)).toMatchObject({ outcome: 'unsettled', why: expect.arrayContaining(['1 deletion is in progress']) })
  })

  it('a deletion that fails makes the sweep failed; the others are handled all the same, one at a time until trust has grown again (orphans R72, R79)', async () => {
    const w = await begin({ mode: 'delete' })
    const { box: locked } = await w.orphan()
    w.provider.onRemove = (resource) => (resource.nativeId === locked.resource.nativeId ? { kind: 'blocked', by: 'a lock' } : undefined)
    for (let i = 0; i < 2; i++) await w.round()
    const failures = async () =>
      (await w.store.read(({ db }) => db.selectFrom('removals').selectAll().where('cause', 'like', 'orphan.%').execute()))[0]?.failures ?? 0
    await until(async () => (await failures()) > 0, 'it fails')
    const { box: other } = await w.orphan()
    const first = await w.round()
    expect(first).toMatchObject({ outcome: 'failed', why: ['1 deletion failed'] })
    const before = await w.cleanup()
    const second = await w.round()
    expect(second).toMatchObject({ outcome: 'failed', plan: { kind: 'begin', removals: [`scripted/here/${other.resource.nativeId}`] } })
    await until(() => !w.provider.boxes.has(other.resource.nativeId), 'the other one is taken back')
    expect(w.provider.boxes.has(locked.resource.nativeId)).toBe(true)
    expect(await w.cleanup()).toMatchObject({ failures: before.failures + 1, clean_at: before.clean_at })
    // The twin: once the lock is off, it goes, and the sweeps are clean again (orphans R80).
    w.provider.onRemove = undefined
    await advance(w.store, hour)
    w.engine.context.signals.wake('remove')
    await until(() => !w.provider.boxes.has(locked.resource.nativeId), 'the locked one is taken back')
    for (let i = 0; i < 2; i++) await w.round()
    expect(await w.cleanup()).toMatchObject({ outcome: 'clean', failures: 0 })
  })

  it.each(['report', 'delete', 'off'] as const)(
    'in mode %s nothing that is tracked, skipped or ignored is asked for anything but its words (orphans R75)',
    async (mode) => {
      const w = await begin({ mode: 'report', graceMs: 0 })
      const tracked = await leaseOn(w.engine, long)
      const pending = await leaseOn(w.engine, long)
      await w.store.write(async (tx) => {
        await tx.db
          .updateTable('instances')
          .set({ state: 'pending', lease_id: null, due_at: null })
          .where('ref', '=', pending.ref as Ref)
          .execute()
      })
      const box = boxOf(w, tracked.cloudID)
      w.provider.boxes.set('foreign', {
        ...box,
        resource: { ...box.resource, nativeId: 'foreign', immutableId: 'foreign#1' },
        tags: { ref: 'zzzzzzzzzzzz', installation: 'other123', attempt: 'x', mac: null },
        fixedAttemptToken: 'x',
      })
      await w.round()
      w.settings.mode = mode
      const before = { boxes: [...w.provider.boxes], calls: w.provider.calls.length }
      for (let i = 0; i < 4; i++) await w.round()
      expect(w.provider.calls.slice(before.calls).filter((call) => call.op !== 'list')).toEqual([])
      expect([...w.provider.boxes]).toEqual(before.boxes)
      expect(w.provider.calls.length - before.calls).toBe(mode === 'off' ? 0 : 4)
    },
  )

  it('only instances own refs, and a kind that no attempt makes is never taken back, whatever it carries (orphans R2, R101)', async () => {
    const w = await begin({ mode: 'delete', graceMs: 0 })
    const { box } = await w.orphan()
    w.provider.boxes.clear()
    const volume = { ...box, resource: { ...box.resource, kind: 'volume', nativeId: 'volume-1', immutableId: 'volume-1#1' } }
    w.provider.boxes.set('volume-1', volume)
    const removals = w.provider.count('remove')
    for (let i = 0; i < 4; i++) await w.round()
    expect(w.provider.count('remove')).toBe(removals)
    expect(w.provider.boxes.has('volume-1')).toBe(true)
    expect((await w.open()).map((row) => [row.code, (JSON.parse(row.evidence) as { verdict: { reason: string } }).verdict.reason])).toEqual(
      [['contradiction', 'contradiction.wrong-kind']],
    )
    const kinds = await w.store.read(({ db }) => db.selectFrom('ledger').select('owner_kind').distinct().execute())
    expect(kinds).toEqual([{ owner_kind: 'instance' }])
  })

  it('backends of one account have a row and a listing each; one quarantine, one removal, and limits that they share (orphans R105, I8)', async () => {
    const w = await begin({ mode: 'delete' })
    await w.addBackend('second')
    const { box } = await w.orphan()
    await leaseOn(w.engine, { ...long, backend: 'second' })
    const lists = w.provider.count('list')
    await w.round(2 * intervalMs, 'local')
    await w.round(60_000, 'second')
    expect(w.provider.count('list')).toBe(lists + 2)
    expect(await w.store.read(({ db }) => db.selectFrom('cleanups').select('id').orderBy('id').execute())).toEqual([
      { id: 'default/local' },
      { id: 'default/second' },
    ])
    expect((await w.open()).filter((row) => row.code === 'orphan')).toMatchObject([{ complete_sightings: 2, times_seen: 2 }])
    await w.round(intervalMs, 'local')
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'the orphan is taken back')
    await w.round(60_000, 'second')
    expect(w.provider.calls.filter((call) => call.op === 'remove' && call.id === box.resource.nativeId)).toHaveLength(2)
    expect((await w.open()).filter((row) => row.code === 'orphan')).toEqual([])
  })

  it('a hundred removals a day are those of the account, whichever of its backends began them (orphans R105, I8)', async () => {
    const w = await begin({ mode: 'delete' })
    await w.addBackend('second')
    await leaseOn(w.engine, { ...long, backend: 'second' })
    await w.orphan()
    const row = await w.store.read(({ db }) => db.selectFrom('removals').selectAll().executeTakeFirstOrThrow())
    await w.store.write(async (tx) => {
      for (let i = 0; i < 100; i++)
        await tx.db
          .insertInto('removals')
          .values({
            ...row,
            id: `rm_day${i}` as typeof row.id,
            backend: 'second',
            cause: 'orphan.owner-ended',
            state: 'gone',
            due_at: null,
            opened_at: tx.now + 2 * intervalMs,
          })
          .execute()
    })
    await w.round()
    expect((await w.round())?.plan).toMatchObject({ kind: 'wait', why: expect.stringContaining('100 of 100 removals a day') })
    // The twin: a day later they no longer count.
    expect((await w.round(25 * hour))?.plan).toMatchObject({ kind: 'begin' })
  })

  it('what the provider itself finds at odds with a ref of ours is a finding while it says so, also of two backends, and resolves by itself (orphans R50)', async () => {
    const w = await begin({ mode: 'delete' })
    const lease = await leaseOn(w.engine, long)
    const odd = { nativeId: 'pid-7', location: 'here', why: 'a process outside the box carries its ref', ref: lease.ref ?? '' }
    const stranger = { ...odd, nativeId: 'pid-8', ref: 'zzzzzzzzzzzz' }
    w.provider.onList = () => [
      ...everything(w.provider.boxes, 'here'),
      ...[odd, stranger].map((contradiction) => ({ type: 'contradiction' as const, contradiction })),
    ]
    await w.round()
    expect(await codes(w)).toEqual(['contradiction scripted/here/pid-7'])
    // A listing that failed in between resolves nothing.
    w.provider.onList = () => [
      { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'partial', why: '500' }, pages: 1 } },
    ]
    await leaseOn(w.engine, long)
    await w.round()
    expect(await codes(w)).toEqual(['contradiction scripted/here/pid-7'])
    w.provider.onList = undefined
    await w.round()
    expect(await codes(w)).toEqual([])
    expect(w.provider.count('remove')).toBe(0)
  })

  it('a whole deleted project drains: it is swept until nothing of ours is left, then rows and secrets go, and its ledger stays (orphans R34, R100, R104, U7, I2)', async () => {
    const w = await begin({ mode: 'delete' })
    await createProject(w.engine.context, root, 'web')
    for (const [name, account] of [
      ['one', 'scripted:web-1'],
      ['two', 'scripted:web-2'],
    ] as const)
      await addBackend(w.engine.context, root, { name, project: 'web', provider: 'scripted', config: { account, secret: 'hunter2' } })
    const bea: Actor = { ...ann, name: 'bea', project: 'web' }
    const left: ListedResource[] = []
    for (const backend of ['one', 'two']) {
      const lease = await leaseOn(w.engine, { ...long, backend }, bea)
      const box = boxOf(w, lease.cloudID)
      await releaseLease(w.engine.context, bea, lease.id, {})
      await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
      left.push(box)
    }
    const refs = await w.store.read(({ db }) => db.selectFrom('ledger').selectAll().orderBy('ref').execute())
    await deleteProject(w.engine.context, root, 'web')
    // Of the first something surfaces late.
    w.provider.boxes.set((left[0] as ListedResource).resource.nativeId, left[0] as ListedResource)
    await enrolMissing(w.engine.context)
    const backends = async () =>
      (await w.store.read(({ db }) => db.selectFrom('backends').select('name').where('project', '=', 'web').orderBy('name').execute())).map(
        (row) => row.name,
      )
    const sweepAll = async () => {
      await advance(w.store, 2 * intervalMs)
      const before = await w.store.read(({ db }) =>
        db.selectFrom('cleanups').select(['id', 'lock_fence']).where('project', '=', 'web').execute(),
      )
      await w.store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).where('lock_owner', 'is', null).execute())
      w.engine.context.signals.wake('sweep')
      await until(async () => {
        const now = new Map((await w.store.read(({ db }) => db.selectFrom('cleanups').selectAll().execute())).map((row) => [row.id, row]))
        return before.every(({ id, lock_fence: fence }) => {
          const row = now.get(id)
          return row === undefined || (row.lock_fence > fence && row.lock_owner === null)
        })
      }, 'all are processed')
    }
    await sweepAll()
    expect(await backends()).toEqual(['one'])
    await sweepAll()
    await until(() => w.provider.boxes.size === 0, 'what surfaced late is taken back')
    for (let i = 0; i < 3 && (await backends()).length > 0; i++) await sweepAll()
    expect(await backends()).toEqual([])
    const rest = await w.store.read(async ({ db }) => ({
      cleanups: await db.selectFrom('cleanups').select('id').where('project', '=', 'web').execute(),
      cells: await db.selectFrom('cells').selectAll().where('project', '=', 'web').execute(),
      ledger: await db.selectFrom('ledger').selectAll().orderBy('ref').execute(),
    }))
    expect(rest).toEqual({ cleanups: [], cells: [], ledger: refs })
  })

  it('a deleted backend whose account became another one is stranded, and does not count as drained (orphans R100, U16)', async () => {
    const w = await begin({ mode: 'delete' })
    await w.orphan()
    await w.round()
    w.provider.scope = async () => ({ kind: 'known', scope: 'scripted:two' as ScopeId, description: 'another' })
    await w.store.write((tx) => tx.db.updateTable('backends').set({ deleted_at: tx.now, is_default: 0 }).execute())
    const lists = w.provider.count('list')
    for (let i = 0; i < 3; i++) expect(await w.round()).toMatchObject({ outcome: 'unsettled', error: 'the account is now scripted:two' })
    expect(w.provider.count('list')).toBe(lists)
    expect(await w.store.read(({ db }) => db.selectFrom('backends').select('name').execute())).toEqual([{ name: 'local' }])
    expect((await w.open()).map((row) => row.code).toSorted()).toEqual(['orphan', 'scope-stranded'])
  })
})
