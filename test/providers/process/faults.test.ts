/** What must never be taken for proof: links, failed reads, other namespaces, records that a box can write. */
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bootId, processAlive, processStart } from '../../../src/lib/host.ts'
import type { ResourceIdentity } from '../../../src/providers/contract.ts'
import { context } from '../../conformance/request.ts'
import { type Boxes, initAlive, initOf, openBoxes, uniqueSleep, until } from './support.ts'

const possible = spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0
const source = (name: string): string => JSON.stringify(join(import.meta.dirname, '../../../src', name))
const edit = (folder: string, changes: Record<string, unknown>): void => {
  const path = join(folder, 'box.json')
  writeFileSync(path, JSON.stringify({ ...(JSON.parse(readFileSync(path, 'utf8')) as object), ...changes }))
}

describe.skipIf(!possible)('a box in the hands of others', () => {
  let boxes: Boxes
  beforeEach(() => {
    boxes = openBoxes({ mode: 'namespace' })
  })
  afterEach(() => boxes.dispose())
  const remove = (resource: ResourceIdentity) => boxes.provider.remove(resource, { mode: 'namespace', graceSeconds: 0 }, context())
  const read = (resource: ResourceIdentity) => boxes.provider.read(resource, {}, context())

  it('whose folder was replaced by a link is ended, and what the link names is neither deleted nor moved', async () => {
    const { request, resource, folder } = await boxes.make()
    const init = initOf(folder)
    const [victim, moved] = [join(boxes.dataFolder, 'victim'), join(boxes.dataFolder, 'moved')]
    mkdirSync(victim)
    writeFileSync(join(victim, 'file'), 'precious')
    renameSync(folder, moved)
    symlinkSync(victim, folder)
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({ found: [] })
    expect((await remove(resource)).kind).toBe('unknown')
    expect(processAlive(init.pid, init.start)).toBe(false)
    expect(readdirSync(victim)).toEqual(['file'])
    expect(boxes.folders()).toEqual([resource.nativeId])
    // The twin: with its own folder back in its place, it is deleted.
    unlinkSync(folder)
    renameSync(moved, folder)
    expect((await remove(resource)).kind).toBe('gone')
    expect(boxes.folders()).toEqual([])
  })

  it('that has dug folders deeper than a path can say is taken back whole', async () => {
    const { resource } = await boxes.make()
    const dig = `for (1..30) { mkdir "d" x 200 and chdir "d" x 200 or die } print "deep\\n"`
    expect((await boxes.output(resource, ['perl', '-e', dig])).text).toContain('deep')
    expect((await remove(resource)).kind).toBe('gone')
    expect(boxes.folders()).toEqual([])
  })

  it('is not called gone by a coordinator that has no descriptor left', async () => {
    const { resource, folder } = await boxes.make()
    const script = `
      const { openSync, closeSync } = await import('node:fs')
      const { createProcessProvider } = await import(${source('providers/process/index.ts')})
      const { initState, parseImmutableId } = await import(${source('providers/process/identity.ts')})
      const { pid } = await import('node:process')
      const { processStat, processAlive } = await import(${source('lib/host.ts')})
      const resource = ${JSON.stringify(resource)}
      const provider = createProcessProvider({ dataFolder: ${JSON.stringify(boxes.dataFolder)} })
      const attempt = (call) => { try { return String(call()) } catch (error) { return error.code } }
      const state = () => initState(parseImmutableId(resource.immutableId).init, { ref: resource.nativeId.split('-')[0], token: null })
      const before = attempt(state), held = []
      try { for (;;) held.push(openSync('/dev/null', 'r')) } catch {}
      const facts = [before, attempt(state), attempt(() => processStat(pid)), attempt(() => processAlive(pid, 'x'))]
      const signal = AbortSignal.timeout(5000)
      const kinds = [await provider.read(resource, {}, { signal }), await provider.remove(resource, {}, { signal }), await provider.find(resource.nativeId.split('-')[0], {}, { signal })].map((one) => one.kind)
      for (const one of held) closeSync(one)
      console.log(JSON.stringify([...facts, ...kinds]))`
    const args = ['--nofile=80:80', process.execPath, '--input-type=module', '-e', script]
    const { stdout } = await promisify(execFile)('prlimit', args, { timeout: 20_000 })
    expect(JSON.parse(stdout)).toEqual(['alive', 'EMFILE', 'EMFILE', 'true', 'unknown', 'unknown', 'incomplete'])
    expect(initAlive(folder)).toBe(true)
  })

  it('is not judged by a coordinator in another PID namespace than its maker, unless the boot is another', async () => {
    const { request, resource, folder } = await boxes.make()
    const { observer, ...others } = resource.facts
    expect(observer).toMatch(/^\d+$/)
    const elsewhere = { ...resource, facts: { ...others, observer: '1' } }
    expect(await read(elsewhere)).toMatchObject({ kind: 'unknown', error: expect.stringContaining('other processes') as string })
    expect((await remove(elsewhere)).kind).toBe('unknown')
    expect(initAlive(folder)).toBe(true)
    edit(folder, { observer: '1' })
    expect((await boxes.provider.find(request.ref, {}, context())).kind).toBe('incomplete')
    const rebooted = { ...elsewhere, immutableId: resource.immutableId.replace(/^[^:]+/, '00000000-0000-4000-8000-000000000000') }
    expect((await read(rebooted)).kind).not.toBe('unknown')
    expect((await remove(resource)).kind).toBe('gone')
  })

  it('is taken back by its recorded identity, alive or dead, when its box.json was edited', async () => {
    for (const dead of [false, true]) {
      const { resource, folder } = await boxes.make()
      const init = initOf(folder)
      edit(folder, { attemptToken: 'forged' })
      if (dead) process.kill(init.pid, 'SIGKILL')
      if (dead) await until('it is dead', () => !initAlive(folder))
      // The negative twin: an identity that was recorded with another token.
      const other = { ...resource, facts: { ...resource.facts, attemptToken: 'other' } }
      if (!dead) expect((await remove(other)).kind).toBe('blocked')
      expect((await remove(resource)).kind).toBe('gone')
      expect(processAlive(init.pid, init.start)).toBe(false)
    }
    expect(boxes.folders()).toEqual([])
  })

  it('ends when it can not report, and is then removable', async () => {
    const { request, resource, folder } = await boxes.make()
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    for (const name of ['claim', 'init']) unlinkSync(join(folder, name))
    // A full device in the place of the report.
    symlinkSync('/dev/full', join(folder, 'init.new'))
    const ran = spawnSync('sh', [join(folder, 'init.sh'), 'session'], { timeout: 5000 })
    expect(ran.status).toBe(1)
    unlinkSync(join(folder, 'init.new'))
    writeFileSync(join(folder, 'init'), '')
    const found = await boxes.provider.find(request.ref, {}, context())
    expect(found).toMatchObject({ kind: 'complete', found: [{ providerState: 'unstarted' }] })
    expect((await remove({ ...resource, immutableId: `unstarted:${request.attemptToken}` })).kind).toBe('gone')
    expect(boxes.folders()).toEqual([])
  })
})

describe.skipIf(process.platform !== 'linux')('a session box with forged records', () => {
  it('signals no living process that a record names and that does not carry its tags', async () => {
    const boxes = openBoxes({ mode: 'session' })
    try {
      const { resource, folder } = await boxes.make()
      const stranger = boxes.outside(['setsid', 'sleep', uniqueSleep()])
      await once(stranger, 'spawn')
      const pid = stranger.pid as number
      const start = processStart(pid) as string
      writeFileSync(join(folder, 'sessions', String(pid)), `${pid} ${start} ${bootId()}\n`)
      expect((await boxes.provider.remove(resource, { mode: 'session', graceSeconds: 0 }, context())).kind).toBe('gone')
      expect(processAlive(pid, start)).toBe(true)
    } finally {
      await boxes.dispose()
    }
  })
})
