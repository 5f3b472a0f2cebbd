/**
 * Facts of this host. All reads are of `/proc` and take microseconds, so they are synchronous. On anything but Linux the
 * functions answer null (`machineId` too: macOS has no such file); nothing throws at import.
 *
 * Only "no such file" and "no such process" are absence. Any other failed read (no descriptor left, an I/O error) throws: taken for
 * absence, it would make a living process a dead one.
 */
import { readFileSync, readlinkSync, readdirSync } from 'node:fs'

export const isLinux = process.platform === 'linux'

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code
const isAbsence = (error: unknown): boolean => ['ENOENT', 'ESRCH', 'ENOTDIR'].includes(codeOf(error) ?? '')
/** True for an error that says: it is there, and this user may not read it. */
export const isDenial = (error: unknown): boolean => ['EACCES', 'EPERM'].includes(codeOf(error) ?? '')

/** Null when there is nothing of that name; throws when that can't be told. */
const read = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
}

const readPermitted = (path: string): string | null => {
  try {
    return read(path)
  } catch (error) {
    if (isDenial(error)) return null
    throw error
  }
}

/** This machine's own id, from `/etc/machine-id` or D-Bus. Null where neither says one. */
export const findMachineId = (paths: readonly string[] = ['/etc/machine-id', '/var/lib/dbus/machine-id']): string | null => {
  for (const path of paths) {
    const id = readPermitted(path)?.trim()
    if (id && /^[0-9a-f]{32}$/.test(id)) return id
  }
  return null
}

/** As `findMachineId`; throws an error that says what to do where there is none. */
export const machineId = (paths?: readonly string[]): string => {
  const id = findMachineId(paths)
  if (id === null)
    throw new Error(
      'this machine has no id: neither /etc/machine-id nor /var/lib/dbus/machine-id holds one; run systemd-machine-id-setup or dbus-uuidgen --ensure',
    )
  return id
}

/** A new one for each boot: what was recorded under another is surely dead. Null where the system does not say. */
export const bootId = (): string | null => read('/proc/sys/kernel/random/boot_id')?.trim() ?? null

/** Seconds since boot, suspended time included: the clock of dead-man deadlines. Null where the system does not say. */
export const uptimeSeconds = (): number | null => {
  const text = read('/proc/uptime')
  return text === null ? null : Number(text.split(' ')[0])
}

/** Inode of a process's PID namespace; null when there is no such process, or it may not be read. Inodes are reused. */
export const pidNamespaceInode = (pid: number | 'self'): string | null => {
  try {
    return /^pid:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/ns/pid`))?.[1] ?? null
  } catch (error) {
    if (isAbsence(error) || isDenial(error)) return null
    throw error
  }
}

export interface ProcessStat {
  pid: number
  /** R, S, D, T, t, Z, X, I. */
  state: string
  parent: number
  session: number
  /** Field 22, clock ticks since boot, as text: with the boot id it makes a pid an identity. */
  start: string
  /** False for a zombie, and for one that the kernel is already taking down (it may be waiting there for others). */
  alive: boolean
}

const exitingFlag = 0x4

/** Parses `/proc/P/stat`. The command's name can hold spaces and parentheses, so fields count from the last `)`. */
export const parseStat = (text: string): ProcessStat | null => {
  const end = text.lastIndexOf(')')
  const pid = Number.parseInt(text, 10)
  const fields = text.slice(end + 2).split(' ')
  const [state, parent, , session, , , flags] = fields
  const start = fields[19]
  if (end < 0 || !Number.isInteger(pid) || !state || !parent || !session || !flags || !start || !/^\d+$/.test(start)) return null
  // A leader that ended before its threads is shown as a zombie, and its process runs on.
  const ended = state === 'Z' || (Number(flags) & exitingFlag) !== 0
  const alive = state !== 'X' && state !== 'x' && (!ended || Number(fields[17]) > 1)
  return { pid, state, parent: Number(parent), session: Number(session), start, alive }
}

/** Null when there is no such process; throws when it can't be told. */
export const processStat = (pid: number): ProcessStat | null => {
  const text = read(`/proc/${pid}/stat`)
  return text === null ? null : parseStat(text)
}

/** Start time of a process in clock ticks since boot; null when there is no such process. A zombie still has one. */
export const processStart = (pid: number): string | null => processStat(pid)?.start ?? null

/** True while exactly this process (pid and start time) runs, and while it can't be told; a zombie does not. */
export const processAlive = (pid: number, start: string): boolean => {
  let stat: ProcessStat | null
  try {
    stat = processStat(pid)
  } catch {
    return true
  }
  return stat !== null && stat.start === start && stat.alive
}

/** A process's pid as its own innermost namespace counts it (1: its first process); null when it can't be read. */
export const innermostPid = (pid: number): number | null => {
  const line = /^NSpid:\s+(.+)$/m.exec(readPermitted(`/proc/${pid}/status`) ?? '')?.[1]
  return line === undefined ? null : Number(line.trim().split(/\s+/).at(-1))
}

/** `gone`: there is no such process; `denied`: there is, and its environment may not be read. */
export type Environment = { kind: 'read'; values: Map<string, string> } | { kind: 'gone' } | { kind: 'denied' }

/** The environment that a process was started with: what it did with it since does not show. Throws when it can't be told. */
export const processEnvironment = (pid: number): Environment => {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch (error) {
    // EIO: a process that has unmapped its own environment. It must not spoil every look at the machine.
    if (isDenial(error) || codeOf(error) === 'EIO') return { kind: 'denied' }
    if (isAbsence(error)) return { kind: 'gone' }
    throw error
  }
  const values = new Map<string, string>()
  for (const entry of text.split('\0')) {
    const equals = entry.indexOf('=')
    const key = entry.slice(0, equals)
    if (equals > 0 && !values.has(key)) values.set(key, entry.slice(equals + 1))
  }
  return { kind: 'read', values }
}

/** All pids that `/proc` shows; null where it can't be listed. */
export const listPids = (): number[] | null => {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return null
  }
}

/** False in a PID namespace that still shows its parent's `/proc`: pids read there are not the pids that signals reach. */
export const procIsOwn = (): boolean => {
  try {
    return readlinkSync('/proc/self') === String(process.pid)
  } catch {
    return false
  }
}
