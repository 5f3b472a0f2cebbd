/**
 * A real PostgreSQL of our own: in a temporary folder, on a free port of 127.0.0.1, run as the user `postgres` where we are
 * root (it refuses to run as root). `durable: false` leaves out fsync: for suites, never for benchmarks.
 */
import { execFile, execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { accessSync, chownSync, constants, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'

export interface Postgres {
  /** `postgresql://leasehold:<password>@127.0.0.1:<port>/leasehold` */
  readonly url: string
  readonly version: string
  /**
   * Under the same address, with the same data. `fast` ends every connection and rolls back what is open; `immediate` is a crash, after which the server
   * recovers from its log.
   */
  restart(how: 'fast' | 'immediate'): Promise<void>
  stop(): Promise<void>
}

export interface PostgresOptions {
  durable?: boolean
}

interface Owner {
  uid: number
  gid: number
}

const startDeadlineMs = 30_000
const stopDeadlineMs = 10_000
const run = promisify(execFile)

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Debian keeps the server's programs out of PATH; the newest version comes first. */
const debianFolders = (): string[] => {
  const root = '/usr/lib/postgresql'
  try {
    return readdirSync(root)
      .toSorted((a, b) => Number(b) - Number(a))
      .map((version) => join(root, version, 'bin'))
  } catch {
    return []
  }
}

/** The folder that has both `initdb` and `postgres`, or null. */
export const postgresPrograms = (): string | null => {
  const folders = [...debianFolders(), ...(process.env.PATH ?? '').split(delimiter)]
  return folders.find((folder) => ['initdb', 'postgres'].every((program) => isExecutable(join(folder, program)))) ?? null
}

const idOf = (user: string, flag: '-u' | '-g'): number => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }))

/** Whom the server runs as; null: as ourselves. */
const ownerOf = (): Owner | null => (process.getuid?.() === 0 ? { uid: idOf('postgres', '-u'), gid: idOf('postgres', '-g') } : null)

const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const settings = (folder: string, port: number, durable: boolean): string[] => {
  const values: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: folder,
    max_connections: '200',
    shared_buffers: '64MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** On Linux the kernel shuts the server down when the process that started it is killed. */
const spawnTied = (program: string, args: string[], folder: string, owner: Owner | null): ChildProcess => {
  const tied = isExecutable('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'INT', program] : [program]
  return spawn(tied[0] as string, [...tied.slice(1), ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], ...owner })
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const answers = async (url: string, child: ChildProcess, log: () => string): Promise<string> => {
  const until = Date.now() + startDeadlineMs
  for (;;) {
    if (ended(child)) throw new Error(`PostgreSQL ended at its start:\n${log()}`)
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
    try {
      await client.connect()
      const { rows } = await client.query<{ server_version: string }>('show server_version')
      return rows[0]?.server_version ?? 'unknown'
    } catch (error) {
      if (Date.now() > until) throw new Error(`PostgreSQL did not answer within ${startDeadlineMs} ms:\n${log()}`, { cause: error })
      await sleep(20)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

/** INT is PostgreSQL's fast shutdown: it rolls back what is open and waits for nobody. QUIT leaves everything as it is. */
const endServer = async (child: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> => {
  if (ended(child)) return
  const closed = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill(signal)
  const late = setTimeout(() => child.kill('SIGQUIT'), stopDeadlineMs)
  await closed
  clearTimeout(late)
}

const stopServer = (child: ChildProcess): Promise<void> => endServer(child, 'SIGINT')

/** Throws with the server's own log when it can't be started. */
export const startPostgres = async ({ durable = false }: PostgresOptions = {}): Promise<Postgres> => {
  const programs = postgresPrograms()
  if (programs === null) throw new Error('initdb and postgres are neither in PATH nor in /usr/lib/postgresql: install postgresql')
  const owner = ownerOf()
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-pg-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  let child: ChildProcess | undefined
  try {
    const password = randomBytes(12).toString('hex')
    const passwordFile = join(folder, 'password')
    writeFileSync(passwordFile, password, { mode: 0o600 })
    if (owner !== null) for (const path of [folder, passwordFile]) chownSync(path, owner.uid, owner.gid)
    const data = join(folder, 'data')
    const initdb = ['-D', data, '-U', 'leasehold', '-E', 'UTF8', '--locale=C', '-A', 'password', `--pwfile=${passwordFile}`]
    await run(join(programs, 'initdb'), durable ? initdb : [...initdb, '--no-sync'], { cwd: folder, ...owner })
    rmSync(passwordFile)

    const port = await freePort()
    let log = ''
    const launch = (): ChildProcess => {
      const started = spawnTied(join(programs, 'postgres'), ['-D', data, ...settings(folder, port, durable)], folder, owner)
      for (const stream of [started.stdout, started.stderr])
        stream?.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-8_000)))
      started.on('error', (error) => (log += error.message))
      return started
    }
    child = launch()
    const at = `postgresql://leasehold:${password}@127.0.0.1:${port}`
    const version = await answers(`${at}/postgres`, child, () => log)
    const client = new pg.Client({ connectionString: `${at}/postgres` })
    await client.connect()
    await client.query('create database leasehold')
    await client.end()
    let server = child
    return {
      url: `${at}/leasehold`,
      version,
      restart: async (how) => {
        await endServer(server, how === 'fast' ? 'SIGINT' : 'SIGQUIT')
        server = launch()
        await answers(`${at}/postgres`, server, () => log)
      },
      stop: async () => {
        await stopServer(server)
        remove()
      },
    }
  } catch (error) {
    if (child !== undefined) await stopServer(child)
    remove()
    throw error
  }
}
