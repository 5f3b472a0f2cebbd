/** Runs command lines in this process, against a home and data folder of the test's own. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCli } from '../../src/cli/main.ts'
import type { BoxDoor, Io } from '../../src/cli/support/io.ts'

export interface Result {
  status: number
  out: string
  err: string
}
export interface Sandbox {
  root: string
  data: string
  environment: Record<string, string>
  run: (argv: string[], changes?: Partial<Io>) => Promise<Result>
  remove: () => void
}

/** Runs the command as an ordinary child, where a box would be; its output goes nowhere. */
export const openDoor: BoxDoor = {
  spawnInBox: (_access, command, options) => spawn(command[0] as string, command.slice(1), { ...options, stdio: 'ignore' }),
  signalInBox: (_access, child, signal) => child.kill(signal),
}

export const sandbox = (url: string): Sandbox => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'leasehold-cli-')))
  const repository = join(root, 'repository')
  mkdirSync(join(repository, '.git'), { recursive: true })
  const environment = {
    PATH: process.env['PATH'] ?? '',
    LEASEHOLD_URL: url,
    LEASEHOLD_DATA: join(root, 'data'),
    LEASEHOLD_TOKEN: 'canary-token',
  }
  return {
    root,
    data: join(root, 'data'),
    environment,
    remove: () => rmSync(root, { recursive: true, force: true }),
    run: async (argv, changes = {}) => {
      const result: Result = { status: -1, out: '', err: '' }
      result.status = await runCli(argv, {
        out: (text) => void (result.out += text),
        err: (text) => void (result.err += text),
        environment,
        folder: repository,
        home: root,
        colours: false,
        now: () => Date.parse('2030-01-01T00:05:00Z'),
        door: () => Promise.resolve(openDoor),
        ...changes,
      })
      return result
    },
  }
}
