import type { ChildProcess } from 'node:child_process'
import { homedir } from 'node:os'
import type { Access } from '../../model/wire.ts'
import { CliError } from './errors.ts'

/** The way into a box: what the `enter.ts` of its provider offers, loaded when a command is run. */
export interface BoxDoor {
  spawnInBox: (
    access: Access,
    command: string[],
    options: { cwd?: string; env?: Record<string, string | undefined>; stdio?: 'inherit'; lease?: string },
  ) => ChildProcess
  signalInBox: (access: Access, child: ChildProcess, signal: NodeJS.Signals) => boolean
}

/** The outside of a command, so that a test can stand in for a terminal. Data goes to `out`, everything said to people to `err`. */
export interface Io {
  out: (text: string) => void
  err: (text: string) => void
  environment: Readonly<Record<string, string | undefined>>
  /** The working folder. */
  folder: string
  home: string
  /** Is stdout a terminal that takes colours? */
  colours: boolean
  /** Is stderr a terminal, where a line may be written over? */
  terminal?: boolean
  /** Wall clock in milliseconds, for ages in tables only. */
  now: () => number
  door: (access: Access) => Promise<BoxDoor>
}

/** The process's own streams. A reader that went away (`… | head`) ends the program quietly. */
export const processIo = (): Io => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  process.stderr.on('error', () => {})
  const { NO_COLOR: noColour, TERM: terminal } = process.env
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    get folder() {
      try {
        return process.cwd()
      } catch {
        throw new CliError('the current folder is not there any more: change to another one')
      }
    },
    home: homedir(),
    colours: process.stdout.isTTY === true && (noColour === undefined || noColour === '') && terminal !== 'dumb',
    terminal: process.stderr.isTTY === true && terminal !== 'dumb',
    now: Date.now,
    door: async ({ kind }) =>
      kind === 'docker' ? await import('../../providers/docker/enter.ts') : await import('../../providers/process/enter.ts'),
  }
}
