import { randomInt } from 'node:crypto'
import pg from 'pg'
import { expect, inject, it } from 'vitest'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { appendEvents, newestEvent, readEvents, type NewEvent } from '../../src/store/events.ts'
import { uuidv7Hex } from '../../src/lib/ids.ts'
import type { Store } from '../../src/store/store.ts'
import { eachStore, postgresDatabase } from '../support/stores.ts'
import { serviceOr } from '../support/services/skip.ts'
import { gate } from '../support/scripted-provider.ts'

let serial = 0
const anEvent = (over: Partial<NewEvent> = {}): NewEvent => ({
  id: `ev_${uuidv7Hex(1_780_000_000_000)}`,
  code: 'lease.active',
  level: 'info',
  project: 'default',
  actor: 'system',
  message: `message ${serial++}`,
  payload: { n: serial },
  targets: [{ type: 'lease', id: 'lh_000000000001', name: 'web' }],
  ...over,
})
const add = (store: Store, ...events: NewEvent[]): Promise<void> => store.write((tx) => appendEvents(tx, events))
const everything = { project: null, after: 0, limit: 100_000, target: null }
const seqs = async (store: Store, over: Partial<typeof everything> = {}): Promise<number[]> =>
  (await readEvents(store, { ...everything, ...over })).map(({ event }) => Number(event.seq))

eachStore('the feed', (open, database) => {
  it('is numbered 1, 2, 3, … in the order in which things happened, with what each is about', async () => {
    const store = await open()
    await add(store, anEvent({ message: 'first' }), anEvent({ message: 'second' }))
    await add(store, anEvent({ message: 'third', targets: [] }))
    const read = await readEvents(store, everything)
    expect(read.map(({ event }) => [event.seq, event.message])).toEqual([
      [1, 'first'],
      [2, 'second'],
      [3, 'third'],
    ])
    expect(read[0]?.targets).toMatchObject([{ type: 'lease', id: 'lh_000000000001', name: 'web' }])
    expect(read[2]?.targets).toEqual([])
  })

  it('goes on from a number: each event is got exactly once, in pages of any size', async () => {
    const store = await open()
    await add(store, ...Array.from({ length: 1203 }, () => anEvent()))
    const got: number[] = []
    for (;;) {
      const page = await seqs(store, { after: got.at(-1) ?? 0, limit: 1 + randomInt(400) })
      if (page.length === 0) break
      got.push(...page)
    }
    expect(got).toEqual(Array.from({ length: 1203 }, (_, i) => i + 1))
    expect(await newestEvent(store)).toBe(1203)
    expect(await seqs(store, { after: 1203 })).toEqual([])
    expect(await seqs(store, { after: 5000 })).toEqual([])
  })

  it('an event of a transaction that failed is not in it, and leaves no gap', async () => {
    const store = await open()
    await add(store, anEvent())
    const failed = store.write(async (tx) => {
      await appendEvents(tx, [anEvent(), anEvent()])
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    await add(store, anEvent())
    expect(await seqs(store)).toEqual([1, 2])
  })

  it('is found by id or name of a target, also when its owner no longer exists, and by project', async () => {
    const store = await open()
    await add(
      store,
      anEvent({ message: 'a', targets: [{ type: 'instance', id: 'in_9', name: 'otter' }] }),
      anEvent({ message: 'b', project: 'other' }),
      anEvent({ message: 'c', project: null, targets: [{ type: 'lease', id: 'lh_2', name: 'otter' }] }),
    )
    const messages = async (over: Partial<{ project: string | null; target: string | null }>): Promise<string[]> =>
      (await readEvents(store, { ...everything, ...over })).map(({ event }) => event.message)
    expect(await messages({ target: 'in_9' })).toEqual(['a'])
    expect(await messages({ target: 'otter' })).toEqual(['a', 'c'])
    expect(await messages({ target: 'nothing' })).toEqual([])
    expect(await messages({ project: 'other' })).toEqual(['b'])
    expect(await messages({ project: 'default', target: 'otter' })).toEqual(['a'])
  })

  it('a follower misses nothing and sees nothing twice while eight writers write and others publish', { timeout: 60_000 }, async () => {
    const db = await database()
    const store = await db.open()
    const other = await db.open()
    const perWriter = 40
    let writing = true
    const writers = Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let i = 0; i < perWriter; i++)
          await (lane % 2 ? store : other).write(async (tx) => {
            await appendEvents(tx, [anEvent({ message: `${lane}/${i}` })])
            // Where transactions run side by side, some are held open a little: what they wrote comes late.
            if (tx.dialect === 'postgresql' && i % 5 === lane % 5) await new Promise((resolve) => setTimeout(resolve, 5))
          })
      }),
    ).finally(() => {
      writing = false
    })
    const got: { seq: number; message: string }[] = []
    const follow = async (): Promise<void> => {
      for (;;) {
        const last = !writing
        const page = await readEvents(other, { ...everything, after: got.at(-1)?.seq ?? 0, limit: 50 })
        got.push(...page.map(({ event }) => ({ seq: Number(event.seq), message: event.message })))
        if (last && page.length === 0) return
        await newestEvent(store)
        // Reads on SQLite never leave the turn; the writers need theirs.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await Promise.all([writers, follow()])
    expect(got.map((one) => one.seq)).toEqual(Array.from({ length: 8 * perWriter }, (_, i) => i + 1))
    expect(new Set(got.map((one) => one.message)).size).toBe(8 * perWriter)
    // And those of one writer are in the order in which it wrote them.
    for (let lane = 0; lane < 8; lane++) {
      const own = got.filter((one) => one.message.startsWith(`${lane}/`)).map((one) => Number(one.message.split('/')[1]))
      expect(own).toEqual(Array.from({ length: perWriter }, (_, i) => i))
    }
  })
})

