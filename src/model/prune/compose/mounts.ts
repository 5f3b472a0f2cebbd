/** The short form of a service's `volumes`: `/data`, `data:/data:ro`, `/host:/data:rslave`. */
import type { MountDef } from './types.ts'

export type MountResult = { ok: true; mount: MountDef } | { ok: false; message: string; fix: string | null }

const refuse = (message: string, fix: string | null = null): MountResult => ({ ok: false, message, fix })
const propagations: ReadonlySet<string> = new Set(['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave'])

/** Refuses what Docker would guess at: a one-letter name reads as a drive of Windows, and an unknown option is dropped without a word. */
export const parseMount = (text: string): MountResult => {
  const parts = text.split(':')
  if (parts.includes('')) return refuse(`"${text}" has an empty part`, 'Write name:/path, or /path')
  if (parts.length > 3) return refuse(`"${text}" has too many colons`, 'Write it in the long form, with type, source and target')
  const [first = '', second, options] = parts
  if (second === undefined) return { ok: true, mount: { type: 'volume', target: first } }
  if (/^[A-Za-z]$/.test(first)) {
    return refuse(`Docker takes "${first}:" for a drive of Windows`, 'Give the volume a longer name, or write it in the long form')
  }
  const mount: MountDef = { type: /^[./~]/.test(first) ? 'bind' : 'volume', source: first, target: second }
  for (const option of options === undefined ? [] : options.split(',')) {
    if (option === 'ro' || option === 'rw') mount.readOnly = option === 'ro'
    else if (option === 'nocopy' && mount.type === 'volume') mount.nocopy = true
    else if (propagations.has(option) && mount.type === 'bind') mount.propagation = option
    else return refuse(`"${option}" is no option of this mount, and docker stack deploy would drop it`, 'Take it out')
  }
  return { ok: true, mount }
}
