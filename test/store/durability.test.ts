import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { program } from './processes/run.ts'

const rounds = { sqlite: 20, postgresql: 10 }
const names = async (store: Store): Promise<Set<string>> =>
  new Set((await store.read(({ db }) => db.selectFrom('projects').select('name').execute())).map((row) => row.name))

eachStore('what write has answered', (_open, database) => {
  it('is there after a kill -9 at any moment', { timeout: 60_000 }, async () => {
    const db = await database()
    const store = await db.open()
    const answered: string[] = []
    let killedInWork = 0
    const oneRound = async (round: number): Promise<void> => {
      const writer = program('writer', db.target, String(round))
      try {
        const dead = (): boolean => writer.child.exitCode !== null
        await until(() => writer.lines().length > 1 + randomInt(40) || dead(), 'the writer has written something', 30_000)
        // Any moment of a commit, not only right after an answer.
        await sleep(randomInt(8))
      } finally {
        writer.child.kill('SIGKILL')
      }
      expect(await writer.ended, writer.complaints()).toBeNull()
      const here = writer.lines().slice(1)
      if (here.length > 0) killedInWork++
      answered.push(...here)
      const stored = await names(store)
      expect(here.filter((name) => !stored.has(name))).toEqual([])
    }
    // Several at once, so that one is killed while others wait for it or write.
    const lanes = 2
    const all = Array.from({ length: rounds[store.dialect] }, (_, round) => round)
    while (all.length > 0) await Promise.all(all.splice(0, lanes).map(oneRound))
    // Nothing of an earlier round went lost by a later kill, and the rounds did what they should.
    const stored = await names(store)
    expect(answered.filter((name) => !stored.has(name))).toEqual([])
    expect(killedInWork).toBe(rounds[store.dialect])
    expect(new Set(answered).size).toBe(answered.length)
  })

  it('is there for another process at once, and what was not committed is not', async () => {
    const db = await database()
    const one = await db.open()
    const two = await db.open()
    const during = await one.write(async (tx) => {
      await tx.db.insertInto('projects').values({ name: 'late', created_at: tx.now, deleted_at: null }).execute()
      return names(two)
    })
    expect(during.has('late')).toBe(false)
    expect((await names(two)).has('late')).toBe(true)
  })

  it('is not there when the body failed', async () => {
    const db = await database()
    const store = await db.open()
    const failing = store.write(async (tx) => {
      await tx.db.insertInto('projects').values({ name: 'never', created_at: tx.now, deleted_at: null }).execute()
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect((await names(store)).has('never')).toBe(false)
  })
})
