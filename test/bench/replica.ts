/** One replica of the bench of two: says when it is ready, drains when it is told, and ends when its parent ends it. */
import { once } from 'node:events'
import { openCrowd, slowProvider, standUp } from './crowd.ts'

const [target, latencyMs] = process.argv.slice(2) as [string, string]
const crowd = await openCrowd(target, slowProvider(Number(latencyMs)))
await standUp(crowd)
process.stdout.write('ready\n')
await once(process.stdin, 'data')
await crowd.engine.start()
