/** Opens the SQLite file named by its first argument, takes the time in a transaction, beside it and a little later, prints all and goes. */
import { openStore } from '../../../src/store/open.ts'

const [target, wallOffsetMs] = process.argv.slice(2) as [string, string]
// A wall clock that is wrong from this process's start on.
const right = Date.now.bind(Date)
Date.now = () => right() + Number(wallOffsetMs)
const store = await openStore(target)
const inside = await store.write(async (tx) => tx.now)
const outside = await store.now()
// 30 ms of this process's own time, and what the store makes of them.
const start = performance.now()
while (performance.now() - start < 30);
const later = await store.write(async (tx) => tx.now)
process.stdout.write(`${JSON.stringify({ wall: Date.now(), inside, outside, later })}\n`)
await store.close()
