/** What this machine can do for boxes, found by trying once. */
import { execFile } from 'node:child_process'
import { bootId, findMachineId, isLinux, procIsOwn } from '../../lib/host.ts'
import type { ProcessConfig } from './config.ts'
import type { BoxMode } from './words.ts'

export type Namespaces = { kind: 'possible'; userNamespace: boolean } | { kind: 'impossible'; why: string }
export type ModeChoice = { kind: 'mode'; mode: BoxMode; userNamespace: boolean } | { kind: 'unsupported'; why: string }

/** Options of `unshare` and `nsenter` that an ordinary user needs: a PID namespace of theirs must belong to a user namespace. */
export const userNamespaceOptions = ['--user', '--map-current-user']

/** A new PID namespace dies with its first process, and that with its supervisor. */
export const unshareOptions = (userNamespace: boolean): string[] => [
  ...(userNamespace ? userNamespaceOptions : []),
  '--pid',
  '--fork',
  '--kill-child',
]

/** A search path also where the coordinator was started without one. */
export const searchPath = (): string => process.env['PATH'] || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const run = (command: string, args: string[]): Promise<string | null> =>
  new Promise((resolve) => {
    execFile(command, args, { timeout: 10_000, cwd: '/', env: { PATH: searchPath(), LC_ALL: 'C' } }, (error, _stdout, stderr) => {
      resolve(error === null ? null : stderr.trim().split('\n')[0] || error.message.split('\n')[0] || 'it failed')
    })
  })

const probe = async (): Promise<Namespaces> => {
  const door = await run('nsenter', ['--version'])
  if (door !== null) return { kind: 'impossible', why: `nsenter (util-linux) does not run: ${door}` }
  const reasons: string[] = []
  for (const userNamespace of process.getuid?.() === 0 ? [false, true] : [true]) {
    const why = await run('unshare', [...unshareOptions(userNamespace), '--', 'true'])
    if (why === null) return { kind: 'possible', userNamespace }
    reasons.push(why)
  }
  return { kind: 'impossible', why: reasons.join('; ') }
}

const retryAfterMs = 60_000

/** Remembers success for good, and failure for a minute: a machine that was out of memory must not fall back for ever. */
export const createNamespaceProbe = (): (() => Promise<Namespaces>) => {
  let known: Promise<Namespaces> | null = null
  let failedAt = 0
  return async () => {
    if (known === null || (failedAt > 0 && performance.now() - failedAt > retryAfterMs)) {
      failedAt = 0
      known = probe()
    }
    const answer = await known
    if (answer.kind === 'impossible' && failedAt === 0) failedAt = performance.now()
    return answer
  }
}

/** Why boxes can't be made here at all; null where they can. */
export const unsupportedHere = (): string | null => {
  if (!isLinux) return `boxes need Linux's /proc to be told apart and taken back with certainty; this is ${process.platform}`
  if (bootId() === null || !procIsOwn()) return '/proc is missing, or shows the processes of another PID namespace; mount one here'
  if (findMachineId() === null) return 'this machine has no id in /etc/machine-id; run systemd-machine-id-setup'
  return null
}

export const chooseMode = async (config: ProcessConfig, namespaces: () => Promise<Namespaces>): Promise<ModeChoice> => {
  const why = unsupportedHere()
  if (why !== null) return { kind: 'unsupported', why }
  const session: ModeChoice = { kind: 'mode', mode: 'session', userNamespace: false }
  if (config.mode === 'session') return session
  const answer = await namespaces()
  if (answer.kind === 'possible') return { kind: 'mode', mode: 'namespace', userNamespace: answer.userNamespace }
  return config.mode === 'auto' ? session : { kind: 'unsupported', why: `no PID namespace can be made here: ${answer.why}` }
}
