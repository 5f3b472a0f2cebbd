import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  bootId,
  findMachineId,
  innermostPid,
  machineId,
  parseStat,
  pidNamespaceInode,
  procIsOwn,
  processAlive,
  processEnvironment,
  processStart,
  processStat,
  uptimeSeconds,
} from '../../src/lib/host.ts'

const line = (name: string, state = 'S', flags = 4194304, threads = 1) =>
  `123 (${name}) ${state} 45 123 77 0 -1 ${flags} 78 0 0 0 0 0 0 0 20 0 ${threads} 0 75242 2654208 389 1\n`

describe('a line of /proc/P/stat', () => {
  it.each(['sh', 'a b', 'a) S 1 2 (b', ')', '((('])('is read past the command name %j', (name) => {
    expect(parseStat(line(name))).toEqual({ pid: 123, state: 'S', parent: 45, session: 77, start: '75242', alive: true })
  })
  it('of a zombie, or of one that the kernel is taking down, is of a dead process', () => {
    expect(parseStat(line('sh', 'Z'))?.alive).toBe(false)
    expect(parseStat(line('sh', 'S', 4194304 + 4))?.alive).toBe(false)
  })
  it('of a leader that ended before its threads is of a living one', () => {
    expect(parseStat(line('sh', 'Z', 4194304, 3))?.alive).toBe(true)
  })
  it.each(['', 'nonsense', '123 (sh', '123 (sh) S 1 2 3'])('that is %j is no process', (text) => {
    expect(parseStat(text)).toBeNull()
  })
})

describe('the machine id', () => {
  it('comes from the first file that holds one, and its absence is an error that says what to do', () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-host-'))
    const [bad, good] = [join(folder, 'bad'), join(folder, 'good')]
    writeFileSync(bad, 'uninitialized\n')
    writeFileSync(good, '0123456789abcdef0123456789abcdef\n')
    expect(machineId([join(folder, 'none'), bad, good])).toBe('0123456789abcdef0123456789abcdef')
    expect(findMachineId([bad])).toBeNull()
    expect(() => machineId([bad])).toThrow(/systemd-machine-id-setup/)
    rmSync(folder, { recursive: true })
  })
})

describe.skipIf(process.platform !== 'linux')('on Linux', () => {
  it('knows this boot, this process and its namespace', () => {
    expect(bootId()).toMatch(/^[0-9a-f-]{36}$/)
    expect(uptimeSeconds()).toBeGreaterThan(0)
    expect(procIsOwn()).toBe(true)
    expect(pidNamespaceInode('self')).toBe(pidNamespaceInode(process.pid))
    expect(processStat(process.pid)).toMatchObject({ pid: process.pid, parent: process.ppid, alive: true })
    expect(innermostPid(process.pid)).toBe(process.pid)
  })
  it('tells a living process, a zombie, and one that is no more', async () => {
    // The shell does not collect its child: it becomes a sleep that has a zombie.
    const parent = spawn('sh', ['-c', 'sh -c "echo \\$\\$; exit 0" & exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
    const [text] = (await once(parent.stdout, 'data')) as [Buffer]
    const child = Number(text.toString())
    const [start, childStart] = [processStart(parent.pid as number) as string, processStart(child) as string]
    while (processStat(child)?.state !== 'Z') await new Promise((resolve) => setTimeout(resolve, 5))
    expect(processAlive(child, childStart)).toBe(false)
    expect(processAlive(parent.pid as number, start)).toBe(true)
    expect(processAlive(parent.pid as number, String(Number(start) + 1))).toBe(false)
    parent.kill('SIGKILL')
    await once(parent, 'exit')
    expect(processStart(parent.pid as number)).toBeNull()
    expect(processEnvironment(parent.pid as number)).toEqual({ kind: 'gone' })
  })
  it('reads the environment that a process was started with', async () => {
    const child = spawn('sleep', ['600'], { env: { PATH: process.env['PATH'], TAG: 'a=b' }, stdio: 'ignore' })
    await once(child, 'spawn')
    const environment = processEnvironment(child.pid as number)
    child.kill('SIGKILL')
    expect(environment.kind === 'read' && environment.values.get('TAG')).toBe('a=b')
  })
})
