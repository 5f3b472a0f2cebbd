/** What only real processes can show, for boxes that are PID namespaces. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pidNamespaceInode, processAlive, processStart, processStat } from '../../../src/lib/host.ts'
import type { ResourceIdentity } from '../../../src/providers/contract.ts'
import { BoxUnreachableError, signalInBox, spawnInBox } from '../../../src/providers/process/enter.ts'
import { context, rearming } from '../../conformance/request.ts'
import { type Boxes, argumentsOf, initAlive, initOf, openBoxes, pids, running, uniqueSleep, until } from './support.ts'

const possible = spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0

describe.skipIf(!possible)('a box that is a PID namespace', () => {
  let boxes: Boxes
  beforeEach(() => {
    boxes = openBoxes({ mode: 'namespace' })
  })
  afterEach(() => boxes.dispose())
  const remove = (resource: ResourceIdentity, graceSeconds = 5) =>
    boxes.provider.remove(resource, { mode: 'namespace', graceSeconds }, context())
  const read = (resource: ResourceIdentity) => boxes.provider.read(resource, {}, context())

  it('takes back what left its session, its parent and its environment', async () => {
    const { resource } = await boxes.make()
    const [one, two, three] = [uniqueSleep(), uniqueSleep(), uniqueSleep()]
    const nested = pidNamespaceInode('self') && process.getuid?.() === 0 ? `unshare --pid --fork sleep ${three} &` : `sleep ${three} &`
    const ran = await boxes.output(resource, ['sh', '-c', `setsid sleep ${one} & env -i setsid sleep ${two} & ${nested} echo hi; exit 7`])
    expect(ran).toMatchObject({ code: 7, text: 'hi\n' })
    await until('all three run', () => running('sleep', one).length + running('sleep', two).length + running('sleep', three).length === 3)
    expect(await read(resource)).toMatchObject({ kind: 'present', contradictions: [], found: { existence: 'exists' } })
    // The first process of a nested namespace is deaf to TERM.
    expect((await remove(resource, 1)).kind).toBe('gone')
    expect([...running('sleep', one), ...running('sleep', two), ...running('sleep', three)]).toEqual([])
    expect(boxes.folders()).toEqual([])
  })

  it('leaves a process outside alone that carries a copied ref, and reports it', async () => {
    const { request, resource } = await boxes.make()
    const seconds = uniqueSleep()
    const outside = boxes.outside(['sleep', seconds], { LEASEHOLD_REF: request.ref, LEASEHOLD_ATTEMPT: request.attemptToken })
    // The twin: the same command with the same tags, and inside.
    boxes.run(resource, ['sleep', seconds])
    await until('both run', () => running('sleep', seconds).length === 2)
    const found = await boxes.provider.find(request.ref, {}, context())
    expect(found).toMatchObject({ kind: 'complete', found: [{ resource }], contradictions: [{ nativeId: `pid:${outside.pid}` }] })
    expect((await remove(resource)).kind).toBe('gone')
    expect(running('sleep', seconds)).toEqual([outside.pid])
    expect(await read(resource)).toMatchObject({ kind: 'absent', contradictions: [{ nativeId: `pid:${outside.pid}` }] })
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({
      found: [],
      contradictions: [{ nativeId: `pid:${outside.pid}` }],
    })
  })

  it('lets a process end by itself within the grace, and does not wait longer than that takes', async () => {
    const { resource } = await boxes.make()
    const script = `trap 'echo bye > "$1"; exit 0' TERM; echo up; while :; do sleep 0.05; done`
    const child = boxes.run(resource, ['sh', '-c', script, 'sh', join(boxes.dataFolder, 'bye')])
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    const start = performance.now()
    expect((await remove(resource, 20)).kind).toBe('gone')
    expect(performance.now() - start).toBeLessThan(5000)
    expect(readFileSync(join(boxes.dataFolder, 'bye'), 'utf8')).toBe('bye\n')
    expect(boxes.folders()).toEqual([])
  })

  it('kills what ignores TERM when the grace is over, and not before', async () => {
    const { resource } = await boxes.make()
    const seconds = uniqueSleep()
    const child = boxes.run(resource, ['sh', '-c', `trap '' TERM HUP INT; echo up; exec sleep ${seconds}`])
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    await until('it runs', () => running('sleep', seconds).length === 1)
    const start = performance.now()
    expect((await remove(resource, 1)).kind).toBe('gone')
    expect(performance.now() - start).toBeGreaterThan(950)
    expect(running('sleep', seconds)).toEqual([])
    expect(await until('its door is closed', () => child.signalCode)).toBe('SIGKILL')
  })

  it('ends at its maximum lifetime with nobody left to end it, and its folder is then taken back', async () => {
    const { resource, folder, request } = await boxes.make({ maximumLifetimeSeconds: 1 })
    const begin = performance.now()
    const [soft, hard] = [uniqueSleep(), uniqueSleep()]
    boxes.run(resource, ['sleep', soft])
    boxes.run(resource, ['sh', '-c', `trap '' TERM; exec sleep ${hard}`])
    await until('both run', () => running('sleep', soft).length + running('sleep', hard).length === 2)
    await until('the clock has ended the box', () => !initAlive(folder))
    expect(performance.now() - begin).toBeGreaterThan(900)
    expect([...running('sleep', soft), ...running('sleep', hard)]).toEqual([])
    expect(await read(resource)).toMatchObject({ kind: 'present', found: { existence: 'going', providerState: 'ended' } })
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({ found: [{ resource, existence: 'going' }] })
    expect((await remove(resource)).kind).toBe('gone')
    expect(boxes.folders()).toEqual([])
  })

  it('lives on when its clock was moved later, and ends when it is moved to now', async () => {
    const { resource, folder } = await boxes.make({ maximumLifetimeSeconds: 1 })
    const twin = await boxes.make({ maximumLifetimeSeconds: 1 })
    await boxes.provider.rearm?.(resource, 600, {}, rearming())
    await until('the twin has ended', () => !initAlive(twin.folder))
    expect(initAlive(folder)).toBe(true)
    // What was asked for by an earlier holder comes too late.
    await boxes.provider.rearm?.(resource, 600, {}, rearming(3))
    await expect(boxes.provider.rearm?.(resource, 0, {}, rearming(2))).rejects.toThrow(/later holder/)
    await boxes.provider.rearm?.(resource, 0, {}, rearming(3))
    await until('it has ended', () => !initAlive(folder))
    await expect(boxes.provider.rearm?.(resource, 600, {}, rearming())).rejects.toThrow(/does not run/)
  })

  it('is not ended by a clock file that was deleted or spoilt', async () => {
    const { resource, folder } = await boxes.make()
    writeFileSync(join(folder, 'deadline'), 'soon\n')
    process.kill(initOf(folder).pid, 'SIGHUP')
    rmSync(join(folder, 'deadline'))
    process.kill(initOf(folder).pid, 'SIGHUP')
    expect(await boxes.output(resource, ['echo', 'hi'])).toMatchObject({ text: 'hi\n' })
    expect(initAlive(folder)).toBe(true)
  })

  it('cannot be ended from inside by killing everything, and goes on counting', async () => {
    const { resource, folder } = await boxes.make({ maximumLifetimeSeconds: 2 })
    await boxes.output(resource, ['sh', '-c', 'kill -KILL 1; kill -TERM 1; kill -KILL -1'])
    expect(await boxes.output(resource, ['echo', 'hi'])).toMatchObject({ text: 'hi\n' })
    await until('its clock has ended it', () => !initAlive(folder))
  })

  it('collects orphans: no zombies pile up', async () => {
    const { resource, folder } = await boxes.make()
    await boxes.output(resource, ['sh', '-c', 'for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.01 &) ; done'])
    const { inode } = initOf(folder)
    await until('only the clock and its sleep are left', () => pids().filter((pid) => pidNamespaceInode(pid) === inode).length === 2)
  })

  it('is taken back when its maker died between folder and start, and can no longer start then', async () => {
    const { request, folder } = await boxes.make()
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    // As after a kill between the two: the folder is whole, and nothing was started from it.
    for (const name of ['claim', 'init']) rmSync(join(folder, name))
    const outcome = await boxes.provider.find(request.ref, {}, context())
    if (outcome.kind !== 'complete') throw new Error(outcome.why)
    const [found] = outcome.found
    expect(found).toMatchObject({
      existence: 'going',
      providerState: 'unstarted',
      fixedAttemptToken: request.attemptToken,
      tags: { ref: request.ref },
    })
    expect((await read(found?.resource as ResourceIdentity)).kind).toBe('present')
    expect((await remove(found?.resource as ResourceIdentity)).kind).toBe('gone')
    expect((await read(found?.resource as ResourceIdentity)).kind).toBe('absent')
    expect(boxes.folders()).toEqual([])
  })

  it('does not start late once its claim was taken; with the claim free it does', async () => {
    const { folder } = await boxes.make()
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    rmSync(join(folder, 'init'))
    const late = () =>
      spawn(
        'unshare',
        ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'sh', join(folder, 'init.sh'), 'namespace'],
        { stdio: 'ignore' },
      )
    // The claim of the first start is still there.
    const refused = late()
    await once(refused, 'exit')
    expect(readdirSync(folder)).not.toContain('init')
    rmSync(join(folder, 'claim'))
    const free = late()
    await until('it reports', () => readdirSync(folder).includes('init'))
    expect(initAlive(folder)).toBe(true)
    process.kill(initOf(folder).pid, 'SIGKILL')
    await once(free, 'exit')
  })

  it('that starts while it is looked for is not mistaken for a copy of a tag', async () => {
    const { request, resource, folder } = await boxes.make()
    const report = readFileSync(join(folder, 'init'))
    rmSync(join(folder, 'init'))
    const looking = boxes.provider.find(request.ref, {}, context())
    setTimeout(() => writeFileSync(join(folder, 'init'), report), 100)
    expect(await looking).toMatchObject({ kind: 'complete', found: [{ resource }], contradictions: [] })
  })

  it('leaves no half-made folder when its maker was killed while it built it', async () => {
    const { request, folder } = await boxes.make()
    const dead = spawnSync('true').pid
    const litter = join(boxes.dataFolder, 'boxes', `.making-${request.ref}-${dead}-1-abcd`)
    execFileSync('cp', ['-r', folder, litter])
    const living = join(boxes.dataFolder, 'boxes', `.making-${request.ref}-${process.pid}-${processStart(process.pid)}-abcd`)
    execFileSync('cp', ['-r', folder, living])
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({ kind: 'complete', found: [{}] })
    expect(boxes.folders().toSorted()).toEqual(
      [`.making-${request.ref}-${process.pid}-${processStart(process.pid)}-abcd`, `${request.ref}-1`].toSorted(),
    )
    rmSync(living, { recursive: true })
  })

  it('goes on with a removal that was cut short while the folder was deleted', async () => {
    const { request, resource, folder } = await boxes.make()
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    const removing = join(boxes.dataFolder, 'boxes', `.removing-${resource.nativeId}`)
    renameSync(folder, removing)
    rmSync(join(removing, 'env'))
    rmSync(join(removing, 'init'))
    expect(await read(resource)).toMatchObject({
      kind: 'present',
      found: { resource: { immutableId: resource.immutableId }, existence: 'going', providerState: 'removing' },
    })
    expect(await boxes.provider.find(request.ref, {}, context())).toMatchObject({ found: [{ existence: 'going' }] })
    expect((await remove(resource)).kind).toBe('gone')
    expect(boxes.folders()).toEqual([])
  })

  it('is ended also when its folder was deleted from under it', async () => {
    const { resource, folder } = await boxes.make()
    const init = initOf(folder)
    rmSync(folder, { recursive: true })
    expect(await read(resource)).toMatchObject({ kind: 'present', found: { existence: 'exists' } })
    expect((await remove(resource)).kind).toBe('gone')
    expect(processAlive(init.pid, init.start)).toBe(false)
  })

  it('is ended by its recorded identity when what runs inside forged the file, and the forged process goes on', async () => {
    const { request, resource, folder } = await boxes.make()
    const init = initOf(folder)
    const victim = boxes.outside(['sleep', uniqueSleep()], { LEASEHOLD_REF: request.ref, LEASEHOLD_ATTEMPT: request.attemptToken })
    await once(victim, 'spawn')
    const start = processStart(victim.pid as number) as string
    writeFileSync(join(folder, 'init'), `${init.boot} ${pidNamespaceInode(victim.pid as number)} ${victim.pid} ${start}\n`)
    const found = await boxes.provider.find(request.ref, {}, context())
    expect(found).toMatchObject({ kind: 'complete', found: [] })
    expect(found.kind === 'complete' && found.contradictions.map((one) => one.nativeId)).toContain(resource.nativeId)
    const forged = { ...resource, immutableId: `${init.boot}:${pidNamespaceInode(victim.pid as number)}:${victim.pid}:${start}` }
    expect((await remove(forged)).kind).toBe('blocked')
    expect((await remove(resource)).kind).toBe('gone')
    expect(processAlive(victim.pid as number, start)).toBe(true)
    expect(processAlive(init.pid, init.start)).toBe(false)
  })

  it('shows its secrets in no argument list and in no file that others can read', async () => {
    const canary = `canary-${uniqueSleep()}-it's "$HOME" \\ \n end`
    const { resource, folder } = await boxes.make({ secretEnvironment: { LEASEHOLD_LEASE_TOKEN: canary } })
    const seen = await boxes.output(resource, ['sh', '-c', 'printf %s "$LEASEHOLD_LEASE_TOKEN"'])
    expect(seen.text).toBe(canary)
    boxes.run(resource, ['sleep', uniqueSleep()])
    const marker = canary.slice(0, 15)
    expect(pids().filter((pid) => argumentsOf(pid).join(' ').includes(marker))).toEqual([])
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const paths = files.map((file) => join(file.parentPath, file.name)).filter((path) => readFileSync(path, 'utf8').includes(marker))
    expect(paths).toEqual([join(folder, 'env')])
    expect(statSync(join(folder, 'env')).mode & 0o077).toBe(0)
    expect(statSync(folder).mode & 0o077).toBe(0)
    expect(JSON.stringify(resource)).not.toContain(marker)
    // Neither the first process nor its supervisor holds it.
    const { pid } = initOf(folder)
    for (const one of [pid, processStat(pid)?.parent as number])
      expect(readFileSync(`/proc/${one}/environ`, 'latin1')).not.toContain(marker)
  })

  it('refuses a secret that no variable can hold, and names it without its value', async () => {
    const { request } = await boxes.make()
    for (const secretEnvironment of [{ 'A B': 'canary' }, { '1A': 'canary' }, { 'A;B': 'canary' }, { A: 'can\0ary' }]) {
      const outcome = await boxes.provider.create({ ...request, attemptNumber: 2, secretEnvironment }, context())
      expect(outcome).toMatchObject({ kind: 'rejected', code: 'environment_invalid' })
      expect(JSON.stringify(outcome)).not.toMatch(/canary/)
    }
  })

  it('refuses the name of another attempt, and leaves that alone', async () => {
    const { request, folder } = await boxes.make()
    const outcome = await boxes.provider.create({ ...request, attemptToken: 'another' }, context())
    expect(outcome).toMatchObject({ kind: 'rejected', code: 'name_taken' })
    expect(initAlive(folder)).toBe(true)
  })

  it('answers a create again after the box has ended without making another', async () => {
    const { request, folder, resource } = await boxes.make()
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    expect(await boxes.provider.create(request, context())).toMatchObject({ kind: 'uncertain', resource })
    expect(boxes.folders()).toHaveLength(1)
  })

  it('passes on status, signal, folder and environment of a command, and only three descriptors', async () => {
    const { resource, folder, request } = await boxes.make({ leaseId: 'lh_0123456789ab' as never })
    expect(await boxes.output(resource, ['sh', '-c', 'exit 42'])).toMatchObject({ code: 42 })
    expect(await boxes.output(resource, ['sh', '-c', 'kill -9 $$'])).toMatchObject({ code: null, signal: 'SIGKILL' })
    expect(await boxes.output(resource, ['no-such-command-here'])).toMatchObject({ code: 127 })
    expect(await boxes.output(resource, [join(folder, 'box.json')])).toMatchObject({ code: 126 })
    expect(
      await boxes.output(resource, ['sh', '-c', 'pwd; echo $MINE $LEASEHOLD_REF $LEASEHOLD_LEASE_ID'], { MINE: 'x', LEASEHOLD_REF: 'y' }),
    ).toMatchObject({
      text: `${join(folder, 'home')}\nx ${request.ref} lh_0123456789ab\n`,
    })
    expect((await boxes.output(resource, ['sh', '-c', 'readlink /proc/self/fd/* || :'])).text).not.toMatch(/pid:\[|user:\[/)
  })

  it('passes a signal on to the command, and not to the door that it came in by', async () => {
    const { resource } = await boxes.make()
    const access = boxes.provider.access(resource, {})
    const child = boxes.run(resource, ['sh', '-c', `trap 'exit 9' INT; echo up; while :; do sleep 0.02; done`])
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    expect(signalInBox(access, child, 'SIGINT')).toBe(true)
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).toBe(9)
    expect(signalInBox(access, child, 'SIGINT')).toBe(false)
  })

  it('carries no tag on the door and the supervisor, so neither looks like a part of the box', async () => {
    const { resource, folder, request } = await boxes.make()
    const child = boxes.run(resource, ['sleep', uniqueSleep()], { LEASEHOLD_REF: request.ref })
    const supervisor = processStat(initOf(folder).pid)?.parent as number
    for (const pid of [child.pid as number, supervisor]) expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toContain(request.ref)
    expect(await read(resource)).toMatchObject({ contradictions: [] })
  })

  it('can no longer be entered once it is gone, nor by the word of another box', async () => {
    const [{ resource }, other] = [await boxes.make(), await boxes.make()]
    const access = boxes.provider.access(resource, {})
    if (access.kind !== 'namespace') throw new Error(access.kind)
    const wrong = { ...access, pid: initOf(other.folder).pid }
    expect(() => spawnInBox(wrong, ['true'])).toThrow(BoxUnreachableError)
    expect(() => spawnInBox({ ...access, machineID: 'another' }, ['true'])).toThrow(/another machine/)
    expect(() => spawnInBox({ ...access, bootID: 'another' }, ['true'])).toThrow(/restarted/)
    expect((await remove(resource)).kind).toBe('gone')
    expect(() => spawnInBox(access, ['true'])).toThrow(BoxUnreachableError)
    expect(await boxes.output(other.resource, ['echo', 'hi'])).toMatchObject({ text: 'hi\n' })
  })

  it('goes on with a removal that was interrupted in its grace', async () => {
    const { resource, folder } = await boxes.make()
    const child = boxes.run(resource, ['sh', '-c', `trap '' TERM; echo up; exec sleep ${uniqueSleep()}`])
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    const cut = await boxes.provider.remove(resource, { graceSeconds: 20 }, { signal: AbortSignal.timeout(200) })
    expect(cut.kind).toBe('retryLater')
    expect(initAlive(folder)).toBe(true)
    expect((await remove(resource, 0)).kind).toBe('gone')
  })

  it('is gone, and proved so, also while the stopped door of a command keeps a dead process uncollected', async () => {
    const { resource } = await boxes.make()
    const seconds = uniqueSleep()
    const child = boxes.run(resource, ['sleep', seconds])
    await until('it runs', () => running('sleep', seconds).length === 1)
    child.kill('SIGSTOP')
    expect((await remove(resource, 1)).kind).toBe('gone')
    expect((await read(resource)).kind).toBe('absent')
    expect((await remove(resource, 1)).kind).toBe('gone')
    expect(running('sleep', seconds)).toEqual([])
    child.kill('SIGCONT')
    await until('the door is closed', () => child.exitCode !== null || child.signalCode !== null)
  })
})
