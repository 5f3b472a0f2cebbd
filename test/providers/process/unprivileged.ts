/** Run as an ordinary user by `unprivileged.test.ts`: one box from create to gone. Prints what it saw as JSON. */
import { once } from 'node:events'
import { context, createRequest, rearming } from '../../conformance/request.ts'
import { spawnInBox } from '../../../src/providers/process/enter.ts'
import { createProcessProvider } from '../../../src/providers/process/index.ts'

const [dataFolder, seconds] = process.argv.slice(2) as [string, string]
const provider = createProcessProvider({ dataFolder })
const request = createRequest(provider, { mode: 'namespace' })
const outcome = await provider.create(request, context())
if (outcome.kind !== 'created') throw new Error(JSON.stringify(outcome))
const { resource } = outcome
const child = spawnInBox(
  provider.access(resource, {}),
  ['sh', '-c', `setsid sleep ${seconds} & env -i setsid sleep ${seconds} & id -u; exit 7`],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
  },
)
let text = ''
child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
const [code] = (await once(child, 'exit')) as [number]
const found = await provider.find(request.ref, {}, context())
const before = await provider.read(resource, {}, context())
await provider.rearm?.(resource, 60, {}, rearming())
const removed = await provider.remove(resource, {}, context())
const after = await provider.read(resource, {}, context())
const doctor = (await provider.doctor({}, context())).map((check) => check.level)
process.stdout.write(
  JSON.stringify({
    uid: process.getuid?.(),
    code,
    text,
    userNamespace: resource.facts['userNamespace'],
    found,
    before: before.kind,
    removed: removed.kind,
    after: after.kind,
    doctor,
  }),
)
// The sleeps hold the pipe open until they are dead, and they are.
