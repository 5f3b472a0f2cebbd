/** The short form of `ports`: `80`, `8080:80`, `8000-8002:80-82/udp`. */
import type { Port } from './types.ts'

export type PortsResult = { ok: true; ports: Port[] } | { ok: false; message: string; fix: string | null }

const refuse = (message: string, fix: string | null = null): PortsResult => ({ ok: false, message, fix })

/** One entry may be several ports. An address of the host is refused: a Swarm listens on all of them. */
export const parsePorts = (text: string): PortsResult => {
  const [spec = '', protocol = 'tcp', more] = text.split('/')
  if (more !== undefined || !/^(?:tcp|udp|sctp)$/i.test(protocol))
    return refuse(`"${text}" has an unknown protocol`, 'Use tcp, udp or sctp')
  const parts = spec.startsWith('[')
    ? [spec.slice(0, spec.indexOf(']') + 1), ...spec.slice(spec.indexOf(']') + 2).split(':')]
    : spec.split(':')
  if (parts.length > 2) {
    return refuse(`"${text}" names an address of the host, and a Swarm publishes on every address`, 'Leave the address out')
  }
  const target = range(parts.at(-1) ?? '')
  const host = parts.length === 2 ? (parts[0] ?? '') : ''
  const published = host === '' ? null : range(host)
  if (!target || (host !== '' && !published)) return refuse(`"${text}" is no port`, 'Write 8080:80, or 8000-8002:80-82')
  const many = target.last - target.first + 1
  if (published && many > 1 && published.last - published.first + 1 !== many) return refuse(`"${text}" has ranges of different length`)
  const ports: Port[] = []
  const add = (one: number, at: number): void =>
    void ports.push({ target: one, published: at, protocol: protocol.toLowerCase(), mode: 'ingress' })
  if (published && many === 1) for (let at = published.first; at <= published.last; at += 1) add(target.first, at)
  else for (let step = 0; step < many; step += 1) add(target.first + step, published ? published.first + step : 0)
  return { ok: true, ports }
}

const range = (text: string): { first: number; last: number } | null => {
  const found = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text)
  if (!found) return null
  const first = Number(found[1])
  const last = Number(found[2] ?? found[1])
  return first <= last && last <= 65_535 && first > 0 ? { first, last } : null
}
