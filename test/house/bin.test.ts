import { execFile, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from './until.ts'

const bin = join(import.meta.dirname, '..', '..', 'bin')

/** Says who it is; with `hang` it stays. */
const program = `
  const args = process.argv.slice(2)
  console.log(JSON.stringify({ pid: process.pid, entry: process.argv[1], args, flags: process.execArgv, env: process.env.LEASEHOLD_NODE ?? null }))
  if (args[0] === 'exit') process.exitCode = Number(args[1])
  if (args[0] === 'hang') setInterval(() => {}, 1_000)
`

interface Said {
  pid: number
  entry: string
  args: string[]
  flags: string[]
  env: string | null
}
interface Result {
  code: number
  stdout: string
  stderr: string
}

/** A zombie that nobody has waited for yet is dead. */
const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

const memory = '--max-semi-space-size=16'

describe('bin/leasehold', { timeout: 60_000 }, () => {
  let here = ''
  const path = (...parts: string[]): string => join(here, 'package', ...parts)
  const write = (file: string, text: string): void => {
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
  }
  const fakeNode = (version: string): void => {
    write(join(here, 'path', 'node'), `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "$@"; fi\n`)
    chmodSync(join(here, 'path', 'node'), 0o755)
  }
  const checkout = (): void => {
    write(path('src', 'main.ts'), `const typed: string = ''\n${program}`)
    write(path('node_modules', '.package-lock.json'), '{}')
    write(path('node_modules', '.bin', '.keep'), '')
    symlinkSync(process.execPath, path('node_modules', '.bin', 'node'))
  }
  const environment = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
    PATH: `${join(here, 'path')}:/usr/bin:/bin`,
    XDG_CACHE_HOME: join(here, 'cache'),
    ...more,
  })

  const run = (command: string, args: string[], env = environment()): Promise<Result> =>
    new Promise((resolve) => {
      execFile(command, args, { cwd: here, env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
      })
    })
  const said = (result: Result): Said => JSON.parse(result.stdout) as Said

  /** Starts it hanging; answers what it says of itself once it runs. */
  const hang = async (command: string, args: string[]) => {
    const child = spawn(command, [...args, 'hang'], { cwd: here, env: environment(), stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
      child.on('exit', (code, signal) => resolve({ code, signal })),
    )
    const line = await new Promise<string>((resolve) => child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString())))
    return { child, ended, said: JSON.parse(line) as Said }
  }

  beforeEach(() => {
    here = mkdtempSync(join(tmpdir(), 'leasehold-bin-'))
    cpSync(bin, path('bin'), { recursive: true })
    write(path('package.json'), '{ "type": "module" }')
  })
  afterEach(() => rmSync(here, { recursive: true, force: true }))

  it('runs the sources of a checkout on its own Node, with arguments and exit status untouched', async () => {
    checkout()
    fakeNode('v20.0.0')
    const result = await run(path('bin', 'leasehold'), ['exit', '7', 'a b', '', '--help', '*'])
    expect(result.code).toBe(7)
    expect(result.stderr).toBe('')
    expect(said(result)).toMatchObject({ entry: path('src', 'main.ts'), args: ['exit', '7', 'a b', '', '--help', '*'], env: null })
  })

  it('is the very process that was started, so that kill -9 of it hits the coordinator', async () => {
    checkout()
    const { child, ended, said: self } = await hang(path('bin', 'leasehold'), [])
    expect(self.pid).toBe(child.pid)
    child.kill('SIGKILL')
    expect(await ended).toEqual({ code: null, signal: 'SIGKILL' })
    expect(isAlive(self.pid)).toBe(false)
  })

  it('is also that process when it is started as `node bin/leasehold`', async () => {
    checkout()
    const { child, ended, said: self } = await hang(process.execPath, [path('bin', 'leasehold')])
    expect(self.pid).toBe(child.pid)
    child.kill('SIGTERM')
    expect(await ended).toEqual({ code: null, signal: 'SIGTERM' })
  })

  it('passes arguments and exit status through `node bin/leasehold`, and prints nothing of its own', async () => {
    checkout()
    const result = await run(process.execPath, [path('bin', 'leasehold'), 'exit', '3', 'a b'])
    expect(result).toMatchObject({ code: 3, stderr: '' })
    expect(said(result)).toMatchObject({ args: ['exit', '3', 'a b'], env: null })
  })

  it('passes signals and exit status on where Node can only start a child', async () => {
    checkout()
    write(join(here, 'old.cjs'), 'process.execve = undefined')
    const { child, ended, said: self } = await hang(process.execPath, ['--require', join(here, 'old.cjs'), path('bin', 'leasehold')])
    expect(self.pid).not.toBe(child.pid)
    child.kill('SIGTERM')
    expect(await ended).toEqual({ code: null, signal: 'SIGTERM' })
    expect(isAlive(self.pid)).toBe(false)
  })

  it.runIf(existsSync('/usr/bin/setpriv'))('takes that child along when it is killed', async () => {
    checkout()
    write(join(here, 'old.cjs'), 'process.execve = undefined')
    const { child, ended, said: self } = await hang(process.execPath, ['--require', join(here, 'old.cjs'), path('bin', 'leasehold')])
    child.kill('SIGKILL')
    await ended
    await until('the end of the child', () => !isAlive(self.pid))
  })

  it('finds its package through symbolic links, absolute and relative ones', async () => {
    checkout()
    mkdirSync(join(here, 'links'))
    symlinkSync('../package/bin/leasehold', join(here, 'links', 'relative'))
    symlinkSync(join(here, 'links', 'relative'), join(here, 'links', 'leasehold'))
    expect(said(await run(join(here, 'links', 'leasehold'), [])).entry).toBe(path('src', 'main.ts'))
  })

  it('runs what was built in an installed package, on the Node in PATH', async () => {
    write(path('dist', 'main.js'), program)
    fakeNode('v24.1.0')
    expect((await run(path('bin', 'leasehold'), ['list'])).stdout).toBe(
      `${memory} --require ${path('bin', 'cache.cjs')} ${path('dist', 'main.js')} list\n`,
    )
  })

  it.each([
    ['v22.13.0', '--disable-warning=ExperimentalWarning'],
    ['v23.0.0', '--disable-warning=ExperimentalWarning'],
    ['v26.0.0', ''],
  ])('accepts Node %s', async (version, flags) => {
    write(path('dist', 'main.js'), program)
    fakeNode(version)
    expect((await run(path('bin', 'leasehold'), [])).stdout.trim()).toBe(
      `${`${memory} ${flags}`.trim()} --require ${path('bin', 'cache.cjs')} ${path('dist', 'main.js')}`,
    )
  })

  it.each([
    ['v22.13.0', '--experimental-strip-types --disable-warning=ExperimentalWarning'],
    ['v22.18.0', '--disable-warning=ExperimentalWarning'],
    ['v24.0.0', ''],
  ])('runs sources with Node %s of PATH where the checkout has none', async (version, flags) => {
    checkout()
    rmSync(path('node_modules', '.bin', 'node'))
    fakeNode(version)
    expect((await run(path('bin', 'leasehold'), [])).stdout.trim()).toBe(
      `${`${memory} ${flags}`.trim()} --require ${path('bin', 'cache.cjs')} ${path('src', 'main.ts')}`,
    )
  })

  it.each(['v20.0.0', 'v22.12.9', 'v9.9.9', 'nonsense'])('refuses Node %s with one line that says what to do', async (version) => {
    write(path('dist', 'main.js'), program)
    fakeNode(version)
    const { code, stdout, stderr } = await run(path('bin', 'leasehold'), ['list'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^leasehold: needs Node\.js 22\.13 or newer, found .*PATH.*\n$/)
    expect(stderr).toContain(version)
  })

  it('says to install when a checkout has no dependencies yet', async () => {
    write(path('src', 'main.ts'), program)
    fakeNode('v24.0.0')
    const { code, stderr } = await run(path('bin', 'leasehold'), ['list'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^leasehold: dependencies are missing in .*npm start.*npm install.*\n$/)
  })

  it('leaves NODE_OPTIONS to Node', async () => {
    checkout()
    write(join(here, 'mark.cjs'), 'process.argv.push("marked")')
    const env = environment({ NODE_OPTIONS: `--require ${join(here, 'mark.cjs')}` })
    expect(said(await run(path('bin', 'leasehold'), ['a'], env)).args).toEqual(['a', 'marked'])
  })

  it('keeps what Node compiled in a folder of the user, and tells the commands that it starts nothing of it', async () => {
    checkout()
    write(path('src', 'main.ts'), 'const names: string[] = Object.keys(process.env)\nconsole.log(JSON.stringify(names))\n')
    const { stdout } = await run(path('bin', 'leasehold'), [])
    expect(JSON.parse(stdout)).not.toContain('NODE_COMPILE_CACHE')
    const compiled = join(here, 'cache', 'leasehold', 'compiled')
    expect(statSync(compiled).mode & 0o777).toBe(0o700)
    expect(readdirSync(compiled)).toHaveLength(1)
  })

  it('takes no compiled code from a folder that others may write to', async () => {
    checkout()
    const compiled = join(here, 'cache', 'leasehold', 'compiled')
    mkdirSync(compiled, { recursive: true })
    chmodSync(compiled, 0o777)
    expect((await run(path('bin', 'leasehold'), ['a'])).code).toBe(0)
    expect(readdirSync(compiled)).toEqual([])
  })

  it('is sound sh to its end, although sh never gets there', async () => {
    expect(await run('/bin/sh', ['-n', path('bin', 'leasehold')])).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})
