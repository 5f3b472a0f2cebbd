/** The program that stands in the door of a box on an Engine; see `enter.ts`. Arguments: the access as JSON, the command. */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { AddressError, parseAddress } from '../../lib/docker/address.ts'
import { type EngineClient, createEngineClient } from '../../lib/docker/client.ts'
import { isStatus } from '../../lib/docker/errors.ts'
import { execBegun, exitStatus, runExec, startExec } from '../../lib/docker/exec.ts'
import { frameReader } from '../../lib/docker/frames.ts'
import type { Access } from '../../model/wire.ts'
import { enterScript, signalScript } from './scripts.ts'

const failedStatus = 125
const forwarded = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const

type DockerAccess = Access & { kind: 'docker' }

const forever = new AbortController().signal

const say = (text: string): void => void process.stderr.write(`leasehold: ${text}\n`)

/** Whoever reads slowly slows the command down, and nothing is gathered here. */
const write = (to: NodeJS.WriteStream, data: Buffer, from: Duplex): void => {
  if (to.write(data)) return
  from.pause()
  to.once('drain', () => from.resume())
}

const carry = (stream: Duplex, tty: boolean, begun: () => Promise<void>): Promise<void> =>
  new Promise((resolve) => {
    const take = frameReader((name, data) => write(process[name], data, stream))
    stream.on('data', (chunk: Buffer) => (tty ? write(process.stdout, chunk, stream) : take(chunk)))
    // However it ends: what became of the command its status tells.
    stream.on('error', () => resolve())
    stream.on('end', () => resolve())
    stream.on('close', () => resolve())
    const endInput = (): void => {
      void begun()
        .catch(() => undefined)
        .then(() => stream.end())
    }
    // Of a terminal the Engine would take the end of its input for the end of everything.
    for (const end of ['error', 'end'] as const) process.stdin.on(end, tty ? () => undefined : endInput)
    process.stdin.pipe(stream, { end: false })
    // Whoever read the output has gone: the command is to learn of it.
    for (const out of [process.stdout, process.stderr]) out.on('error', () => stream.destroy())
  })

const sizeTries = 40
const sizePauseMs = 50

/** The Engine refuses a size for what it is just starting. */
const keepSize = (client: EngineClient, exec: string): void => {
  const tell = async (): Promise<void> => {
    for (let tries = 0; tries < sizeTries; tries += 1) {
      const { rows: h, columns: w } = process.stdout
      try {
        await client.call({ method: 'POST', path: `/exec/${exec}/resize`, query: { h, w }, signal: forever })
        return
      } catch {
        await pause(sizePauseMs, undefined, { ref: false })
      }
    }
  }
  process.stdout.on('resize', () => void tell())
  void tell()
}

const environment = (): Record<string, string> => {
  const { _lh_lease: lease, LEASEHOLD_LEASE_TOKEN: token, TERM: terminal } = process.env
  return {
    ...(lease && token ? { LEASEHOLD_LEASE_ID: lease, LEASEHOLD_LEASE_TOKEN: token } : {}),
    ...(terminal ? { TERM: terminal } : {}),
  }
}

const enter = async (access: DockerAccess, command: string[]): Promise<number> => {
  const client = createEngineClient(parseAddress(access.host, access.tls ?? null))
  const { container, folder, user } = access
  const tty = process.stdin.isTTY === true && process.stdout.isTTY === true
  const name = randomBytes(6).toString('hex')
  // From here on: a signal that comes while the command is being started is not lost on it.
  const waiting: NodeJS.Signals[] = []
  let started = false
  const pass = async (signal: NodeJS.Signals): Promise<void> => {
    const words = ['/bin/sh', '-c', signalScript, 'leasehold', name, signal.slice(3)]
    await runExec(client, container, { command: words, user: '0:0', folder: '/' }, forever).catch(() => undefined)
  }
  for (const signal of forwarded) process.on(signal, () => (started ? void pass(signal) : waiting.push(signal)))
  const { id, stream } = await startExec(
    client,
    container,
    {
      command: ['/bin/sh', '-c', enterScript, 'leasehold', name, ...command],
      folder,
      // The container's own is root, for its clock.
      user: user ?? '0:0',
      env: environment(),
      tty,
      stdin: true,
    },
    forever,
  )
  started = true
  for (const signal of waiting) void pass(signal)
  if (tty) {
    process.stdin.setRawMode(true)
    keepSize(client, id)
  }
  try {
    await carry(stream, tty, () => execBegun(client, id, forever))
  } finally {
    if (tty) process.stdin.setRawMode(false)
  }
  return exitStatus(client, id, forever)
}

const why = (error: unknown): string => {
  if (isStatus(error, 404)) return 'the box is gone'
  if (isStatus(error, 409)) return 'the box does not run any more'
  if (error instanceof AddressError) return error.message
  return error instanceof Error ? error.message : String(error)
}

const [text = '', ...words] = process.argv.slice(2)
let status = failedStatus
try {
  status = await enter(JSON.parse(text) as DockerAccess, words)
} catch (error) {
  say(`the box can't be entered: ${why(error)}`)
}
// What was said is written out first; input that nobody reads any more must not keep this waiting.
process.stdout.write('', () => process.stderr.write('', () => process.exit(status)))
