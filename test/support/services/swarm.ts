/** A real Swarm of one node or several, each a dockerd of its own (`test/support/lab/swarm-up.sh`): root, Debian's docker.io, iproute2. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const lab = join(import.meta.dirname, '../lab')

export interface Swarm {
  /** Of the manager. */
  socket: string
  docker: (args: readonly string[], input?: string) => Promise<string>
  get: (path: string) => Promise<unknown>
  stop: () => Promise<void>
}

/** Whether this machine can run one. */
export const swarmAvailable = (): boolean => {
  try {
    execFileSync('sh', ['-c', 'command -v dockerd && command -v docker && command -v ip && command -v nsenter'], { stdio: 'ignore' })
    return process.getuid?.() === 0
  } catch {
    return false
  }
}

export const startSwarm = async (nodes = 1): Promise<Swarm> => {
  const root = mkdtempSync(join(tmpdir(), 'leasehold-swarm-'))
  // Two at a time on one machine need two names and two nets.
  const number = process.pid % 250
  const environment = { ...process.env, LAB: root, LABNAME: `lt${process.pid}`, LABNET: `10.97.${number}` }
  const stop = async (): Promise<void> => {
    await run('bash', [join(lab, 'swarm-down.sh')], { env: environment })
    rmSync(root, { recursive: true, force: true })
  }
  try {
    await run('bash', [join(lab, 'swarm-up.sh'), String(nodes)], { env: environment, timeout: 90_000 })
  } catch (error) {
    await stop()
    throw error
  }
  const socket = join(root, 'n1/docker.sock')
  const docker: Swarm['docker'] = async (args, input) => {
    const child = run('docker', ['-H', `unix://${socket}`, ...args], { maxBuffer: 16 * 1024 * 1024 })
    child.child.stdin?.end(input ?? '')
    return (await child).stdout
  }
  return { socket, docker, get: (path) => getJson(socket, path), stop }
}

const getJson = (socketPath: string, path: string): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const call = request({ socketPath, path: `/v1.41${path}` }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => void (text += part))
      answer.on('end', () =>
        answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${path}: ${answer.statusCode} ${text}`)),
      )
    })
    call.on('error', reject).end()
  })
