/** Stands beside the command of `run`: passes signals on, and knows how it ended. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Access } from '../../model/wire.ts'
import { CliError, exitCodes } from './errors.ts'
import { inAMoment, onceMore, signalStatus, type Interrupts } from './interrupts.ts'
import type { BoxDoor } from './io.ts'

/** Fields of /proc/P/stat from the third on (the name before them can hold anything); null: no such process. */
const statOf = (pid: number | 'self'): string[] | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}

/** Does a Ctrl-C or Ctrl-\\ of the terminal reach this process group by itself? */
const isForeground = (): boolean => {
  const stat = statOf('self')
  return stat !== null && stat[2] === stat[5]
}

interface Inside {
  pid: number
  start: string
}

/** The command behind the door of a namespace, as this machine counts it. */
const insideOf = (door: ChildProcess): Inside | null => {
  try {
    const [first] = readFileSync(`/proc/${door.pid}/task/${door.pid}/children`, 'utf8').trim().split(' ')
    const pid = Number(first)
    const start = pid > 0 ? statOf(pid)?.[19] : undefined
    return start === undefined ? null : { pid, start }
  } catch {
    return null
  }
}

const isAlive = ({ pid, start }: Inside): boolean => {
  const stat = statOf(pid)
  return stat !== null && stat[19] === start && stat[0] !== 'Z'
}

/** Stopped by a signal (T); a traced process (t) is not ours to move on. */
const isStopped = (pid: number): boolean => statOf(pid)?.[0] === 'T'

const stoppedCheckMs = 250

/**
 * The door of a namespace stops itself whenever it sees its command stopped, and nothing ever moves it on: after Ctrl-Z and `fg` it
 * may see that only when the terminal's SIGCONT has passed already, and it would never learn of the command's end. So a door that
 * stands stopped before a command that runs, or has ended, is moved on. A command that is stopped is left so: somebody wanted it.
 */
const keepDoorMoving = (door: ChildProcess, inside: () => Inside | null): (() => void) => {
  const timer = setInterval(() => {
    const pid = door.pid
    const command = inside()
    if (pid === undefined || command === null || door.exitCode !== null || door.signalCode !== null) return
    if (isStopped(pid) && !(isAlive(command) && isStopped(command.pid))) door.kill('SIGCONT')
  }, stoppedCheckMs)
  timer.unref()
  return () => clearInterval(timer)
}

export interface Ended {
  /** Its exit status; 128 + n if a signal ended it. */
  status: number
  /** We passed no signal on: it ended by itself, or by other hands. */
  unasked: boolean
}

/**
 * Waits for the command's end. The first signal is passed on; with the second (of whatever kind) the wait ends: the release that
 * follows takes the box down.
 */
export const superviseCommand = async (
  child: ChildProcess,
  access: Access,
  door: BoxDoor,
  interrupts: Interrupts,
  say: (text: string) => void,
): Promise<Ended> => {
  const abandon = new AbortController()
  let wanted: NodeJS.Signals | null = null
  let quiet = (): void => {}
  interrupts.handle((signal, count) => {
    wanted ??= signal
    if (count > 1) return abandon.abort()
    // The terminal has sent its Ctrl-C to the whole group already; a second one would read as "now, at once".
    const fromTerminal = signal === 'SIGINT' || signal === 'SIGQUIT'
    const delivered = fromTerminal && access.kind !== 'session' && isForeground()
    if (!delivered) door.signalInBox(access, child, signal)
    quiet = inAMoment(() =>
      say(`the command has got ${signal}, and is waited for; ${onceMore(signal)} does not wait and takes the box back`),
    )
  })
  let inside: Inside | null = null
  const watch = async (): Promise<void> => {
    for (let pauseMs = 5; inside === null && pauseMs < 1000; pauseMs *= 2) {
      await sleep(pauseMs, undefined, { signal: abandon.signal, ref: false })
      inside = insideOf(child)
    }
  }
  if (access.kind === 'namespace') void watch().catch(() => {})
  const letStand = access.kind === 'namespace' ? keepDoorMoving(child, () => inside) : () => {}
  try {
    const [code, signal] = (await once(child, 'exit', { signal: abandon.signal })) as [number | null, NodeJS.Signals | null]
    // Ctrl-C ends the door at once, while the command may still tidy up behind it.
    while (signal !== null && inside !== null && isAlive(inside)) await sleep(50, undefined, { signal: abandon.signal })
    return { status: signal === null ? (code ?? exitCodes.runFailed) : signalStatus(signal), unasked: wanted === null }
  } catch (error) {
    if (abandon.signal.aborted) {
      // It may still run for a moment; this program must not wait for it.
      child.unref()
      return { status: signalStatus(wanted ?? 'SIGINT'), unasked: false }
    }
    throw new CliError(`the command could not be started: ${(error as Error).message}`, exitCodes.runFailed)
  } finally {
    letStand()
    quiet()
    abandon.abort()
  }
}
