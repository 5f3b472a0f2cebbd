/**
 * Settings and where each came from. Pure: flags, environment and the parsed file come in, values with their origin go out.
 * Precedence is flag, environment, file, default. An empty environment variable counts as unset.
 */
import { parseDuration } from '../lib/duration.ts'
import { defaultLimits } from './limits.ts'
import { switchOf } from './sweep-settings.ts'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

export interface Setting<T> {
  value: T
  /** `flag --port`, `environment LEASEHOLD_PORT`, `file /path:line` or `default`. */
  origin: string
}

export interface Settings {
  /** Folder of the database, `admin.token`, boxes and claims. */
  data: Setting<string>
  /** Address that `serve` listens on. */
  host: Setting<string>
  port: Setting<number>
  /** Where the coordinator is; `none`: there is none (leases R2); null: not said. */
  url: Setting<string | null>
  token: Setting<string | null>
  /** null: SQLite in the data folder. */
  databaseUrl: Setting<string | null>
  logLevel: Setting<LogLevel>
  /** How long events are kept, in seconds; 0 or less: they are logged and not stored (orphans R86). */
  eventsTtlSeconds: Setting<number>
  /** How long what has ended and is proved gone keeps its own rows, in days; what is said of it for ever stays. */
  retainLeasesDays: Setting<number>
  /** And findings that are resolved. */
  retainFindingsDays: Setting<number>
  /** And certificates of sweeps that no removal stands on. */
  retainSweepsDays: Setting<number>
  /** How many removals a sweep may begin without a person, at most. */
  limitPerSweep: Setting<number>
  /** And of the groups of ours in the account, in per cent. */
  limitSharePercent: Setting<number>
  /** And in 24 h in one account. */
  limitPerDay: Setting<number>
  /** How many live leases a project may have, and each owner in it; null: any number. */
  maxLeasesPerProject: Setting<number | null>
  maxLeasesPerOwner: Setting<number | null>
  /** How many creates may be under way at once. */
  maxCreatesPerProject: Setting<number | null>
  maxCreatesPerOwner: Setting<number | null>
  /** Bars approving one's own plan. */
  fourEyes: Setting<boolean>
  /** Project of new leases where none is named; null: the one of the token. */
  project: Setting<string | null>
}
export type SettingName = keyof Settings

export interface FileEntry {
  key: string
  value: unknown
  line: number
}
export interface ConfigSources {
  /** By setting name; absent or undefined: not given. */
  flags: Partial<Record<SettingName, string | undefined>>
  environment: Readonly<Record<string, string | undefined>>
  file: { path: string; entries: readonly FileEntry[] } | null
  /** The user's home folder. */
  home: string
  /** Makes a path absolute against the folder that its source is relative to. */
  absolute: (path: string, from: 'flag' | 'environment' | 'file') => string
}

export type ConfigResult = { ok: true; settings: Settings } | { ok: false; problem: string }

type Read<T> = { ok: true; value: T } | { ok: false; problem: string }
interface Definition<T> {
  environment: string
  /** null: not on the command line; a secret there would show in the process table, and a rule of the house belongs in its file. */
  flag: string | null
  secret?: 'whole' | 'password'
  isPath?: true
  read: (text: string) => Read<T>
  fallback: (sources: ConfigSources) => T
}

const good = <T>(value: T): Read<T> => ({ ok: true, value })
const bad = (problem: string): Read<never> => ({ ok: false, problem })
const text =
  (pattern: RegExp, expected: string) =>
  (value: string): Read<string> =>
    pattern.test(value) ? good(value) : bad(expected)

const readPort = (value: string): Read<number> => {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN
  const fromKubernetes = value.startsWith('tcp://')
    ? ' (Kubernetes sets it for a service called "leasehold": set it yourself, or enableServiceLinks: false)'
    : ''
  return port <= 65_535 ? good(port) : bad(`must be a port number from 0 (any free one) to 65535${fromKubernetes}`)
}

const readUrl = (value: string): Read<string> => {
  if (value === 'none') return good(value)
  const url = URL.canParse(value) ? new URL(value) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return bad('must be an http:// or https:// address, or none')
  if (url.username !== '' || url.password !== '') return bad('must not hold a user or password: the token goes in LEASEHOLD_TOKEN')
  if (url.search !== '' || url.hash !== '') return bad('must not hold a query or fragment')
  return good(`${url.origin}${url.pathname}`.replace(/\/+$/, ''))
}

