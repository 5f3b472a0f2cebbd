/** Starts the programs of this folder. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

export interface Program {
  child: ChildProcessByStdio<Writable, Readable, Readable>
  /** Whole lines that it has printed so far. */
  lines: () => string[]
  /** Resolves when it is gone and all that it printed was read. @returns its exit code, null after a signal */
  ended: Promise<number | null>
  /** What it wrote on its standard error so far. */
  complaints: () => string
}

export const program = (name: 'writer' | 'opener' | 'clock', ...args: string[]): Program => {
  const child = spawn(process.execPath, ['--no-warnings', join(import.meta.dirname, `${name}.ts`), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let out = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
  return {
    child,
    lines: () => out.split('\n').slice(0, -1),
    complaints: () => complaints,
    ended: once(child, 'close').then(([code]) => code as number | null),
  }
}
