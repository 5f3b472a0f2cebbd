import { sql, type CompiledQuery } from 'kysely'
import { expect, it } from 'vitest'
import { kyselyOn } from '../../src/store/connection.ts'
import {
  anyDue,
  extendLocks,
  lockDue,
  locksOf,
  stillHeld,
  takeDue,
  unlocked,
  voidLocks,
  wakeRow,
  type Locked,
} from '../../src/store/due.ts'
import type { Db, Store, Tx } from '../../src/store/store.ts'
import { eachStore, setClock } from '../support/stores.ts'
import { insertRows } from './rows.ts'

const t0 = 1_780_000_000_000
const lockMs = 30_000
const row = (store: Store, id: string) =>
  store.read(({ db }) =>
    db
      .selectFrom('leases')
      .select(['due_at', 'lock_fence', 'lock_owner', 'lock_until'])
      .where('id', '=', id as never)
      .executeTakeFirstOrThrow(),
  )
const lock = (store: Store, owner: string, limit = 100): Promise<Locked[]> =>
  store.write((tx) => lockDue(tx, 'leases', owner, limit, lockMs))

eachStore('the queue in a table', (open, database) => {
  const filled = async (count: number, dueAt: (n: number) => number | null = () => t0): Promise<Store> => {
    const store = await open()
    await setClock(store, t0)
    await store.write((tx) => insertRows(tx, 'leases', count, (n) => ({ due_at: dueAt(n) })))
    return store
  }

  it('gives the longest due first, as many as asked for, and nothing that is not due (leases R42)', async () => {
    const store = await filled(6, (n) => (n === 6 ? null : t0 - 3 + n))
    expect((await lock(store, 'a', 2)).map((one) => one.id).toSorted()).toEqual(['lh_000000000001', 'lh_000000000002'])
    expect((await lock(store, 'b')).map((one) => one.id)).toEqual(['lh_000000000003'])
    expect(await lock(store, 'c')).toEqual([])
    expect(await store.read((session) => anyDue(session, 'leases', t0))).toBe(false)
    expect(await store.read((session) => anyDue(session, 'leases', t0 + 1))).toBe(true)
  })

  it('a lock stands until its end to the millisecond, and then another worker gets the row, with the next fence (leases R43, R47)', async () => {
    const store = await filled(1)
    const [first] = await lock(store, 'a')
    expect(first).toMatchObject({ id: 'lh_000000000001', fence: 1 })
    expect(await row(store, 'lh_000000000001')).toEqual({ due_at: t0 + lockMs, lock_fence: 1, lock_owner: 'a', lock_until: t0 + lockMs })
    await setClock(store, t0 + lockMs - 1)
    expect(await lock(store, 'b')).toEqual([])
    await setClock(store, t0 + lockMs)
    expect(await lock(store, 'b')).toMatchObject([{ id: 'lh_000000000001', fence: 2 }])
    // The first one has lost it: it extends nothing and holds nothing (I3).
    const held = [first as Locked]
    expect(await store.write((tx) => extendLocks(tx, 'leases', held, 'a', lockMs))).toEqual(new Set())
    expect(await store.write((tx) => stillHeld(tx, 'leases', held))).toEqual(new Set())
    expect(await store.write((tx) => stillHeld(tx, 'leases', [{ id: 'lh_000000000001', fence: 2 }]))).toEqual(new Set(['lh_000000000001']))
  })

  it('a row that is taken for one transaction is nobody else’s meanwhile, and the fence given with it shuts out whose lock has run out (I3)', async () => {
    const db = await database()
    const [store, other] = [await db.open(), await db.open()]
    await setClock(store, t0)
    await store.write((tx) => insertRows(tx, 'leases', 2, (n) => ({ due_at: n === 1 ? t0 : t0 + 1 })))
    const [stale] = await lock(store, 'a')
    await setClock(store, t0 + lockMs)
    const taken = await store.write(async (tx) => {
      const rows = await takeDue(tx, 'leases', 1)
      // On PostgreSQL another transaction comes in between, and passes it by; SQLite lets none begin.
      const meanwhile = store.dialect === 'postgresql' ? await other.write((second) => takeDue(second, 'leases', 10)) : []
      expect(meanwhile.map((one) => one.id)).toEqual(store.dialect === 'postgresql' ? ['lh_000000000001'] : [])
      await tx.db
        .updateTable('leases')
        .set({ ...unlocked(null), lock_fence: rows[0]?.fence ?? 0 })
        .where('id', '=', rows[0]?.id as never)
        .execute()
      return rows
    })
    expect(taken).toMatchObject([{ id: 'lh_000000000002', fence: 1 }])
    const rest = await store.write(async (tx) => {
      const rows = await takeDue(tx, 'leases', 10)
      await tx.db
        .updateTable('leases')
        .set({ ...unlocked(null), lock_fence: rows[0]?.fence ?? 0 })
        .where('id', '=', rows[0]?.id as never)
        .execute()
      return rows
    })
    expect(rest).toMatchObject([{ id: stale?.id, fence: 2 }])
    expect(await store.write((tx) => stillHeld(tx, 'leases', [stale as Locked]))).toEqual(new Set())
  })

  it('an extension moves the end; one of another owner, of an older fence, or of a row given back does not', async () => {
    const store = await filled(3)
    const held = await lock(store, 'a')
    await setClock(store, t0 + 20_000)
    expect(await store.write((tx) => extendLocks(tx, 'leases', held, 'someone else', lockMs))).toEqual(new Set())
    const older = held.map((one) => ({ ...one, fence: one.fence - 1 }))
    expect(await store.write((tx) => extendLocks(tx, 'leases', older, 'a', lockMs))).toEqual(new Set())
    await store.write(async (tx) => {
      await tx.db
        .updateTable('leases')
        .set(unlocked(t0 + 99_000))
        .where('id', '=', 'lh_000000000003' as never)
        .execute()
    })
    expect(await store.write((tx) => extendLocks(tx, 'leases', held, 'a', lockMs))).toEqual(new Set(['lh_000000000001', 'lh_000000000002']))
    expect(await row(store, 'lh_000000000001')).toMatchObject({ due_at: t0 + 50_000, lock_until: t0 + 50_000 })
    expect(await row(store, 'lh_000000000003')).toMatchObject({ due_at: t0 + 99_000, lock_owner: null, lock_until: null })
    expect(await store.write((tx) => stillHeld(tx, 'leases', held))).toEqual(new Set(['lh_000000000001', 'lh_000000000002']))
    expect(await store.read((session) => locksOf(session, 'a'))).toBe(2)
    expect(await store.write((tx) => extendLocks(tx, 'leases', [], 'a', lockMs))).toEqual(new Set())
    expect(await store.write((tx) => stillHeld(tx, 'leases', []))).toEqual(new Set())
  })

  it('what a dead replica had is due at once, and it can apply nothing any more; the living keep theirs', async () => {
    const store = await filled(4)
    const dead = await lock(store, 'dead', 2)
    const living = await lock(store, 'living', 2)
    await store.write((tx) => voidLocks(tx, 'leases', []))
    expect(await lock(store, 'other')).toEqual([])
    await store.write((tx) => voidLocks(tx, 'leases', ['dead', 'gone long ago']))
    expect(await store.write((tx) => stillHeld(tx, 'leases', dead))).toEqual(new Set())
    expect(await store.write((tx) => stillHeld(tx, 'leases', living))).toEqual(new Set(living.map((one) => one.id)))
    const taken = await lock(store, 'other')
    expect(taken.map((one) => one.id).toSorted()).toEqual(dead.map((one) => one.id).toSorted())
    expect(taken.map((one) => one.fence)).toEqual([3, 3])
  })

  it('waking makes a row due now, unless a worker has it', async () => {
    const store = await filled(2, (n) => (n === 1 ? t0 : null))
    await lock(store, 'a')
    await store.write((tx) => wakeRow(tx, 'leases', 'lh_000000000001'))
    await store.write((tx) => wakeRow(tx, 'leases', 'lh_000000000002'))
    expect((await row(store, 'lh_000000000001')).due_at).toBe(t0 + lockMs)
    expect((await row(store, 'lh_000000000002')).due_at).toBe(t0)
  })

  it('two stores that lock at once never get the same row, and every row is got; fences only grow', { timeout: 60_000 }, async () => {
    const db = await database()
    const stores = [await db.open(), await db.open()] as const
    const count = 1500
    await setClock(stores[0], t0)
    await stores[0].write((tx) => insertRows(tx, 'leases', count, () => ({ due_at: t0 })))
    const fences = new Map<string, number>()
    for (let round = 1; round <= 3; round++) {
      await setClock(stores[0], t0 + round * lockMs)
      const got: Locked[] = []
      const drain = async (store: Store, owner: string): Promise<void> => {
        for (;;) {
          const part = await lock(store, owner, 50)
          got.push(...part)
          // Another may have them for a moment only: what is left is looked at again until nothing is.
          if (part.length === 0 && !(await store.read((session) => anyDue(session, 'leases', t0 + round * lockMs)))) return
        }
      }
      await Promise.all([0, 1, 2, 3].map((worker) => drain(stores[worker % 2] as Store, `w${worker}`)))
      expect(got).toHaveLength(count)
      expect(new Set(got.map((one) => one.id)).size).toBe(count)
      for (const { id, fence } of got) {
        expect(fence).toBe((fences.get(id) ?? 0) + 1)
        fences.set(id, fence)
      }
    }
  })

  it('what it costs to look and to lock does not grow with the rows that are not due: the index on due_at carries both', async () => {
    const store = await filled(20_000, (n) => (n <= 3 ? t0 : n % 2 === 0 ? null : t0 + 86_400_000 + n))
    if (store.dialect === 'postgresql') await store.write((tx) => sql`analyze leases`.execute(tx.db))
    /** Runs `body` on a session that notes the plan of each statement before it runs it. */
    const plansOf = async (body: (tx: Tx) => Promise<unknown>): Promise<string[]> => {
      const plans: string[] = []
      await store.write(async (tx) => {
        const explain = tx.dialect === 'sqlite' ? 'explain query plan' : 'explain'
        const db: Db = kyselyOn(tx.dialect, async (query: CompiledQuery) => {
          const plan = await tx.db.executeQuery<Record<string, unknown>>({ ...query, sql: `${explain} ${query.sql}` })
          plans.push(plan.rows.map((one) => String(one['detail'] ?? one['QUERY PLAN'])).join('\n'))
          return (await tx.db.executeQuery(query)) as never
        })
        await body({ ...tx, db })
      })
      return plans
    }
    const plans = await plansOf(async (tx) => {
      await anyDue(tx, 'leases', t0)
      const held = await lockDue(tx, 'leases', 'a', 100, lockMs)
      expect(held).toHaveLength(3)
      await extendLocks(tx, 'leases', held, 'a', lockMs)
      await stillHeld(tx, 'leases', held)
      await sql`select min(due_at) as at from leases where due_at is not null`.execute(tx.db)
    })
    expect(plans).toHaveLength(5)
    for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on leases|SCAN leases(?! USING (?:COVERING )?INDEX leases_due)/)
    for (const plan of [plans[0], plans[1], plans[4]]) expect(plan).toContain('leases_due')
    // Negative twin: a question that no index answers does scan, and the check above would see it.
    const [scan] = await plansOf((tx) => tx.db.selectFrom('leases').select('id').where('failure_code', '=', 'x').execute())
    expect(scan).toMatch(/Seq Scan on leases|SCAN leases/)
  })
})
