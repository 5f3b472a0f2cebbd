/** Opens the SQLite file named by its first argument, takes the time in a transaction and beside it, prints both and goes. */
import { openStore } from '../../../src/store/open.ts'

const [target, wallOffsetMs] = process.argv.slice(2) as [string, string]
// A wall clock that is wrong from this process's start on.
const right = Date.now.bind(Date)
Date.now = () => right() + Number(wallOffsetMs)
const store = await openStore(target)
const inside = await store.write(async (tx) => tx.now)
const outside = await store.now()
process.stdout.write(`${JSON.stringify({ wall: Date.now(), inside, outside })}\n`)
await store.close()
