/** Where the demo plays: a folder, a port and a coordinator of its own, and real commands. Whatever happens, `clear` leaves nothing of it behind. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { listPids, processEnvironment, processStat } from '../../src/lib/host.ts'
import { command, output, typed } from './screen.ts'

const executable = resolve(import.meta.dirname, '../../bin/leasehold')

export interface Ran {
  status: number | null
  out: string
}

export interface Stage {
  folder: string
  port: number
  settings: Record<string, string>
  /** Starts the coordinator, and waits until it serves. */
  serve(): Promise<void>
  pid(): number
  /** Shows the command line, runs it, shows what it prints. @throws DemoError when it fails */
  run(...words: string[]): Promise<Ran>
  /** As `run`, but its output is shown when it is asked for: the command goes on in the background. */
  begin(...words: string[]): () => Promise<Ran>
  /** Asks the API, without showing it, what the story needs to know. With a body it is a POST. */
  ask<T>(path: string, body?: unknown): Promise<T>
  /** `kill -9` of the coordinator once the first process of a new box runs. @returns the box's name, null: no box came in time */
  killInsideCreate(): Promise<string | null>
  boxes(): string[]
  /** How many processes carry the tag of one of its boxes. */
  processes(): number
  /** Kills what is left and deletes the folder. Repeating it is harmless. */
  clear(): Promise<void>
}

export class DemoError extends Error {}

const freePort = async (): Promise<number> => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** Nothing of the user's own settings: neither the environment, nor, because of a file in the folder, a configuration. */
const environment = (settings: Record<string, string>): Record<string, string | undefined> => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LEASEHOLD_') && name !== 'FORCE_COLOR')),
  NO_COLOR: '1',
  ...settings,
})

/** @param settings beside those of the place: how often sweeps come, and what they may do */
export const makeStage = async (settings: Record<string, string>): Promise<Stage> => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-demo-'))
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(join(folder, 'leasehold.yml'), '# Nothing is set here: it keeps your own configuration out of the demo.\n')
  const port = await freePort()
  const place = { LEASEHOLD_DATA: data, LEASEHOLD_PORT: String(port) }
  const env = environment({ ...settings, ...place })
  const children = new Set<ChildProcess>()
  let coordinator: ChildProcess | null = null
  let cleared = false

  const start = (words: readonly string[], stdio: 'pipe' | number): ChildProcess => {
    if (cleared) throw new DemoError('the demo was stopped')
    const out = stdio === 'pipe' ? 'pipe' : 'ignore'
    const child = spawn(executable, words, { cwd: folder, env, stdio: ['ignore', out, stdio] })
    children.add(child)
    child.once('exit', () => children.delete(child))
    return child
  }
  const finish = async (child: ChildProcess): Promise<Ran> => {
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr?.on('data', (chunk: Buffer) => (out += chunk.toString()))
    const [status] = (await once(child, 'close')) as [number | null]
    return { status, out }
  }
  const show = (ran: Ran): Ran => {
    output(ran.out)
    if (ran.status !== 0) output(`(exit ${ran.status ?? 'by a signal'})\n`)
    return ran
  }
  const boxes = (): string[] => {
    const place = join(data, 'boxes')
    return existsSync(place) ? readdirSync(place).filter((name) => !name.startsWith('.making-')) : []
  }
  const refs = new Set<string>()
  const noteRefs = (): void => {
    for (const name of boxes()) refs.add(/^(?:\.removing-)?([a-z][a-z0-9]{11})-/.exec(name)?.[1] ?? name)
  }
  const carriers = (): number[] =>
    (listPids() ?? []).filter((pid) => {
      const read = processEnvironment(pid)
      return read.kind === 'read' && refs.has(read.values.get('LEASEHOLD_REF') ?? '') && processStat(pid)?.alive === true
    })

  return {
    folder,
    port,
    settings: { ...place, ...settings },
    boxes,
    async serve() {
      const child = start(['serve'], openSync(join(folder, 'serve.log'), 'a'))
      coordinator = child
      for (let tries = 0; ; tries++) {
        if (child.exitCode !== null || child.signalCode !== null || tries > 600)
          throw new DemoError(`the coordinator did not start:\n${readFileSync(join(folder, 'serve.log'), 'utf8')}`)
        const ready = await fetch(`http://127.0.0.1:${port}/v1/ready`, { signal: AbortSignal.timeout(2000) }).catch(() => null)
        if (ready?.ok) return
        await pause(50)
      }
    },
    pid: () => coordinator?.pid ?? 0,
    async run(...words) {
      command(`leasehold ${typed(words)}`)
      const ran = await finish(start(words, 'pipe'))
      noteRefs()
      show(ran)
      if (ran.status !== 0) throw new DemoError(`leasehold ${typed(words)} ended with ${ran.status ?? 'a signal'}`)
      return ran
    },
    begin(...words) {
      command(`leasehold ${typed(words)} &`)
      const ended = finish(start(words, 'pipe'))
      return async () => show(await ended)
    },
    async ask<T>(path: string, body?: unknown) {
      const token = readFileSync(join(data, 'admin.token'), 'utf8').trim()
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      })
      if (!response.ok) throw new DemoError(`${path} answered ${response.status}: ${await response.text()}`)
      return (await response.json()) as T
    },
    async killInsideCreate() {
      const before = new Set(boxes())
      const end = performance.now() + 20_000
      const fresh = (): string | undefined => boxes().find((name) => !before.has(name) && !name.startsWith('.'))
      while (fresh() === undefined && performance.now() < end) await pause(1)
      const box = fresh()
      // The claim is the first thing that the box's own process writes; its report, which the coordinator waits for, comes milliseconds later. So no pause here.
      const patience = performance.now() + 500
      while (box !== undefined && !existsSync(join(data, 'boxes', box, 'claim')) && performance.now() < patience);
      const dead = coordinator
      if (dead?.pid === undefined) return null
      const ended = once(dead, 'exit')
      dead.kill('SIGKILL')
      await ended
      noteRefs()
      return box ?? null
    },
    processes() {
      noteRefs()
      return carriers().length
    },
    async clear() {
      cleared = true
      noteRefs()
      // The coordinator first, so that it starts nothing more; boxes are nobody's children and would live on.
      const ending = [...children].map(async (child) => {
        if (child.exitCode === null && child.signalCode === null) {
          const ended = once(child, 'exit')
          child.kill('SIGKILL')
          await ended
        }
      })
      await Promise.all(ending)
      for (let tries = 0; tries < 100; tries++) {
        noteRefs()
        const left = carriers()
        for (const pid of left)
          try {
            process.kill(pid, 'SIGKILL')
          } catch {
            // It went by itself.
          }
        if (left.length === 0) break
        await pause(20)
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
}
