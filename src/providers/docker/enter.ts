/**
 * Runs a command in a box on an Engine. Imports nothing else of this provider, so that a command line can use it by itself: no byte of a command passes
 * through the coordinator. The connection is held by a program of its own, so that the command has a process here, with a status and signals, as any other.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Access } from '../../model/wire.ts'

export interface EnterOptions {
  cwd?: string
  env?: Record<string, string | undefined>
  /** For descriptors 0, 1 and 2; default: inherited. */
  stdio?: StdioOptions
  /** The lease that has a box which was made before it: set inside as `LEASEHOLD_LEASE_ID`, with the token of the environment. */
  lease?: string
}

const program = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './enter-main.ts' : './enter-main.js', import.meta.url))

/** What an older Node needs to run this program's sources; whatever else this one was started with is its own. */
const runtimeFlags = (): string[] =>
  process.execArgv.filter(
    (flag) => flag === '--experimental-strip-types' || flag === '--no-warnings' || flag.startsWith('--disable-warning='),
  )

/** Its exit status is the command's; not executable is 126, not found 127; 125: the Engine or the box could not be reached, and a line says so. */
export const spawnInBox = (access: Access, command: string[], options: EnterOptions = {}): ChildProcess => {
  if (command.length === 0) throw new TypeError('no command')
  if (access.kind !== 'docker') throw new TypeError('the box is not a container')
  const env = { ...(options.env ?? process.env) }
  // The user's own environment is of this machine, and stays here, but for what a connection needs.
  if (options.lease === undefined) delete env['LEASEHOLD_LEASE_TOKEN']
  return spawn(process.execPath, [...runtimeFlags(), program, JSON.stringify(access), ...command], {
    env: { ...env, _lh_lease: options.lease },
    stdio: options.stdio ?? 'inherit',
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
}

/** Passes a signal on to the command. False when it has ended. */
export const signalInBox = (_access: Access, child: ChildProcess, signal: NodeJS.Signals): boolean =>
  child.exitCode === null && child.signalCode === null && child.kill(signal)
