/** A folder of boxes of its own, helpers to look at processes without the provider, and a broom. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processAlive, processStat } from '../../../src/lib/host.ts'
import type { CreateRequest, Provider, ResourceIdentity } from '../../../src/providers/contract.ts'
import { spawnInBox } from '../../../src/providers/process/enter.ts'
import { createProcessProvider } from '../../../src/providers/process/index.ts'
import { context, createRequest, created } from '../../conformance/request.ts'

/** Polls until it answers something truthy; fails after the deadline. */
export const until = async <T>(what: string, probe: () => T | Promise<T>, milliseconds = 8000): Promise<NonNullable<T>> => {
  const end = performance.now() + milliseconds
  for (;;) {
    const answer = await probe()
    if (answer) return answer
    if (performance.now() > end) throw new Error(`did not happen within ${milliseconds} ms: ${what}`)
    await pause(10)
  }
}

const fileText = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

export const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
export const argumentsOf = (pid: number): string[] => fileText(`/proc/${pid}/cmdline`).split('\0').slice(0, -1)
export const carriesRef = (pid: number, ref: string): boolean =>
  fileText(`/proc/${pid}/environ`).split('\0').includes(`LEASEHOLD_REF=${ref}`)
/** Living processes with exactly these arguments. */
export const running = (...command: string[]): number[] =>
  pids().filter((pid) => argumentsOf(pid).join('\0') === command.join('\0') && processStat(pid)?.alive === true)

let counter = 0
/** A number of seconds that no other process on this machine sleeps for. */
export const uniqueSleep = (): string => `${100_000 + (process.pid % 10_000) * 100 + (counter += 1)}`

export interface Boxes {
  dataFolder: string
  provider: Provider
  config: Record<string, unknown>
  make(changes?: Partial<CreateRequest>): Promise<{ request: CreateRequest; resource: ResourceIdentity; folder: string }>
  run(resource: ResourceIdentity, command: string[], env?: Record<string, string>): ChildProcess
  /** Runs to the end and collects what it wrote. */
  output(
    resource: ResourceIdentity,
    command: string[],
    env?: Record<string, string>,
  ): Promise<{ code: number | null; signal: string | null; text: string; errors: string }>
  /** Processes outside the boxes, ended by `dispose`. */
  outside(command: string[], env?: Record<string, string>): ChildProcess
  folders(): string[]
  dispose(): Promise<void>
}

export const openBoxes = (config: Record<string, unknown> = {}): Boxes => {
  const dataFolder = mkdtempSync(join(tmpdir(), 'leasehold-process-'))
  const provider = createProcessProvider({ dataFolder })
  const children: ChildProcess[] = []
  const folders = (): string[] => {
    try {
      return readdirSync(join(dataFolder, 'boxes'))
    } catch {
      return []
    }
  }
  const run = (resource: ResourceIdentity, command: string[], env?: Record<string, string>): ChildProcess => {
    const child = spawnInBox(provider.access(resource, config), command, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(env ? { env: { ...process.env, ...env } } : {}),
    })
    children.push(child)
    return child
  }
  return {
    dataFolder,
    provider,
    config,
    folders,
    run,
    async make(changes) {
      const request = createRequest(provider, config, changes)
      const resource = created(await provider.create(request, context()))
      return { request, resource, folder: join(dataFolder, 'boxes', resource.nativeId) }
    },
    async output(resource, command, env) {
      const child = run(resource, command, env)
      let text = ''
      let errors = ''
      child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
      child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
      // What was left running in the box may hold the pipes open, so their end is not waited for.
      await pause(0)
      await until('output is read', () => child.stdout?.readableLength === 0)
      return { code, signal, text, errors }
    },
    outside(command, env) {
      const child = spawn(command[0] as string, command.slice(1), { stdio: 'ignore', env: { PATH: process.env['PATH'], ...env } })
      children.push(child)
      return child
    },
    async dispose() {
      for (const name of folders()) {
        const nativeId = name.replace(/^\.removing-/, '')
        const found = await provider.find(nativeId.split('-')[0] as CreateRequest['ref'], config, context())
        for (const { resource } of found.kind === 'complete' ? found.found : [])
          await provider.remove(resource, { ...config, graceSeconds: 0 }, context())
      }
      for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      rmSync(dataFolder, { recursive: true, force: true })
    },
  }
}

export const initOf = (folder: string): { boot: string; inode: string; pid: number; start: string } => {
  const [boot, inode, pid, start] = readFileSync(join(folder, 'init'), 'utf8').trim().split(' ') as [string, string, string, string]
  return { boot, inode, pid: Number(pid), start }
}

export const initAlive = (folder: string): boolean => {
  const init = initOf(folder)
  return processAlive(init.pid, init.start)
}