const readDatabaseUrl = (value: string): Read<string> =>
  URL.canParse(value) && ['postgres:', 'postgresql:'].includes(new URL(value).protocol)
    ? good(value)
    : bad('must be a postgres:// or postgresql:// address')

const readLogLevel = (value: string): Read<LogLevel> => {
  const level = logLevels.find((one) => one === value)
  return level ? good(level) : bad(`must be one of ${logLevels.join(', ')}`)
}

/** decisions: 30 days. The events of a deletion and audit records are kept for ever, at any setting. */
export const defaultEventsTtlSeconds = 30 * 86_400

const readSeconds = (value: string): Read<number> => {
  const read = parseDuration(value, { bare: 'seconds' })
  return read.ok ? good(read.milliseconds / 1000) : bad(read.problem)
}

const readWhole =
  (least: number, most: number) =>
  (value: string): Read<number> =>
    /^\d{1,9}$/.test(value) && Number(value) >= least && Number(value) <= most
      ? good(Number(value))
      : bad(`must be a whole number from ${least} to ${most}`)

const readSwitch = (value: string): Read<boolean> => {
  const on = switchOf(value)
  return on === null ? bad('must be on or off') : good(on)
}

const cap = (environment: string): Definition<number | null> => ({
  environment,
  flag: null,
  read: readWhole(1, 1_000_000),
  fallback: () => null,
})

export const defaultRetainDays = 90
const days = (environment: string): Definition<number> => ({
  environment,
  flag: null,
  read: readWhole(1, 36_500),
  fallback: () => defaultRetainDays,
})

