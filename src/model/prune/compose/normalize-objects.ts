/** Networks, volumes, configs and secrets of one Compose file, with every short form written out. */
import { isMap, type JsonMap } from '../document.ts'
import { compact, textMap } from './shapes.ts'
import type { FileObjectDef, NetworkDef, Problem, VolumeDef } from './types.ts'

const text = (value: JsonMap, key: string): string | undefined => {
  const found = value[key]
  return typeof found === 'string' ? found : undefined
}
const flag = (value: JsonMap, key: string): boolean | undefined => {
  const found = value[key]
  return typeof found === 'boolean' ? found : undefined
}
const map = (value: JsonMap, key: string): Record<string, string> | undefined => {
  const found = value[key]
  return found === undefined || found === null ? undefined : textMap(found)
}

interface Named {
  external: boolean
  name: string | undefined
}

/** `external: true` takes the key as name; `external: {name: …}` is the old way to say `name`. */
const externalOf = (value: JsonMap, path: string[], key: string, others: readonly string[], problems: Problem[]): Named => {
  const given = value['external']
  const name = text(value, 'name')
  if (!isMap(given) && given !== true) return { external: false, name }
  const old = isMap(given) ? text(given, 'name') : undefined
  if (old !== undefined && name !== undefined) {
    problems.push({
      path: [...path, 'external'],
      message: 'it has two names: external.name and name',
      fix: 'Use name and external: true',
      of: 'key',
    })
  }
  for (const other of others) {
    if (!(other in value)) continue
    const message = `${other}: what is external is not made here, so this has no effect`
    problems.push({ path: [...path, other], message, fix: 'Take it out, or take external out', of: 'key' })
  }
  return { external: true, name: old ?? name ?? key }
}

export const normalizeNetwork = (value: JsonMap, path: string[], key: string, problems: Problem[]): NetworkDef => {
  const others = ['driver', 'driver_opts', 'ipam', 'internal', 'attachable', 'labels']
  const ipam = isMap(value['ipam']) ? value['ipam'] : undefined
  const config = ipam?.['config']
  const subnets = (Array.isArray(config) ? config : []).flatMap((one) => (isMap(one) ? (text(one, 'subnet') ?? []) : []))
  return compact<NetworkDef>({
    ...externalOf(value, path, key, others, problems),
    driver: text(value, 'driver'),
    driver_opts: map(value, 'driver_opts'),
    ipam: ipam && compact<NonNullable<NetworkDef['ipam']>>({ driver: text(ipam, 'driver'), subnets }),
    internal: flag(value, 'internal'),
    attachable: flag(value, 'attachable'),
    labels: map(value, 'labels'),
  })
}

export const normalizeVolume = (value: JsonMap, path: string[], key: string, problems: Problem[]): VolumeDef =>
  compact<VolumeDef>({
    ...externalOf(value, path, key, ['driver', 'driver_opts', 'labels'], problems),
    driver: text(value, 'driver'),
    driver_opts: map(value, 'driver_opts'),
    labels: map(value, 'labels'),
  })

export const normalizeFileObject = (value: JsonMap, path: string[], key: string, problems: Problem[]): FileObjectDef => {
  const named = externalOf(value, path, key, ['file', 'driver', 'driver_opts', 'template_driver', 'labels'], problems)
  const file = text(value, 'file')
  const driver = text(value, 'driver')
  if (!named.external && file === undefined && driver === undefined) {
    problems.push({ path, message: 'it has no content', fix: 'Name a file, or write external: true', of: 'key' })
  }
  if (!named.external && file !== undefined && driver !== undefined) {
    problems.push({ path: [...path, 'driver'], message: 'it has a file and a driver', fix: 'Use one of them', of: 'key' })
  }
  return compact<FileObjectDef>({
    ...named,
    file,
    driver,
    driver_opts: map(value, 'driver_opts'),
    template_driver: text(value, 'template_driver'),
    labels: map(value, 'labels'),
  })
}
