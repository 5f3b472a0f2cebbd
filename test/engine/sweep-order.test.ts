import { setImmediate as others } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, expect, it } from 'vitest'
import { createLease, releaseLease } from '../../src/engine/leases/index.ts'
import { silentLog } from '../../src/engine/context.ts'
import { evidenceOf } from '../../src/store/evidence.ts'
import { lockDue } from '../../src/store/due.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import type { Session } from '../../src/store/store.ts'
import type { Ref } from '../../src/model/ids.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { everything } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { engines, intervalMs, long, marginMs, sweepRounds, type Rounds } from '../support/sweep-rounds.ts'

/** The same session, and whatever is asked of its database. */
const counting = (session: Session, asked: string[]): Session => ({
  ...session,
  db: new Proxy(session.db, {
    get(db, name) {
      asked.push(String(name))
      const value: unknown = Reflect.get(db, name)
      return typeof value === 'function' ? (value.bind(db) as unknown) : value
    },
  }),
})

eachStore('the order of a sweep', (open) => {
  const world = engines()
  afterEach(() => world.stop())
  const begin = async (given: Parameters<typeof sweepRounds>[1] = {}): Promise<Rounds> => world.keep(await sweepRounds(await open(), given))
  const whole = (w: Rounds) => [...everything(w.provider.boxes, 'here')]

  it('a box that is made while the listing is under way is nobody’s orphan: it lists first and reads its rows after that (orphans R47, R49)', async () => {
    const w = await begin({ mode: 'delete', graceMs: 0 })
    await leaseOn(w.engine, long)
    let made: string[] = []
    w.provider.onList = async () => {
      const { lease } = await createLease(w.engine.context, ann, { ...long })
      await leaseWhen(w.engine, lease.id, (view) => view.state === 'active')
      made = [...made, lease.id]
      return whole(w)
    }
    for (let i = 0; i < 3; i++) {
      const certificate = await w.round()
      expect(Object.keys(certificate?.verdicts ?? {}).filter((reason) => reason.startsWith('orphan'))).toEqual([])
    }
    expect(made).toHaveLength(3)
    expect(w.provider.count('remove')).toBe(0)
    expect(await w.open()).toEqual([])
    // The twin: once its lease has ended, what turns up of it is one.
    w.provider.onList = undefined
    await w.orphan()
    await w.round()
    expect((await w.open()).map((row) => row.code)).toEqual(['orphan'])
  })

  it('ledger and owners of listed refs are read in one statement (orphans R46)', async () => {
    const w = await begin()
    const leases = [await leaseOn(w.engine, long), await leaseOn(w.engine, long)]
    const statements: string[] = []
    const evidence = await w.store.read((session) =>
      evidenceOf(
        counting(session, statements),
        leases.map((lease) => lease.ref as string),
        0,
      ),
    )
    expect([...evidence.values()].map((one) => [one.ledger?.ownerId, one.instance?.id])).toEqual(
      expect.arrayContaining(leases.map((lease) => [lease.instanceID, lease.instanceID])),
    )
    expect(evidence.size).toBe(2)
    expect(statements).toEqual(['executeQuery'])
  })

  it('a ledger row never shows without the owner that was committed with it, however the two race (orphans R7, R47)', async () => {
    const w = await begin()
    const first = await leaseOn(w.engine, long)
    const rows = await w.store.read(async ({ db }) => ({
      ledger: await db
        .selectFrom('ledger')
        .selectAll()
        .where('ref', '=', first.ref as Ref)
        .executeTakeFirstOrThrow(),
      instance: await db
        .selectFrom('instances')
        .selectAll()
        .where('ref', '=', first.ref as Ref)
        .executeTakeFirstOrThrow(),
    }))
    const refs = Array.from({ length: 60 }, (_, i) => `r${String(i).padStart(11, 'a')}` as Ref)
    let written = false
    const writing = (async () => {
      for (const ref of refs)
        await w.store.write(async (tx) => {
          const id = `in_${ref}` as typeof rows.instance.id
          await tx.db
            .insertInto('instances')
            .values({ ...rows.instance, id, ref, lease_id: null, attempt_id: null, due_at: null })
            .execute()
          await tx.db
            .insertInto('ledger')
            .values({ ...rows.ledger, ref, owner_id: id })
            .execute()
        })
    })().finally(() => {
      written = true
    })
    let halves = 0
    let seen = 0
    do {
      const evidence = await w.store.read((session) => evidenceOf(session, refs, 0))
      seen = evidence.size
      for (const one of evidence.values()) if (one.instance === null) halves++
      await others()
    } while (!written)
    await writing
    expect(halves).toBe(0)
    expect(seen).toBeGreaterThan(0)
  })

  it('the watermark is the time before the first call, less the margin, however long the listing takes (orphans R45, R63, R76)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    let scopeAskedAt = 0
    const scope = w.provider.scope.bind(w.provider)
    w.provider.scope = async (...args) => {
      scopeAskedAt = await w.store.now()
      return scope(...args)
    }
    w.provider.onList = async () => {
      const items = whole(w)
      await advance(w.store, 20_000)
      return items
    }
    const certificate = await w.round()
    expect(certificate?.outcome).toBe('clean')
    expect((certificate?.endedAt ?? 0) - scopeAskedAt).toBe(20_000)
    expect((await w.cleanup()).clean_at).toBe(scopeAskedAt - marginMs)
  })

  it('what changes while the listing is under way, and what changed within the margin before it, is not judged by it (orphans R62, R65, R66)', async () => {
    const w = await begin({ mode: 'delete', graceMs: 0 })
    const lease = await leaseOn(w.engine, long)
    const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    w.provider.onList = async () => {
      w.provider.onList = undefined
      const items = whole(w)
      await releaseLease(w.engine.context, ann, lease.id, {})
      await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
      w.provider.boxes.set(box.resource.nativeId, box)
      return items
    }
    const settling = { 'settling.changed': 1 }
    expect((await w.round())?.verdicts).toEqual(settling)
    const closed = await w.store.now()
    // Exactly margin before the listing is within it; a millisecond more is not.
    const at = async (afterCloseMs: number) => w.round(closed + afterCloseMs - (await w.store.now()))
    expect((await at(marginMs))?.verdicts).toEqual(settling)
    expect((await at(marginMs + 1))?.verdicts).toEqual({ 'orphan.owner-ended': 1 })
  })

  it('the watermark never moves back, also when the clock does (orphans R81)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    expect((await w.round())?.outcome).toBe('clean')
    const before = (await w.cleanup()).clean_at
    await setClock(w.store, (await w.store.now()) - 3_600_000)
    w.settings.mode = 'delete'
    expect(await w.round(0)).toMatchObject({ outcome: 'clean' })
    expect((await w.cleanup()).clean_at).toBe(before)
    expect((await w.cleanup()).clean_mode).toBe('delete')
    const cells = await w.store.read(({ db }) => db.selectFrom('cells').select('clean_at').execute())
    expect(cells).toEqual([{ clean_at: before }])
  })

  it('who lost its lock writes nothing: no finding, no event, no certificate, no watermark, no delay (orphans R37, R82, R83, I3)', async () => {
    const w = await begin({ mode: 'delete', graceMs: 0 })
    await w.orphan()
    const state = async () =>
      JSON.stringify(
        await w.store.read(async ({ db }) => ({
          findings: await db.selectFrom('findings').selectAll().execute(),
          sweeps: await db.selectFrom('sweeps').selectAll().execute(),
          cells: await db.selectFrom('cells').selectAll().execute(),
          removals: await db.selectFrom('removals').selectAll().execute(),
          events: await db.selectFrom('events').select('id').execute(),
          cleanups: await db.selectFrom('cleanups').selectAll().execute(),
        })),
      )
    let taken = ''
    w.provider.onList = async () => {
      w.provider.onList = undefined
      // Another replica took the row meanwhile, and is done with it already.
      await w.store.write((tx) =>
        tx.db
          .updateTable('cleanups')
          .set({ lock_fence: sql<number>`lock_fence + 1`, lock_owner: null, lock_until: null, due_at: null })
          .execute(),
      )
      taken = await state()
      return whole(w)
    }
    const ended: object[] = []
    w.engine.context.log.info = (fields, message) => void (message === 'sweep ended' && ended.push(fields))
    await w.round()
    await expect.poll(() => ended, { timeout: 20_000 }).toEqual([expect.objectContaining({ outcome: 'lost its lock' })])
    expect(await state()).toBe(taken)
    // The twin: with its lock it writes all of that.
    await w.round()
    expect((await w.open()).map((row) => row.code)).toEqual(['orphan'])
  })

  it('an owner that is stuck pending, and an active one without its data, are errors in the log (orphans R53, R58, R87)', async () => {
    const errors: [object, string][] = []
    const w = await begin({ log: { ...silentLog, error: (fields, message) => void errors.push([fields, message]) } })
    const stuck = await leaseOn(w.engine, long)
    const bare = await leaseOn(w.engine, long)
    await w.store.write(async (tx) => {
      await tx.db
        .updateTable('instances')
        .set({ state: 'pending', lease_id: null, due_at: null })
        .where('ref', '=', stuck.ref as Ref)
        .execute()
      await tx.db
        .updateTable('attempts')
        .set({ outcome: 'open', ended_at: null })
        .where('ref', '=', stuck.ref as Ref)
        .execute()
      await tx.db
        .updateTable('attempts')
        .set({ immutable_id: null })
        .where('ref', '=', bare.ref as Ref)
        .execute()
    })
    // While it may still be in flight nothing is said of it.
    await w.round(1000)
    expect(errors.filter(([fields]) => (fields as { ref?: string }).ref === stuck.ref)).toEqual([])
    await w.round()
    const told = errors.map(([fields]) => fields).filter((fields) => 'reason' in fields)
    expect(told).toContainEqual(expect.objectContaining({ reason: 'inFlight.stuck', ref: stuck.ref, owner: stuck.instanceID }))
    expect(told).toContainEqual(expect.objectContaining({ reason: 'contradiction.no-provisioning-data', ref: bare.ref }))
    expect((await w.open()).map((row) => row.code).toSorted()).toEqual(['contradiction', 'stuck'])
    expect(w.provider.count('remove')).toBe(0)
  })

  it('which rows are due is read from their own columns alone: it does not look at instances or leases (orphans R38)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    await w.round()
    await w.engine.stop(0)
    const held = await w.store.write(async (tx) => {
      // Read only in this transaction, which is then taken back: without those tables the fetch still works.
      for (const table of ['instances', 'leases', 'ledger', 'attempts', 'findings'])
        await sql`alter table ${sql.table(table)} rename to ${sql.table(`${table}_away`)}`.execute(tx.db)
      await tx.db.updateTable('cleanups').set({ due_at: tx.now }).execute()
      return lockDue(tx, 'cleanups', 'me', 10, 30_000)
    })
    expect(held).toMatchObject([{ id: 'default/local' }])
  })

  it('a row is processed once an interval, and after failures that ended the delay is the interval again (orphans R35, R80)', async () => {
    const w = await begin()
    await leaseOn(w.engine, long)
    w.provider.onList = () => {
      throw new Error('503')
    }
    const delay = async () => ((await w.cleanup()).due_at ?? 0) - (await w.store.now())
    const hour = 3_600_000
    for (let i = 0; i < 4; i++) await w.round(2 * hour)
    expect(await delay()).toBeGreaterThanOrEqual(8 * intervalMs)
    expect((await w.cleanup()).failures).toBe(4)
    w.provider.onList = undefined
    expect((await w.round(2 * hour))?.outcome).toBe('clean')
    expect((await w.cleanup()).failures).toBe(0)
    for (let i = 0; i < 3; i++) {
      expect(await delay()).toBeGreaterThanOrEqual(intervalMs)
      expect(await delay()).toBeLessThanOrEqual(intervalMs * 1.2)
      await w.round()
    }
  })
})