const definitions: { [Name in SettingName]: Definition<Settings[Name]['value']> } = {
  data: {
    environment: 'LEASEHOLD_DATA',
    flag: '--data',
    isPath: true,
    read: text(/^[^\0]+$/, 'must be a folder'),
    fallback: ({ environment, home }) => {
      const state = environment['XDG_STATE_HOME']
      // The XDG specification: a relative path there is to be ignored.
      return `${state?.startsWith('/') ? state.replace(/\/+$/, '') : `${home}/.local/state`}/leasehold`
    },
  },
  host: {
    environment: 'LEASEHOLD_HOST',
    flag: '--host',
    read: text(/^[0-9A-Za-z.:_-]+$/, 'must be an address or host name'),
    fallback: () => '127.0.0.1',
  },
  port: { environment: 'LEASEHOLD_PORT', flag: '--port', read: readPort, fallback: () => 7400 },
  url: { environment: 'LEASEHOLD_URL', flag: '--url', read: readUrl, fallback: () => null },
  token: {
    environment: 'LEASEHOLD_TOKEN',
    flag: null,
    secret: 'whole',
    read: text(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces'),
    fallback: () => null,
  },
  databaseUrl: { environment: 'LEASEHOLD_DATABASE_URL', flag: null, secret: 'password', read: readDatabaseUrl, fallback: () => null },
  logLevel: { environment: 'LEASEHOLD_LOG_LEVEL', flag: '--log-level', read: readLogLevel, fallback: () => 'info' },
  eventsTtlSeconds: { environment: 'LEASEHOLD_EVENTS_TTL_SECONDS', flag: null, read: readSeconds, fallback: () => defaultEventsTtlSeconds },
  retainLeasesDays: days('LEASEHOLD_RETAIN_LEASES_DAYS'),
  retainFindingsDays: days('LEASEHOLD_RETAIN_FINDINGS_DAYS'),
  retainSweepsDays: days('LEASEHOLD_RETAIN_SWEEPS_DAYS'),
  limitPerSweep: {
    environment: 'LEASEHOLD_LIMIT_PER_SWEEP',
    flag: null,
    read: readWhole(1, 1_000_000),
    fallback: () => defaultLimits.perSweep,
  },
  limitSharePercent: {
    environment: 'LEASEHOLD_LIMIT_SHARE_PERCENT',
    flag: null,
    read: readWhole(0, 100),
    fallback: () => defaultLimits.sharePercent,
  },
  limitPerDay: { environment: 'LEASEHOLD_LIMIT_PER_DAY', flag: null, read: readWhole(0, 1_000_000), fallback: () => defaultLimits.perDay },
  maxLeasesPerProject: cap('LEASEHOLD_MAX_LEASES_PER_PROJECT'),
  maxLeasesPerOwner: cap('LEASEHOLD_MAX_LEASES_PER_OWNER'),
  maxCreatesPerProject: cap('LEASEHOLD_MAX_CREATES_PER_PROJECT'),
  maxCreatesPerOwner: cap('LEASEHOLD_MAX_CREATES_PER_OWNER'),
  fourEyes: { environment: 'LEASEHOLD_FOUR_EYES', flag: null, read: readSwitch, fallback: () => false },
  project: {
    environment: 'LEASEHOLD_PROJECT',
    flag: '--project',
    read: text(/^[a-z0-9][a-z0-9_-]*$/, 'must be a project name: lower-case letters, digits, - and _'),
    fallback: () => null,
  },
}

export const settingNames = Object.keys(definitions) as SettingName[]
export const environmentOf = (name: SettingName): string => definitions[name].environment

interface Given {
  text: string
  from: 'flag' | 'environment' | 'file'
  origin: string
}

const givenFor = (name: SettingName, sources: ConfigSources, entries: Map<string, FileEntry>): Given | null => {
  const definition = definitions[name]
  const flag = sources.flags[name]
  if (flag !== undefined) return { text: flag, from: 'flag', origin: `flag ${definition.flag ?? `--${name}`}` }
  const variable = sources.environment[definition.environment]
  if (variable !== undefined && variable !== '')
    return { text: variable, from: 'environment', origin: `environment ${definition.environment}` }
  const entry = entries.get(name)
  if (!entry || !sources.file) return null
  return { text: String(entry.value), from: 'file', origin: `file ${sources.file.path}:${entry.line}` }
}

/** Every setting with its origin, or the first problem, which names the place and never shows a secret. */
export const resolveConfig = (sources: ConfigSources): ConfigResult => {
  const entries = new Map<string, FileEntry>()
  for (const entry of sources.file?.entries ?? []) {
    const place = `${sources.file?.path}:${entry.line}`
    if (!Object.hasOwn(definitions, entry.key)) {
      return { ok: false, problem: `${place}: unknown key "${entry.key}"; known are ${settingNames.join(', ')}` }
    }
    // `port:` with nothing behind it is the default, as everywhere.
    if (entry.value === null) continue
    if (!['string', 'number', 'boolean'].includes(typeof entry.value))
      return { ok: false, problem: `${place}: ${entry.key} must be one plain value` }
    entries.set(entry.key, entry)
  }
  const settings: Partial<Record<SettingName, Setting<unknown>>> = {}
  // What a stronger source hides is checked too: a mistake in the file must not wait for the day the flag is left out.
  for (const entry of entries.values()) {
    const read = definitions[entry.key as SettingName].read(String(entry.value))
    if (!read.ok) return { ok: false, problem: `${sources.file?.path}:${entry.line}: ${entry.key} ${read.problem}` }
  }
  for (const name of settingNames) {
    const definition = definitions[name]
    const given = givenFor(name, sources, entries)
    if (given === null) {
      settings[name] = { value: definition.fallback(sources), origin: 'default' }
      continue
    }
    const read = definition.read(given.text)
    if (!read.ok) {
      const place = given.from === 'file' ? given.origin.slice('file '.length) : given.origin
      // An address may hold a password in its user part or its query.
      const shown = definition.secret || /[@?]/.test(given.text) ? '' : `, not ${JSON.stringify(given.text)}`
      return { ok: false, problem: `${place}: ${name} ${read.problem}${shown}` }
    }
    const value = definition.isPath ? sources.absolute(String(read.value), given.from) : read.value
    settings[name] = { value, origin: given.origin }
  }
  return { ok: true, settings: settings as unknown as Settings }
}

/** The value as it may be shown: a token as `***`, a database address without its password. */
export const shownValue = (name: SettingName, value: string | number | boolean | null): string | number | boolean | null => {
  if (value === null) return null
  const secret = definitions[name].secret
  if (secret === 'whole') return '***'
  if (secret === 'password') return withoutPassword(String(value))
  return value
}

const withoutPassword = (address: string): string => {
  if (!URL.canParse(address)) return '***'
  const url = new URL(address)
  if (url.password !== '') url.password = '***'
  for (const key of Array.from(url.searchParams.keys())) if (/pass/i.test(key)) url.searchParams.set(key, '***')
  return url.toString()
}
