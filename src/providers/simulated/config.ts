import { isAbsolute, join, resolve } from 'node:path'
import { ConfigError } from '../contract.ts'
import { defaultLocations } from './words.ts'

export interface SimulatedConfig {
  /** The account's file, absolute. */
  path: string
  locations: string[]
  /** What a create makes: a machine alone, or with a disk, a nic and an address. */
  group: 'machine' | 'full'
  /** What becomes of disk, nic and address at the machine's end. `delete` makes the group report-only. */
  cascade: 'keep' | 'delete'
  /** Resources in a page of a listing. */
  pageSize: number
  /** Until a listing shows a new resource. */
  visibilitySeconds: number
  createDeadlineSeconds: number
  /** Until a new machine runs. */
  startSeconds: number
  /** From an accepted deletion to its end; 0: at once. */
  deleteSeconds: number
  /** How long what has ended is still listed. */
  terminatedSeconds: number
  /** What a machine does at its deadline. */
  atDeadline: 'terminate' | 'stop'
}

const longestSeconds = 86_400

const oneOf = <T extends string>(name: string, value: unknown, values: readonly [T, ...T[]]): T => {
  const known = values.find((one) => one === (value ?? values[0]))
  if (known === undefined) throw new ConfigError(`${name} must be one of ${values.join(', ')}`)
  return known
}

const seconds = (name: string, value: unknown, byDefault: number, minimum = 0): number => {
  const given = value ?? byDefault
  if (typeof given !== 'number' || !(given >= minimum && given <= longestSeconds))
    throw new ConfigError(`${name} must be a number of seconds from ${minimum} to ${longestSeconds}`)
  return given
}

const locationsOf = (value: unknown): string[] => {
  const given = value ?? [...defaultLocations]
  const valid = (one: unknown): one is string => typeof one === 'string' && /^[a-z0-9][a-z0-9-]{0,39}$/.test(one)
  if (!Array.isArray(given) || given.length === 0 || !given.every(valid) || new Set(given).size !== given.length)
    throw new ConfigError('locations must be a list of different names of lower-case letters, digits and -, at most 40 characters each')
  return [...given]
}

/** The account's file where a backend names none. */
export const defaultPath = (dataFolder: string): string => resolve(join(dataFolder, 'simulated.db'))

const pathOf = (value: unknown, dataFolder: string): string => {
  if (value === undefined || value === null) return defaultPath(dataFolder)
  if (typeof value !== 'string' || value === '' || value.includes('\0')) throw new ConfigError('path must be the name of a file')
  return isAbsolute(value) ? value : resolve(dataFolder, value)
}

/**
 * As it is kept: a file in the data folder by its name there, so that it goes along when the folder is moved or copied.
 * @throws ConfigError
 */
export const storedSimulatedConfig = (config: unknown, dataFolder: string): SimulatedConfig => {
  const parsed = parseSimulatedConfig(config, dataFolder)
  const { path } = (config ?? {}) as { path?: string | null }
  return { ...parsed, path: path ?? 'simulated.db' }
}

/** Throws `ConfigError`, naming the key. Missing and null give the default; a relative path is one in the data folder. */
export const parseSimulatedConfig = (config: unknown, dataFolder: string): SimulatedConfig => {
  if (config !== undefined && config !== null && (typeof config !== 'object' || Array.isArray(config)))
    throw new ConfigError('the configuration of a simulated backend must be a mapping')
  const given = (config ?? {}) as Record<string, unknown>
  const size = given['pageSize'] ?? 100
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 1 || size > 10_000)
    throw new ConfigError('pageSize must be a whole number from 1 to 10000')
  const parsed: SimulatedConfig = {
    path: pathOf(given['path'], dataFolder),
    locations: locationsOf(given['locations']),
    group: oneOf('group', given['group'], ['full', 'machine']),
    cascade: oneOf('cascade', given['cascade'], ['keep', 'delete']),
    pageSize: size,
    visibilitySeconds: seconds('visibilitySeconds', given['visibilitySeconds'], 0),
    createDeadlineSeconds: seconds('createDeadlineSeconds', given['createDeadlineSeconds'], 60, 1),
    startSeconds: seconds('startSeconds', given['startSeconds'], 0),
    deleteSeconds: seconds('deleteSeconds', given['deleteSeconds'], 0),
    terminatedSeconds: seconds('terminatedSeconds', given['terminatedSeconds'], 0),
    atDeadline: oneOf('atDeadline', given['atDeadline'], ['terminate', 'stop']),
  }
  const surplus = Object.keys(given).find((key) => !(key in parsed))
  if (surplus !== undefined) throw new ConfigError(`unknown key '${surplus}'; a simulated backend knows ${Object.keys(parsed).join(', ')}`)
  return parsed
}
