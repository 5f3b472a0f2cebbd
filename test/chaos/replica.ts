/** A coordinator as a process under a supervisor that starts it again whenever it ends, as systemd or an orchestrator would. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, fstatSync, globSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanEnvironment } from '../support/coordinator.ts'
import { until } from '../support/until.ts'

/** libfaketime of this machine; null: it is not installed. */
export const fakeTimeLibrary = (): string | null => globSync('/usr/lib/*/faketime/libfaketime.so.1')[0] ?? null

export interface ReplicaOptions {
  name: string
  program: string
  port: number
  data: string
  databaseUrl: string
  clockSkewSeconds: number
  environment: Record<string, string>
  /** What it writes goes here, from all of its lives. */
  logFile: string
}

/** An end that nobody asked for. */
export interface UnaskedEnd {
  replica: string
  status: number | null
  signal: string | null
  /** It had been ready; who can't reach the database at its start may end, and is started again. */
  served: boolean
  /** The last that it wrote. */
  log: string
}

export interface Replica {
  readonly url: string
  readonly name: string
  kill(): Promise<void>
  /** SIGSTOP. */
  halt(): void
  /** SIGCONT. */
  go(): void
  /** Killed, and started as another program from now on. */
  become(program: string): Promise<void>
  /** In its present life it has said that it serves. */
  serves(): boolean
  ready(): Promise<void>
  /** SIGTERM, and no new life after it. @returns its exit status */
  stop(): Promise<number | null>
  unasked(): UnaskedEnd[]
}

const setpriv = '/usr/bin/setpriv'
const restartMs = 300
const stopMs = 25_000

export const startReplica = (options: ReplicaOptions): Replica => {
  const { name, port, logFile } = options
  const url = `http://127.0.0.1:${port}`
  const unasked: UnaskedEnd[] = []
  let program = options.program
  let child: ChildProcess | undefined
  let wanted = true
  let killing = false
  let lifeFrom = 0
  const fakeTime: Record<string, string> =
    options.clockSkewSeconds === 0
      ? {}
      : {
          LD_PRELOAD: fakeTimeLibrary() ?? '',
          FAKETIME: `${options.clockSkewSeconds > 0 ? '+' : ''}${options.clockSkewSeconds}s`,
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
        }

  const life = (): string => readFileSync(logFile).subarray(lifeFrom).toString()
  const served = (): boolean => life().includes(' serves on ')

  const launch = (): void => {
    const log = openSync(logFile, 'a')
    lifeFrom = fstatSync(log).size
    const env = cleanEnvironment({
      LEASEHOLD_DATA: options.data,
      LEASEHOLD_PORT: String(port),
      LEASEHOLD_DATABASE_URL: options.databaseUrl,
      ...options.environment,
      ...fakeTime,
    })
    // Whatever ends the suite ends its coordinators too.
    const tied = existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL', program] : [program]
    const started = spawn(tied[0] as string, [...tied.slice(1), 'serve'], { env, cwd: options.data, stdio: ['ignore', 'ignore', log] })
    closeSync(log)
    child = started
    started.once('exit', (status, signal) => {
      if (!wanted) return
      if (!killing) {
        unasked.push({ replica: name, status, signal, served: served(), log: life().slice(-2_000) })
      }
      killing = false
      void sleep(restartMs).then(() => wanted && launch())
    })
  }
  const isUp = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === undefined || !isUp()) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  const kill = async (): Promise<void> => {
    killing = isUp()
    await end('SIGKILL')
  }
  launch()
  return {
    url,
    name,
    kill,
    halt: () => void child?.kill('SIGSTOP'),
    go: () => void child?.kill('SIGCONT'),
    async become(other) {
      program = other
      await kill()
    },
    serves: () => isUp() && served(),
    async ready() {
      await until(
        async () => {
          try {
            return (await fetch(`${url}/v1/ready`, { signal: AbortSignal.timeout(2_000) })).ok
          } catch {
            return false
          }
        },
        `${name} is ready; its log is ${logFile}`,
        180_000,
      )
    },
    async stop() {
      wanted = false
      child?.kill('SIGCONT')
      const late = setTimeout(() => child?.kill('SIGKILL'), stopMs)
      await end('SIGTERM')
      clearTimeout(late)
      return child?.exitCode ?? null
    },
    unasked: () => unasked,
  }
}
