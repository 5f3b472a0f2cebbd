/** A real coordinator as a process of its own, on a data folder and port of its own; every one that a test leaves running is killed at its end. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { until } from './until.ts'

export const executable = resolve(import.meta.dirname, '../../bin/leasehold')

export const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}

export interface CoordinatorOptions {
  data: string
  port: number
  databaseUrl?: string
  env?: Record<string, string>
}

export interface Coordinator {
  url: string
  data: string
  process: ChildProcess
  /** What it wrote to stderr so far. */
  log(): string
  token(): string
  /** `kill -9`, and waits until it is dead. */
  kill(): Promise<void>
  /** SIGTERM, and waits until it has ended. */
  stop(): Promise<number | null>
}

const running = new Set<ChildProcess>()

/** For `afterEach`: kills whatever is still running. */
export const killCoordinators = async (): Promise<void> => {
  for (const child of running) {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}

/** The environment of commands and coordinators in tests: nothing of the user's own settings. */
export const cleanEnvironment = (extra: Record<string, string>): Record<string, string> => {
  const own = Object.entries(process.env).filter(
    ([name, value]) => value !== undefined && !name.startsWith('LEASEHOLD_') && !['FORCE_COLOR', 'CI'].includes(name),
  )
  return { ...(Object.fromEntries(own) as Record<string, string>), NO_COLOR: '1', ...extra }
}

/** Resolves once `/v1/ready` says so. */
export const startCoordinator = async (options: CoordinatorOptions): Promise<Coordinator> => {
  const url = `http://127.0.0.1:${options.port}`
  const env = cleanEnvironment({
    LEASEHOLD_DATA: options.data,
    LEASEHOLD_PORT: String(options.port),
    ...(options.databaseUrl ? { LEASEHOLD_DATABASE_URL: options.databaseUrl } : {}),
    ...options.env,
  })
  const child = spawn(executable, ['serve'], { env, cwd: options.data, stdio: ['ignore', 'ignore', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the coordinator ended at its start:\n${log}`)
    try {
      return (await fetch(`${url}/v1/ready`, { signal: AbortSignal.timeout(2_000) })).ok
    } catch {
      return false
    }
  }
  await until(isReady, `the coordinator is ready\n${log}`, 60_000)
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    return child.exitCode
  }
  return {
    url,
    data: options.data,
    process: child,
    log: () => log,
    token: () => readFileSync(join(options.data, 'admin.token'), 'utf8').trim(),
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  }
}

export interface Answer<T> {
  status: number
  body: T
}

/** One request to the API; a connection that breaks is an error. */
export const request = async <T = unknown>(
  coordinator: Pick<Coordinator, 'url'>,
  token: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T>> => {
  const response = await fetch(`${coordinator.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(70_000),
  })
  return { status: response.status, body: (await response.json()) as T }
}

export interface Ran {
  status: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** Runs the CLI as a user would. */
export const leasehold = async (
  args: readonly string[],
  options: { env: Record<string, string>; cwd: string; input?: string },
): Promise<Ran> => {
  const child = spawn(executable, args, {
    env: cleanEnvironment(options.env),
    cwd: options.cwd,
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const texts = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (texts.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (texts.stderr += chunk.toString()))
  if (options.input !== undefined) child.stdin?.end(options.input)
  const [status, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { status, signal, ...texts }
}
