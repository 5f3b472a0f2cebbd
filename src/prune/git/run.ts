/**
 * Runs git as a stranger would: nothing of this machine's or user's configuration, no hooks, no helpers, no prompts, one protocol, bounds on time and
 * size. The repositories are other people's, and so is whatever they make git say.
 */
import { spawn } from 'node:child_process'
import { redact } from '../../lib/redact.ts'

export interface GitLimits {
  /** Of one call. */
  timeoutMs: number
  /** Of one file that git writes: what is fetched comes as one. */
  mostBytes: number
}

/** Goes to git by its environment: neither in a command line, which every process can read, nor in a file. */
export interface GitCredential {
  username: string
  password: string
}

export interface GitCall {
  /** The bare repository. */
  folder: string
  args: readonly string[]
  /** The only way out that is allowed; null: none. */
  protocol: 'https' | 'file' | null
  limits: GitLimits
  /** With the address that it is for: it is sent nowhere else. */
  credential?: { url: string; value: GitCredential }
  /** Of this process; of it only PATH, proxies and certificates are passed on. */
  environment: Readonly<Record<string, string | undefined>>
  signal?: AbortSignal
}

export type GitOutcome = { ok: true; stdout: Buffer } | { ok: false; message: string }

const passedOn = ['PATH', 'https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'GIT_SSL_CAINFO']
const mostOutput = 32 * 1024 * 1024
const mostErrors = 16 * 1024

const settings = (protocol: GitCall['protocol']): string[] =>
  [
    'core.hooksPath=/dev/null',
    'core.attributesFile=/dev/null',
    'core.fsmonitor=false',
    'core.symlinks=false',
    'core.alternateRefsCommand=',
    'credential.helper=',
    'protocol.allow=never',
    ...(protocol === null ? [] : [`protocol.${protocol}.allow=always`]),
    'http.followRedirects=false',
    'http.lowSpeedLimit=1000',
    'http.lowSpeedTime=30',
    'transfer.fsckObjects=true',
    'fetch.unpackLimit=1',
    'fetch.recurseSubmodules=false',
    'submodule.recurse=false',
    'gc.auto=0',
    'maintenance.auto=false',
    'pack.threads=1',
  ].flatMap((one) => ['-c', one])

const environmentOf = ({ environment, folder, protocol, credential }: GitCall): Record<string, string> => ({
  ...Object.fromEntries(passedOn.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]]))),
  HOME: folder,
  XDG_CONFIG_HOME: folder,
  LC_ALL: 'C',
  GIT_DIR: folder,
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '/bin/false',
  SSH_ASKPASS: '/bin/false',
  GIT_SSH_COMMAND: '/bin/false',
  GIT_PROTOCOL_FROM_USER: '0',
  GIT_ALLOW_PROTOCOL: protocol ?? '',
  ...(credential && {
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: `http.${credential.url}.extraHeader`,
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${Buffer.from(`${credential.value.username}:${credential.value.password}`).toString('base64')}`,
  }),
})

/** Never throws. Its message is one redacted line that may be shown. */
export const runGit = (call: GitCall): Promise<GitOutcome> =>
  new Promise((resolve) => {
    const { limits, args, credential } = call
    const blocks = String(Math.ceil(limits.mostBytes / 512))
    // The limit on a file's size is the shell's to set, and git's children inherit it; without the signal, git says what it met.
    const child = spawn(
      '/bin/sh',
      ['-c', 'trap "" XFSZ; ulimit -f "$1" && shift && exec git "$@"', 'sh', blocks, ...settings(call.protocol), ...args],
      {
        cwd: '/',
        env: environmentOf(call),
        stdio: ['ignore', 'pipe', 'pipe'],
        // A group of its own: what git starts for https ends with it.
        detached: true,
      },
    )
    const output: Buffer[] = []
    let size = 0
    let errors = ''
    let ended: string | null = null
    const end = (why: string): void => {
      ended ??= why
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // It has ended by itself meanwhile.
      }
    }
    const timer = setTimeout(() => end(`git did not end within ${limits.timeoutMs / 1000} s`), limits.timeoutMs)
    const stop = (): void => end('stopped')
    call.signal?.addEventListener('abort', stop, { once: true })
    if (call.signal?.aborted) stop()
    child.stdout.on('data', (part: Buffer) => {
      size += part.length
      if (size > mostOutput) end('git said too much')
      else output.push(part)
    })
    child.stderr.setEncoding('utf8').on('data', (part: string) => void (errors = `${errors}${part}`.slice(0, mostErrors)))
    const finish = (outcome: GitOutcome): void => {
      clearTimeout(timer)
      call.signal?.removeEventListener('abort', stop)
      resolve(outcome)
    }
    child.on('error', (error) => finish({ ok: false, message: `git can't be started: ${error.message}` }))
    child.on('close', (code) => {
      if (ended !== null) finish({ ok: false, message: ended })
      else if (code === 0) finish({ ok: true, stdout: Buffer.concat(output) })
      else finish({ ok: false, message: explain(errors, code, limits, credential) })
    })
  })

const explain = (errors: string, code: number | null, limits: GitLimits, credential: GitCall['credential']): string => {
  if (/File too large/.test(errors)) return `it is larger than ${Math.round(limits.mostBytes / 1024 / 1024)} MiB`
  if (/could not read Username|Authentication failed|401/.test(errors)) {
    return credential ? 'the credential for it is not accepted' : 'it needs a credential, or is not there'
  }
  if (/transport '\w*' not allowed/.test(errors)) return 'it is not to be reached over an allowed protocol'
  const line = errors.split('\n').find((one) => /^(?:fatal|error):/.test(one)) ?? errors.split('\n').find((one) => one.trim() !== '')
  const plain = redact((line ?? `git ended with ${code ?? 'a signal'}`).replace(/[\p{Cc}\s]+/gu, ' ').trim())
  return plain.length > 300 ? `${plain.slice(0, 300)}…` : plain
}
