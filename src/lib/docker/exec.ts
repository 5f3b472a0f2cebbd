/** Running a program in a container, from its start to its exit status. */
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { type EngineClient, segment } from './client.ts'
import { EngineUnreachable } from './errors.ts'
import { frameReader } from './frames.ts'

export interface ExecSpec {
  command: readonly string[]
  /** The user that it runs as; default: the container's. */
  user?: string
  folder?: string
  /** Goes in the body of a request, and so into no list of processes; the Engine shows it to nobody. */
  env?: Readonly<Record<string, string>>
  tty?: boolean
  stdin?: boolean
}

export interface StartedExec {
  id: string
  stream: Duplex
}

/** @throws EngineError 404: there is no such container; 409: it does not run, or is paused */
export const startExec = async (client: EngineClient, container: string, spec: ExecSpec, signal: AbortSignal): Promise<StartedExec> => {
  const { body } = await client.call<{ Id: string }>({
    method: 'POST',
    path: `/containers/${segment(container)}/exec`,
    body: {
      AttachStdin: spec.stdin === true,
      AttachStdout: true,
      AttachStderr: true,
      Tty: spec.tty === true,
      Cmd: spec.command,
      Env: Object.entries(spec.env ?? {}).map(([name, value]) => `${name}=${value}`),
      ...(spec.user === undefined ? {} : { User: spec.user }),
      ...(spec.folder === undefined ? {} : { WorkingDir: spec.folder }),
    },
    signal,
  })
  const stream = await client.hijack({
    method: 'POST',
    path: `/exec/${segment(body.Id)}/start`,
    body: { Detach: false, Tty: spec.tty === true },
    signal,
  })
  return { id: body.Id, stream }
}

const settleMs = 10_000
const pollMs = 20

interface ExecState {
  Running: boolean
  ExitCode: number | null
  Pid: number
}

const stateOf = async (client: EngineClient, exec: string, signal: AbortSignal): Promise<ExecState> =>
  (await client.call<ExecState>({ method: 'GET', path: `/exec/${segment(exec)}/json`, signal })).body

/**
 * Resolves once the program runs, or has ended. An end of input that comes before that is lost on an Engine of 20.10, and the program waits for it for ever
 * (seen under load): so it is sent only then.
 */
export const execBegun = async (client: EngineClient, exec: string, signal: AbortSignal): Promise<void> => {
  for (;;) {
    const { Pid: pid, Running: running, ExitCode: code } = await stateOf(client, exec, signal)
    if (pid !== 0 || (!running && code !== null)) return
    await pause(pollMs, undefined, { signal })
  }
}

/** After its stream has ended. The Engine may take a moment to notice. @throws EngineUnreachable when the command still runs: the connection was lost */
export const exitStatus = async (client: EngineClient, exec: string, signal: AbortSignal): Promise<number> => {
  for (const end = performance.now() + settleMs; ; await pause(pollMs, undefined, { signal })) {
    const { Running: running, ExitCode: code } = await stateOf(client, exec, signal)
    if (!running && code !== null) return code
    if (performance.now() > end) throw new EngineUnreachable('its address', 'the connection to the command was lost while it runs')
  }
}

export interface Ran {
  status: number
  stdout: string
  stderr: string
}

const mostText = 1_000_000

/** A short program to its end, with all that it says (at most 1 MB of it). @throws as `startExec` */
export const runExec = async (
  client: EngineClient,
  container: string,
  spec: ExecSpec & { input?: string },
  signal: AbortSignal,
): Promise<Ran> => {
  const { id, stream } = await startExec(client, container, { ...spec, tty: false, stdin: spec.input !== undefined }, signal)
  const said = { stdout: '', stderr: '' }
  const take = frameReader((name, data) => {
    if (said[name].length < mostText) said[name] += data.toString()
  })
  const stop = (): void => void stream.destroy(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (spec.input !== undefined) {
      stream.write(spec.input)
      execBegun(client, id, signal).then(
        () => stream.end(),
        (error: unknown) => stream.destroy(error instanceof Error ? error : new Error(String(error))),
      )
    }
    for await (const chunk of stream as AsyncIterable<Buffer>) take(chunk)
  } finally {
    signal.removeEventListener('abort', stop)
    stream.destroy()
  }
  return { status: await exitStatus(client, id, signal), ...said }
}
