/** Where a Docker Engine is, as `DOCKER_HOST` writes it: `unix:///path`, `tcp://host:port` with TLS, or `ssh://user@host`. */

/** Paths of PEM files, on the machine that connects. They are read anew for each connection, so that a renewed one counts at once. */
export interface TlsFiles {
  ca: string
  cert: string
  key: string
}

export type EngineAddress =
  | { kind: 'unix'; path: string }
  | { kind: 'tcp'; host: string; port: number; tls: TlsFiles }
  /** `socket`: the Engine's address over there; null: what the `docker` command there takes by itself. */
  | { kind: 'ssh'; user: string | null; host: string; port: number | null; socket: string | null }

export class AddressError extends Error {}

const asUrl = (host: string): URL => {
  try {
    return new URL(host)
  } catch {
    throw new AddressError(`'${withoutPassword(host)}' is no address of an Engine: give unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST`)
  }
}

const withoutPassword = (host: string): string => host.replace(/:[^:@/]*@/, ':***@')

/** A name that ssh could take for an option of its own is none. */
const plain = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/

const sshAddress = (url: URL): EngineAddress => {
  if (url.password !== '') throw new AddressError('an ssh:// address holds no password: use a key, or an agent')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!plain.test(host) && !/^[0-9a-f:]+$/i.test(host)) throw new AddressError(`'${host}' is no name of a host`)
  if (url.username !== '' && !plain.test(url.username)) throw new AddressError(`'${url.username}' is no name of a user`)
  const path = decodeURIComponent(url.pathname)
  return {
    kind: 'ssh',
    user: url.username === '' ? null : url.username,
    host,
    port: url.port === '' ? null : Number(url.port),
    socket: path === '' || path === '/' ? null : `unix://${path}`,
  }
}

/**
 * @param tls needed for tcp, and for nothing else
 * @throws AddressError, which names what is wrong and shows no password
 */
export const parseAddress = (host: string, tls: TlsFiles | null): EngineAddress => {
  const unix = /^unix:\/\/(\/.+)$/.exec(host)?.[1]
  const url = unix === undefined ? asUrl(host) : null
  if (url?.protocol !== 'tcp:' && tls !== null) throw new AddressError('TLS files are for an address with tcp:// only')
  if (unix !== undefined) return { kind: 'unix', path: unix }
  if (url?.protocol === 'ssh:' && url.hostname !== '') return sshAddress(url)
  if (url?.protocol !== 'tcp:' || url.hostname === '' || url.username !== '' || !['', '/'].includes(url.pathname))
    throw new AddressError(`'${withoutPassword(host)}' is no address of an Engine: give unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST`)
  // Whoever reaches an Engine is root on its machine.
  if (tls === null) throw new AddressError('an Engine over tcp:// without TLS obeys everybody: give the files of CA, certificate and key')
  return { kind: 'tcp', host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? 2376 : Number(url.port), tls }
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** For people. */
export const addressText = (address: EngineAddress): string => {
  if (address.kind === 'unix') return `unix://${address.path}`
  if (address.kind === 'tcp') return `tcp://${bracketed(address.host)}:${address.port}`
  const { user, host, port, socket } = address
  return `ssh://${user === null ? '' : `${user}@`}${bracketed(host)}${port === null ? '' : `:${port}`}${socket?.replace('unix://', '') ?? ''}`
}
