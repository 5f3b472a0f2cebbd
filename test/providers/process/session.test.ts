/** Boxes of machines where no namespace can be made: sessions, with what that can and can't hold. */
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { processAlive, processStart, processStat } from '../../../src/lib/host.ts'
import type { ResourceIdentity } from '../../../src/providers/contract.ts'
import { signalInBox, spawnInBox } from '../../../src/providers/process/enter.ts'
import { context } from '../../conformance/request.ts'
import { type Boxes, initAlive, initOf, openBoxes, running, uniqueSleep, until } from './support.ts'

describe.skipIf(process.platform !== 'linux')('a box that is a session', () => {
  let boxes: Boxes
  beforeEach(() => {
    boxes = openBoxes({ mode: 'session' })
  })
  afterEach(() => boxes.dispose())
  const remove = (resource: ResourceIdentity, graceSeconds = 5) =>
    boxes.provider.remove(resource, { mode: 'session', graceSeconds }, context())

  it('ends what stayed in its sessions, also when the leader is gone', async () => {
    const { resource } = await boxes.make()
    expect(boxes.provider.access(resource, {}).kind).toBe('session')
    const seconds = uniqueSleep()
    expect(await boxes.output(resource, ['sh', '-c', `sleep ${seconds} & echo hi; exit 7`])).toMatchObject({ code: 7, text: 'hi\n' })
    boxes.run(resource, ['sh', '-c', `trap '' TERM; sleep ${seconds}; true`])
    await until('both run', () => running('sleep', seconds).length === 2)
    expect(await boxes.provider.read(resource, {}, context())).toMatchObject({
      kind: 'present',
      contradictions: [],
      found: { existence: 'exists' },
    })
    expect((await remove(resource, 1)).kind).toBe('gone')
    expect(running('sleep', seconds)).toEqual([])
    expect(boxes.folders()).toEqual([])
  })

  it('reports what has left its sessions, and does not touch it', async () => {
    const { request, resource } = await boxes.make()
    const seconds = uniqueSleep()
    await boxes.output(resource, ['sh', '-c', `setsid sleep ${seconds} & true`])
    const [left] = await until('it runs', () => (running('sleep', seconds).length === 1 ? running('sleep', seconds) : null))
    expect((await remove(resource)).kind).toBe('gone')
    expect(running('sleep', seconds)).toEqual([left])
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({
      kind: 'complete',
      found: [],
      contradictions: [{ nativeId: `pid:${left}` }],
    })
    process.kill(left as number, 'SIGKILL')
    await until('it is dead', () => running('sleep', seconds).length === 0)
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({ contradictions: [] })
  })

  it('reports who runs in a session of it without its tags, and does not touch it', async () => {
    const { request, resource } = await boxes.make()
    const seconds = uniqueSleep()
    const started = spawnInBox(boxes.provider.access(resource, {}), ['env', '-i', 'sleep', seconds], { stdio: 'ignore' })
    await once(started, 'spawn')
    const [bare] = await until('it runs', () => (running('sleep', seconds).length === 1 ? running('sleep', seconds) : null))
    const found = await boxes.provider.find(request.ref, {}, context())
    expect(found).toMatchObject({ kind: 'complete', contradictions: [{ nativeId: `pid:${bare}` }] })
    expect((await remove(resource)).kind).toBe('gone')
    expect(running('sleep', seconds)).toEqual([bare])
    process.kill(bare as number, 'SIGKILL')
  })

  it('does not touch a session whose number was used again', async () => {
    const { resource, folder } = await boxes.make()
    const stranger = boxes.outside(['setsid', '--wait', 'sleep', uniqueSleep()])
    await once(stranger, 'spawn')
    const pid = await until('it leads a session', () => {
      const stat = processStat(stranger.pid as number)
      return stat?.session === stranger.pid ? stranger.pid : running('sleep', stranger.spawnargs.at(-1) as string)[0]
    })
    const start = processStart(pid) as string
    mkdirSync(join(folder, 'sessions'), { recursive: true })
    writeFileSync(join(folder, 'sessions', String(processStat(pid)?.session)), `${processStat(pid)?.session} ${Number(start) - 1}\n`)
    expect((await remove(resource, 0)).kind).toBe('gone')
    expect(processAlive(pid, start)).toBe(true)
    process.kill(pid, 'SIGKILL')
  })

  it('lets nothing in once it is closing', async () => {
    const { resource, folder } = await boxes.make()
    const access = boxes.provider.access(resource, {})
    writeFileSync(join(folder, 'closing'), '')
    const child = spawnInBox(access, ['echo', 'hi'], { stdio: ['ignore', 'ignore', 'pipe'] })
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).toBe(125)
  })

  it('ends at its maximum lifetime with nobody left to end it', async () => {
    const { resource, folder } = await boxes.make({ maximumLifetimeSeconds: 1 })
    const [soft, hard] = [uniqueSleep(), uniqueSleep()]
    boxes.run(resource, ['sleep', soft])
    boxes.run(resource, ['sh', '-c', `trap '' TERM; exec sleep ${hard}`])
    const stranger = boxes.outside(['sleep', hard])
    await until('all run', () => running('sleep', soft).length + running('sleep', hard).length === 3)
    await until('the clock has ended', () => !initAlive(folder))
    expect([...running('sleep', soft), ...running('sleep', hard)]).toEqual([stranger.pid])
    expect((await remove(resource)).kind).toBe('gone')
  })

  it('is still taken back when its clock was killed from inside', async () => {
    const { resource, folder } = await boxes.make()
    const seconds = uniqueSleep()
    boxes.run(resource, ['sleep', seconds])
    await until('it runs', () => running('sleep', seconds).length === 1)
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('the clock is dead', () => !initAlive(folder))
    expect(await boxes.provider.read(resource, {}, context())).toMatchObject({
      kind: 'present',
      found: { existence: 'exists', providerState: 'ending' },
    })
    expect((await remove(resource)).kind).toBe('gone')
    expect(running('sleep', seconds)).toEqual([])
    expect(readdirSync(join(boxes.dataFolder, 'boxes'))).toEqual([])
  })

  it('passes signals on', async () => {
    const { resource } = await boxes.make()
    const child = boxes.run(resource, ['sh', '-c', `trap 'exit 9' INT; echo up; while :; do sleep 0.02; done`])
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    expect(signalInBox(boxes.provider.access(resource, {}), child, 'SIGINT')).toBe(true)
    expect((await once(child, 'exit'))[0]).toBe(9)
  })
})
