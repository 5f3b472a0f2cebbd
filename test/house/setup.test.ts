import { spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from './until.ts'

const scripts = join(import.meta.dirname, '..', '..', 'scripts')

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stderr: string
}

/** What npm does, as far as the set-up sees it: says that it ran, waits for `go`, installs, and writes its own lockfile last. */
const npm = `#!/bin/sh
echo "$*" >> "$HERE/runs"
echo $$ > "$HERE/npm.pid"
rm -rf node_modules
mkdir -p node_modules/a
while [ ! -e "$HERE/go" ]; do sleep 0.02; done
[ -e "$HERE/fail" ] && exit 9
echo '{}' > node_modules/a/package.json
cp package-lock.json node_modules/.package-lock.json
`

describe('the set-up before npm start and npm test', () => {
  let here = ''
  let root = ''
  const path = (...parts: string[]): string => join(root, ...parts)
  const runs = (): number => (existsSync(join(here, 'runs')) ? readFileSync(join(here, 'runs'), 'utf8').trim().split('\n').length : 0)
  const go = (): void => writeFileSync(join(here, 'go'), '')
  const lockfile = (version: string): void =>
    writeFileSync(path('package-lock.json'), JSON.stringify({ packages: { '': {}, 'node_modules/a': { version } } }))

  const start = (): { pid: number; ended: Promise<Ended> } => {
    const env = { ...process.env, HERE: here, PATH: `${join(here, 'bin')}:/usr/bin:/bin` }
    delete (env as Record<string, string | undefined>).npm_execpath
    const child = spawn(process.execPath, [path('scripts', 'setup.cjs')], { cwd: here, env, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const ended = new Promise<Ended>((resolve) => child.on('exit', (code, signal) => resolve({ code, signal, stderr })))
    return { pid: child.pid as number, ended }
  }

  beforeEach(() => {
    here = mkdtempSync(join(tmpdir(), 'leasehold-setup-'))
    root = join(here, 'checkout')
    mkdirSync(join(here, 'bin'))
    writeFileSync(join(here, 'bin', 'npm'), npm)
    chmodSync(join(here, 'bin', 'npm'), 0o755)
    cpSync(scripts, path('scripts'), { recursive: true })
    lockfile('1.0.0')
  })
  afterEach(() => {
    go()
    rmSync(here, { recursive: true, force: true })
  })

  it('installs where node_modules is missing, and does nothing the second time', async () => {
    go()
    expect((await start().ended).code).toBe(0)
    expect(runs()).toBe(1)
    const second = await start().ended
    expect(second).toEqual({ code: 0, signal: null, stderr: '' })
    expect(runs()).toBe(1)
  })

  it('installs again when the lockfile names another version', async () => {
    go()
    await start().ended
    lockfile('2.0.0')
    expect((await start().ended).code).toBe(0)
    expect(runs()).toBe(2)
  })

  it.each([
    ['npm never came to its end', 'node_modules/.package-lock.json'],
    ['a package was lost', 'node_modules/a/package.json'],
  ])('installs again when %s', async (_why, lost) => {
    go()
    await start().ended
    rmSync(path(lost))
    expect((await start().ended).code).toBe(0)
    expect(runs()).toBe(2)
    expect(existsSync(path(lost))).toBe(true)
  })

  it('lets one of two install while the other waits', async () => {
    const first = start()
    await until('npm runs', () => runs() === 1)
    const second = start()
    const lock = path('.tmp', 'setup.lock')
    expect(existsSync(lock)).toBe(true)
    go()
    expect([(await first.ended).code, (await second.ended).code]).toEqual([0, 0])
    expect(runs()).toBe(1)
    expect(existsSync(lock)).toBe(false)
  })

  it('installs anew after it was killed, once the npm that it left behind has ended', async () => {
    const first = start()
    await until('npm runs', () => runs() === 1)
    process.kill(first.pid, 'SIGKILL')
    expect((await first.ended).signal).toBe('SIGKILL')
    const second = start()
    const pid = Number(await until('the pid of npm', () => readFileSync(join(here, 'npm.pid'), 'utf8').trim()))
    process.kill(pid, 'SIGKILL')
    await until('a second npm', () => runs() === 2)
    go()
    const { code, stderr } = await second.ended
    expect(code).toBe(0)
    expect(stderr).toContain('interrupted')
  })

  it('clears a lock whose holder died, also when its pid belongs to another process by now', async () => {
    go()
    await start().ended
    mkdirSync(path('.tmp', 'setup.lock'))
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    writeFileSync(path('.tmp', 'setup.lock', 'holders.json'), JSON.stringify([{ pid: process.pid, start: '1', boot }]))
    expect((await start().ended).code).toBe(0)
    expect(existsSync(path('.tmp', 'setup.lock'))).toBe(false)
  })

  it('fails with one sentence when npm fails, and tries again the next time', async () => {
    go()
    writeFileSync(join(here, 'fail'), '')
    const failed = await start().ended
    expect(failed.code).toBe(1)
    expect(failed.stderr).toContain('npm ci')
    expect(failed.stderr).toContain('status 9')
    rmSync(join(here, 'fail'))
    expect((await start().ended).code).toBe(0)
    expect(runs()).toBe(2)
  })
})