const { url } = inject('postgres')
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)('the feed on PostgreSQL', () => {
  it('an event that was written before others and committed after them comes after them: a follower who has read on gets it', async () => {
    const database = await postgresDatabase(url as string)
    const store = await openPostgresStore(database.target)
    try {
      const hold = gate()
      const written = gate()
      const late = store.write(async (tx) => {
        await appendEvents(tx, [anEvent({ message: 'written first' })])
        written.open()
        await hold.promise
      })
      await written.promise
      await add(store, anEvent({ message: 'committed first' }))
      const before = await readEvents(store, everything)
      expect(before.map(({ event }) => [event.seq, event.message])).toEqual([[1, 'committed first']])
      hold.open()
      await late
      const after = await readEvents(store, { ...everything, after: 1 })
      expect(after.map(({ event }) => [event.seq, event.message])).toEqual([[2, 'written first']])
    } finally {
      await store.close()
      await database.drop()
    }
  })

  it('two transactions that wait for each other both end well: the one that the database stopped runs anew', async () => {
    const database = await postgresDatabase(url as string)
    const store = await openPostgresStore(database.target)
    const admin = new pg.Client({ connectionString: database.target })
    await admin.connect()
    try {
      await admin.query("insert into projects (name, created_at) values ('a', 0), ('b', 0)")
      await admin.query(`alter database ${new URL(database.target).pathname.slice(1)} set deadlock_timeout = '50ms'`)
      const runs = { first: 0, second: 0 }
      const both = [gate(), gate()] as const
      const touch = (who: keyof typeof runs, one: string, two: string, mine: 0 | 1): Promise<void> =>
        store.write(async (tx) => {
          runs[who]++
          const add = (name: string) =>
            tx.db
              .updateTable('projects')
              .set((eb) => ({ created_at: eb('created_at', '+', 1) }))
              .where('name', '=', name)
              .execute()
          await add(one)
          both[mine].open()
          await both[mine === 0 ? 1 : 0].promise
          await add(two)
        })
      await Promise.all([touch('first', 'a', 'b', 0), touch('second', 'b', 'a', 1)])
      // Each row was counted up by both, exactly once: a run that was stopped left nothing behind.
      expect((await admin.query('select created_at::int as n from projects order by name')).rows).toEqual([{ n: 2 }, { n: 2 }])
      expect(runs.first + runs.second).toBeGreaterThan(2)
    } finally {
      await admin.end()
      await store.close()
      await database.drop()
    }
  })

  it('a body that deadlocks for ever is given up, and its error says why', async () => {
    const database = await postgresDatabase(url as string)
    const store = await openPostgresStore(database.target)
    try {
      let runs = 0
      const failing = store.write(async () => {
        runs++
        throw Object.assign(new Error('deadlock detected'), { code: '40P01' })
      })
      await expect(failing).rejects.toThrow('deadlock detected')
      expect(runs).toBe(4)
      // Negative twin: any other failure is the body's own, and is not tried again.
      const other = store.write(async () => {
        runs++
        throw Object.assign(new Error('no'), { code: '22P02' })
      })
      await expect(other).rejects.toThrow('no')
      expect(runs).toBe(5)
    } finally {
      await store.close()
      await database.drop()
    }
  })
})
