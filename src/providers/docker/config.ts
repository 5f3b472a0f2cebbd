import { isAbsolute, normalize } from 'node:path/posix'
import { AddressError, type EngineAddress, parseAddress } from '../../lib/docker/address.ts'
import { ConfigError } from '../contract.ts'

export interface DockerConfig {
  /** As it is given; `address` is what it means. */
  host: string
  /** Paths of PEM files on the coordinator's machine, for `tcp://`; null: none. */
  tlsCa: string | null
  tlsCert: string | null
  tlsKey: string | null
  /** The image that boxes are made of. It must be on the Engine: nothing is pulled. */
  image: string
  /** Where a box's volume is mounted, and where commands begin. */
  folder: string
  /** `own`: a network with a way out; `internal`: one without. */
  network: 'own' | 'internal'
  /** `writable`, or `readonly`: all but the volume, `/tmp`, `/run` and `/var/tmp` is as the image has it. */
  root: 'writable' | 'readonly'
  /** How long a removal lets what runs in a box end by itself, between TERM and KILL. */
  graceSeconds: number
  /** Of a box, in MB of 2^20 bytes; null: no limit. */
  memoryMb: number | null
  /** Of a box; null: no limit. */
  cpus: number | null
}

const defaults = { image: 'debian:stable-slim', folder: '/work', network: 'own', root: 'writable', graceSeconds: 5 } as const
const defaultHost = 'unix:///var/run/docker.sock'
/** Less than half the deadline of a call. */
const maximumGraceSeconds = 10
const keys = [
  'host',
  'tlsCa',
  'tlsCert',
  'tlsKey',
  'image',
  'folder',
  'network',
  'root',
  'graceSeconds',
  'memoryMb',
  'cpus',
] as const satisfies (keyof DockerConfig)[]

type Given = Partial<Record<keyof DockerConfig, unknown>>

const textOr = <T extends string | null>(given: Given, key: keyof DockerConfig, byDefault: T): string | T => {
  const value = given[key] ?? byDefault
  if (value !== null && (typeof value !== 'string' || value === '' || value.includes('\0')))
    throw new ConfigError(`${key} must be a text that is not empty`)
  return value as string | T
}

const oneOf = <T extends string>(given: Given, key: keyof DockerConfig, values: readonly [T, ...T[]]): T => {
  const known = values.find((one) => one === (given[key] ?? values[0]))
  if (known === undefined) throw new ConfigError(`${key} must be one of ${values.join(', ')}`)
  return known
}

const numberOr = <T extends number | null>(given: Given, key: keyof DockerConfig, byDefault: T, from: number, to: number): number | T => {
  const value = given[key] ?? byDefault
  if (value !== null && (typeof value !== 'number' || !(value >= from && value <= to)))
    throw new ConfigError(`${key} must be a number from ${from} to ${to}`)
  return value as number | T
}

const folderOf = (given: Given): string => {
  const folder = textOr(given, 'folder', defaults.folder)
  const taken = /^\/(\.leasehold|proc|sys|dev|etc)?(\/|$)/.test(folder)
  if (!isAbsolute(folder) || normalize(folder) !== folder || folder.endsWith('/') || folder.includes(':') || taken)
    throw new ConfigError("folder must be the whole path of a folder in a box, such as /work, and none of the system's own")
  return folder
}

/** @throws ConfigError */
export const addressOf = ({ host, tlsCa, tlsCert, tlsKey }: Pick<DockerConfig, 'host' | 'tlsCa' | 'tlsCert' | 'tlsKey'>): EngineAddress => {
  const given = [tlsCa, tlsCert, tlsKey].filter((path) => path !== null).length
  if (given !== 0 && given !== 3) throw new ConfigError('tlsCa, tlsCert and tlsKey belong together: give all three')
  try {
    return parseAddress(host, tlsCa !== null && tlsCert !== null && tlsKey !== null ? { ca: tlsCa, cert: tlsCert, key: tlsKey } : null)
  } catch (error) {
    if (error instanceof AddressError) throw new ConfigError(`host: ${error.message} (tlsCa, tlsCert, tlsKey)`)
    throw error
  }
}

/** Throws `ConfigError`, naming the key. Missing and null give the default. */
export const parseDockerConfig = (config: unknown): DockerConfig => {
  if (config !== undefined && config !== null && (typeof config !== 'object' || Array.isArray(config)))
    throw new ConfigError('the configuration of a docker backend must be a mapping')
  const given = (config ?? {}) as Given
  const surplus = Object.keys(given).find((key) => !keys.some((known) => known === key))
  if (surplus !== undefined) throw new ConfigError(`unknown key '${surplus}'; a docker backend knows ${keys.join(', ')}`)
  const parsed: DockerConfig = {
    host: textOr(given, 'host', process.env['LEASEHOLD_DOCKER_HOST'] || defaultHost),
    tlsCa: textOr(given, 'tlsCa', null),
    tlsCert: textOr(given, 'tlsCert', null),
    tlsKey: textOr(given, 'tlsKey', null),
    image: textOr(given, 'image', defaults.image),
    folder: folderOf(given),
    network: oneOf(given, 'network', ['own', 'internal']),
    root: oneOf(given, 'root', ['writable', 'readonly']),
    graceSeconds: numberOr(given, 'graceSeconds', defaults.graceSeconds, 0, maximumGraceSeconds),
    memoryMb: numberOr(given, 'memoryMb', null, 6, 2 ** 24),
    cpus: numberOr(given, 'cpus', null, 0.01, 4096),
  }
  addressOf(parsed)
  return parsed
}
