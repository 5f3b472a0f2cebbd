/**
 * Runs a command in a box. Imports nothing else of this provider, so that a command line can use it by itself: no byte of a
 * command passes through the coordinator.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bootId, findMachineId, pidNamespaceInode, procIsOwn } from '../../lib/host.ts'
import type { Access } from '../../model/wire.ts'

export interface EnterOptions {
  /** Default: the box's own folder, `home/`. */
  cwd?: string
  /** The command's environment; default: this process's own. The box's tags and secrets are added inside. */
  env?: Record<string, string | undefined>
  /** For descriptors 0, 1 and 2; default: inherited. */
  stdio?: StdioOptions
  /** The lease that has a box which was made before it: set inside as `LEASEHOLD_LEASE_ID`. */
  lease?: string
}

/** The box is not there any more, is another one, or is on another machine. */
export class BoxUnreachableError extends Error {
  readonly code = 'box_unreachable'
}

/** Tags are for what runs inside: the process that stands in the door must not look like a part of the box. */
const tags = ['LEASEHOLD_REF', 'LEASEHOLD_INSTALLATION', 'LEASEHOLD_ATTEMPT', 'LEASEHOLD_LEASE_ID']

const outside = (env: Record<string, string | undefined>, lease?: string): Record<string, string | undefined> => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !tags.includes(name))),
  // Under a name of the door's own; what enters gives it the right one.
  _lh_lease: lease,
})

type Descriptors = Exclude<StdioOptions, string>

const threeOf = (stdio: StdioOptions = 'inherit'): Descriptors => {
  const list: Descriptors = typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio
  return [list[0] ?? 'inherit', list[1] ?? 'inherit', list[2] ?? 'inherit']
}

/** The start time that the box recorded of its first process; null when the folder is gone. */
const recordedInit = (folder: string): string[] | null => {
  try {
    return readFileSync(join(folder, 'init'), 'utf8').trim().split(' ')
  } catch {
    return null
  }
}

const check = (access: Access & { kind: 'namespace' | 'session' }): void => {
  if (findMachineId() !== access.machineID) throw new BoxUnreachableError('the box is on another machine')
  if (bootId() !== access.bootID) throw new BoxUnreachableError('the machine was restarted since; the box is gone')
  if (!procIsOwn()) throw new BoxUnreachableError("/proc is not this process's own, so a box can't be entered from here")
  const [boot, inode, pid] = recordedInit(access.folder) ?? []
  const same = access.kind === 'session' ? inode === 'session' : inode === access.pidNamespaceInode && pid === String(access.pid)
  if (boot !== access.bootID || !same) throw new BoxUnreachableError('the box is gone')
}

/** The verified door of a namespace: what is compared is the descriptor itself, so that no pid can change in between. */
const openDoor = (access: Access & { kind: 'namespace' }): number[] => {
  const descriptors: number[] = []
  try {
    descriptors.push(openSync(`/proc/${access.pid}/ns/pid`, 'r'))
    if (access.userNamespace) descriptors.push(openSync(`/proc/${access.pid}/ns/user`, 'r'))
    const inode = String(fstatSync(descriptors[0] as number, { bigint: true }).ino)
    if (inode !== access.pidNamespaceInode || inode === pidNamespaceInode('self')) throw new BoxUnreachableError('the box is gone')
    // Both were opened by pid; the second is of the same process only if the pid still shows the same namespace.
    if (pidNamespaceInode(access.pid) !== inode) throw new BoxUnreachableError('the box is gone')
    return descriptors
  } catch (error) {
    for (const descriptor of descriptors) closeSync(descriptor)
    if (error instanceof BoxUnreachableError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new BoxUnreachableError('its first process is gone')
    throw new BoxUnreachableError(`the box can't be entered: ${(error as Error).message}`)
  }
}

/** Runs any program in a box's namespace, without its tags and secrets. For the provider itself. */
export const spawnInNamespace = (access: Access & { kind: 'namespace' }, command: string[], options: EnterOptions): ChildProcess => {
  const door = openDoor(access)
  const user = access.userNamespace ? ['--user=/proc/self/fd/4', '--preserve-credentials'] : []
  try {
    return spawn('nsenter', [...user, '--pid=/proc/self/fd/3', '--', ...command], {
      cwd: options.cwd ?? join(access.folder, 'home'),
      env: outside(options.env ?? process.env, options.lease),
      stdio: [...threeOf(options.stdio), ...door],
    })
  } finally {
    for (const descriptor of door) closeSync(descriptor)
  }
}

/**
 * Runs a command in a box. Its exit status and the signal that ended it are the child's; not executable is 126, not found 127. In a
 * session box the command leads a session of its own, so it has no controlling terminal.
 * Throws `BoxUnreachableError` when the box is not there; a later failure to start is the child's `error` event.
 */
export const spawnInBox = (access: Access, command: string[], options: EnterOptions = {}): ChildProcess => {
  if (command.length === 0) throw new TypeError('no command')
  if (access.kind === 'none') throw new BoxUnreachableError(access.why)
  if (access.kind === 'docker') throw new BoxUnreachableError('the box is a container')
  check(access)
  const enter = ['sh', join(access.folder, 'enter.sh'), ...command]
  if (access.kind === 'namespace') return spawnInNamespace(access, enter, options)
  return spawn('sh', enter.slice(1), {
    cwd: options.cwd ?? join(access.folder, 'home'),
    env: outside(options.env ?? process.env, options.lease),
    stdio: threeOf(options.stdio),
    detached: true,
  })
}

/**
 * Passes a signal on to the command that `spawnInBox` started. In a namespace the child is the door, and the command its
 * only child: a signal to the door would end that alone, and the command would run on unseen. False when it has ended.
 */
export const signalInBox = (access: Access, child: ChildProcess, signal: NodeJS.Signals): boolean => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return false
  if (access.kind === 'session') return child.kill(signal)
  try {
    const inside = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
    // The door collects its child only when it ends itself, so the pid can't have been used again by others in between.
    for (const pid of inside) process.kill(pid, signal)
    return inside.length > 0
  } catch {
    return false
  }
}
