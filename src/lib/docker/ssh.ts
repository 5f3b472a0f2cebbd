/** A connection to an Engine through `ssh … docker system dial-stdio`: what the Docker command itself does for `ssh://` addresses. */
import { type ChildProcess, spawn } from 'node:child_process'
import { Duplex } from 'node:stream'
import type { EngineAddress } from './address.ts'

const connectSeconds = 10
const longestWord = 500

/** Whole words: nothing of them is looked at by a shell on this side, and no name begins with a dash. */
export const sshArguments = ({ user, host, port, socket }: EngineAddress & { kind: 'ssh' }): string[] => [
  // Nobody is there to be asked.
  '-o',
  'BatchMode=yes',
  '-o',
  `ConnectTimeout=${connectSeconds}`,
  '-T',
  ...(user === null ? [] : ['-l', user]),
  ...(port === null ? [] : ['-p', String(port)]),
  '--',
  host,
  // A shell over there takes this apart.
  `docker ${socket === null ? '' : `--host '${socket.replaceAll("'", `'\\''`)}' `}system dial-stdio`,
]

/** Looks like a socket as far as HTTP needs one. Its end is the end of the program; what that said last is the reason. */
class SshStream extends Duplex {
  #child: ChildProcess
  #said = ''

  constructor(address: EngineAddress & { kind: 'ssh' }) {
    super({ allowHalfOpen: true })
    const child = spawn('ssh', sshArguments(address), { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    child.stdout?.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) child.stdout?.pause()
    })
    child.stderr?.on('data', (chunk: Buffer) => (this.#said = (this.#said + chunk.toString()).slice(-longestWord)))
    // It has ended, or is about to: why, its end says.
    child.stdin?.on('error', () => {})
    child.on('error', (error) => this.destroy(new Error(`ssh can't be run: ${error.message}`)))
    child.on('close', (code, signal) => {
      if (code === 0) this.push(null)
      else this.destroy(new Error(`ssh ended with ${signal ?? code}${this.#said === '' ? '' : `: ${this.#said.trim()}`}`))
    })
  }

  override _read(): void {
    this.#child.stdout?.resume()
  }
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#child.stdin?.write(chunk, () => done())
  }
  override _final(done: (error?: Error | null) => void): void {
    this.#child.stdin?.end(() => done())
  }
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#child.kill('SIGTERM')
    done(error)
  }

  // What HTTP asks of a socket besides.
  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this.#each('ref')
  }
  /** An idle connection keeps no program alive. */
  unref(): this {
    return this.#each('unref')
  }
  #each(what: 'ref' | 'unref'): this {
    this.#child[what]()
    for (const stream of this.#child.stdio) (stream as unknown as Record<string, (() => void) | undefined> | null)?.[what]?.call(stream)
    return this
  }
}

export const connectSsh = (address: EngineAddress & { kind: 'ssh' }): Duplex => new SshStream(address)
