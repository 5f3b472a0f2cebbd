/** Writes to the database named by its first argument, and prints each id once `write` has answered. It is killed from outside. */
import { writeSync } from 'node:fs'
import { openStore } from '../../../src/store/open.ts'

const [target, round] = process.argv.slice(2) as [string, string]
const store = await openStore(target)
writeSync(1, 'ready\n')

const keepWriting = async (lane: number): Promise<never> => {
  for (let i = 0; ; i++) {
    const name = `${round}-${lane}-${i}`
    await store.write(async (tx) => {
      await tx.db.insertInto('projects').values({ name, created_at: tx.now, deleted_at: null }).execute()
    })
    writeSync(1, `${name}\n`)
  }
}
await Promise.all(Array.from({ length: 8 }, (_, lane) => keepWriting(lane)))
