/** Makes boxes until it is killed, by `crash.test.ts`. Writes each ref before it asks for a box of it. */
import { writeSync } from 'node:fs'
import { createProcessProvider } from '../../../src/providers/process/index.ts'
import { context, createRequest } from '../../conformance/request.ts'

const [dataFolder, mode] = process.argv.slice(2) as [string, string]
const provider = createProcessProvider({ dataFolder })
const worker = async (): Promise<never> => {
  for (;;) {
    const request = createRequest(provider, { mode })
    writeSync(1, `${request.ref}\n`)
    const outcome = await provider.create(request, context())
    if (outcome.kind === 'created') await provider.remove(outcome.resource, { mode, graceSeconds: 0 }, context())
  }
}
await Promise.all([worker(), worker(), worker()])
