/**
 * A real Docker Engine of our own: in a temporary folder, on sockets of its own, without a bridge or a rule of the machine's firewall. It has one image, made
 * of programs of this machine: nothing is pulled. Needs root, and Debian's docker.io.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { accessSync, constants, copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

export interface DockerEngine {
  /** `unix:///…` */
  host: string
  /** `tcp://127.0.0.1:<port>`, for those with the client's certificate. */
  tcp: string
  tls: { ca: string; cert: string; key: string }
  /** The image, by its name. */
  image: string
  version: string
}
export interface RunningEngine extends DockerEngine {
  stop(): Promise<void>
}

const run = promisify(execFile)
const startDeadlineMs = 30_000
const stopDeadlineMs = 15_000
export const imageName = 'leasehold-test:1'

/** Debian keeps the daemon's programs out of an ordinary user's PATH. */
const path = (): string => [process.env['PATH'] ?? '', '/usr/sbin', '/sbin'].join(delimiter)

const found = (program: string): string | null => {
  for (const folder of path().split(delimiter)) {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return join(folder, program)
    } catch {}
  }
  return null
}

/** Null: an Engine can be started here. */
export const dockerProblem = (): string | null => {
  const missing = ['dockerd', 'docker', 'openssl', 'tar'].find((program) => found(program) === null)
  if (missing !== undefined) return `${missing} is not installed`
  return process.platform === 'linux' && process.getuid?.() === 0 ? null : 'only root can run an Engine'
}

const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** One authority, and what it vouches for: the Engine at 127.0.0.1, and a client. */
const makeCertificates = async (folder: string): Promise<{ ca: string; server: string; client: string }> => {
  mkdirSync(folder)
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=leasehold test')
  for (const [name, use] of [
    ['server', 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth'],
    ['client', 'extendedKeyUsage=clientAuth'],
  ] as const) {
    writeFileSync(join(folder, `${name}.ext`), use)
    await openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`)
    await openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      `${name}.ext`,
      '-out',
      `${name}.pem`,
    )
  }
  return { ca: join(folder, 'ca.pem'), server: join(folder, 'server'), client: join(folder, 'client') }
}

const programs = [
  'sh',
  'sleep',
  'cat',
  'ls',
  'rm',
  'mv',
  'mkdir',
  'chown',
  'chmod',
  'touch',
  'env',
  'id',
  'setsid',
  'seq',
  'tr',
  'wc',
  'stty',
  'false',
  'true',
]

/** Programs of this machine, with the libraries that they name. */
const makeImage = async (folder: string, host: string): Promise<void> => {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  mkdirSync(join(folder, 'etc'))
  writeFileSync(join(folder, 'etc', 'passwd'), 'root:x:0:0:root:/:/bin/sh\nguest:x:1234:1234:guest:/:/bin/sh\n')
  writeFileSync(join(folder, 'etc', 'notes'), 'of the image\n')
  const copied = new Set<string>()
  const copy = (from: string, to = from): void => {
    if (copied.has(to)) return
    copied.add(to)
    mkdirSync(join(folder, dirname(to)), { recursive: true })
    copyFileSync(realpathSync(from), join(folder, to))
  }
  for (const program of programs) {
    const file = found(program)
    if (file === null) throw new Error(`an image can't be made: ${program} is missing`)
    copy(file, `/bin/${program}`)
    const { stdout } = await run('ldd', [file]).catch(() => ({ stdout: '' }))
    for (const [library] of stdout.matchAll(/\/\S+\.so\S*/g)) copy(library)
  }
  symlinkSync('bin', join(folder, 'sbin'))
  await run('sh', ['-c', `tar -C "$1" -c . | docker --host "$2" import --change 'ENV PATH=/bin' - ${imageName}`, 'sh', folder, host])
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

const stopDaemon = async (child: ChildProcess): Promise<void> => {
  if (!ended(child)) child.kill('SIGTERM')
  for (const end = Date.now() + stopDeadlineMs; !ended(child); await sleep(20)) if (Date.now() > end) child.kill('SIGKILL')
}

/** What a daemon that was killed leaves mounted would keep its folder. */
const removeFolder = async (folder: string): Promise<void> => {
  const { stdout } = await run('cat', ['/proc/self/mounts'])
  const mounts = stdout
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((mount) => mount.startsWith(`${folder}/`))
  for (const mount of mounts.toReversed()) await run('umount', ['--lazy', mount]).catch(() => undefined)
  rmSync(folder, { recursive: true, force: true })
}

/** @throws with what the daemon said, where it does not start */
export const startDocker = async (): Promise<RunningEngine> => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-docker-'))
  const socket = join(folder, 'docker.sock')
  const host = `unix://${socket}`
  let child: ChildProcess | undefined
  let log = ''
  try {
    const { ca, server, client } = await makeCertificates(join(folder, 'tls'))
    const tcp = `tcp://127.0.0.1:${await freePort()}`
    const values: Record<string, string> = {
      tlscacert: ca,
      tlscert: `${server}.pem`,
      tlskey: `${server}.key`,
      'data-root': join(folder, 'data'),
      'exec-root': join(folder, 'run'),
      pidfile: join(folder, 'pid'),
      bridge: 'none',
      iptables: 'false',
      'ip-masq': 'false',
      'userland-proxy': 'false',
      'default-address-pool': 'base=10.211.0.0/16,size=28',
    }
    const args = ['--host', host, '--host', tcp, '--tlsverify', ...Object.entries(values).map(([name, value]) => `--${name}=${value}`)]
    // The kernel ends the daemon, and that its containers, when whoever started it is killed.
    const tied = found('setpriv') === null ? [] : ['setpriv', '--pdeathsig', 'TERM']
    const [program, ...rest] = [...tied, 'dockerd', ...args]
    const daemon = spawn(program as string, rest, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH: path() } })
    child = daemon
    for (const stream of [daemon.stdout, daemon.stderr])
      stream.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-8_000)))
    daemon.on('error', (error) => (log += error.message))
    let version = ''
    for (const end = Date.now() + startDeadlineMs; version === ''; await sleep(50)) {
      if (ended(daemon)) throw new Error(`dockerd ended at its start:\n${log}`)
      if (Date.now() > end) throw new Error(`dockerd did not answer within ${startDeadlineMs} ms:\n${log}`)
      version = (
        await run('docker', ['--host', host, 'version', '--format', '{{.Server.Version}}']).catch(() => ({ stdout: '' }))
      ).stdout.trim()
    }
    await makeImage(join(folder, 'image'), host)
    return {
      host,
      tcp,
      tls: { ca, cert: `${client}.pem`, key: `${client}.key` },
      image: imageName,
      version,
      stop: async () => {
        await stopDaemon(daemon)
        await removeFolder(folder)
      },
    }
  } catch (error) {
    if (child !== undefined) await stopDaemon(child)
    await removeFolder(folder)
    throw error
  }
}
