/** Where the settings come from, and the coordinator that they lead to. */
import { readFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { resolveConfig, type SettingName, type Settings } from '../../model/config.ts'
import { readConfigFile } from '../config-file.ts'
import { CliError, exitCodes, messageOf, usageError } from './errors.ts'
import { createClient, type Client } from './http.ts'
import type { Io } from './io.ts'

/** The flags that every command takes, and those that are settings besides. */
export interface SettingFlags extends Partial<Record<SettingName, string | undefined>> {
  config?: string | undefined
}

export interface Coordinator {
  url: string
  origin: string
}
export interface Session {
  settings: Settings
  client: Client
}

/** Flags over environment over file over defaults; a problem ends the program with exit 2. */
export const loadSettings = async (flags: SettingFlags, io: Io): Promise<Settings> => {
  const { config, ...rest } = flags
  const file = await readConfigFile(config, io)
  const result = resolveConfig({
    flags: rest,
    environment: io.environment,
    file,
    home: io.home,
    absolute: (path, from) => {
      const expanded = path === '~' || path.startsWith('~/') ? join(io.home, path.slice(1)) : path
      return resolve(from === 'file' && file ? dirname(file.path) : io.folder, expanded)
    },
  })
  if (!result.ok) throw usageError(result.problem)
  return result.settings
}

export type AdminToken =
  | { kind: 'token'; token: string; file: string }
  | { kind: 'none'; file: string }
  | { kind: 'unreadable'; file: string; why: string }

/** The token that the first start of a coordinator left in its data folder. */
export const readAdminToken = (data: string): AdminToken => {
  const file = join(data, 'admin.token')
  try {
    const token = readFileSync(file, 'utf8').trim()
    return token === '' ? { kind: 'none', file } : { kind: 'token', token, file }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    return code === 'ENOENT' || code === 'ENOTDIR' ? { kind: 'none', file } : { kind: 'unreadable', file, why: messageOf(error) }
  }
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** The address that a coordinator of this machine with these settings listens on. */
const localUrl = (settings: Settings): string => {
  const host = settings.host.value
  const reachable = ['0.0.0.0', '::', 'localhost'].includes(host) ? '127.0.0.1' : host
  return `http://${bracketed(reachable)}:${settings.port.value}`
}

/** What the coordinator of this data folder said that it listens on, when the settings alone don't say it: its port may have come by a flag. */
const servedUrl = (data: string): Coordinator | null => {
  const file = join(data, 'serve.url')
  try {
    const url = readFileSync(file, 'utf8').trim()
    return URL.canParse(url) ? { url, origin: `file ${file}` } : null
  } catch {
    return null
  }
}

/** `--url`, LEASEHOLD_URL, `url:`, else an `admin.token` in the data folder; null: none is configured (leases R2). */
export const findCoordinator = (settings: Settings): Coordinator | null => {
  const { value, origin } = settings.url
  if (value === 'none') return null
  if (value !== null) return { url: value, origin }
  const admin = readAdminToken(settings.data.value)
  if (admin.kind === 'none') return null
  const served = settings.port.origin === 'default' ? servedUrl(settings.data.value) : null
  return served ?? { url: localUrl(settings), origin: `port ${settings.port.value}, ${settings.port.origin}` }
}

const isThisMachine = (url: string): boolean => {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  if (/^127\.|^::1$|^localhost$/.test(host) || host === hostname()) return true
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host))
}

/** LEASEHOLD_TOKEN, the key `token`, else `admin.token`, which is this machine's and so is sent to no other machine. */
export const findToken = (settings: Settings, coordinator: Coordinator): { token: string | null; origin: string; hint: string } => {
  if (settings.token.value !== null) {
    return { token: settings.token.value, origin: settings.token.origin, hint: `the token is from ${settings.token.origin}` }
  }
  const admin = readAdminToken(settings.data.value)
  if (!isThisMachine(coordinator.url)) return { token: null, origin: 'default', hint: 'no token is set; set LEASEHOLD_TOKEN' }
  if (admin.kind === 'token') return { token: admin.token, origin: `file ${admin.file}`, hint: `the token is from ${admin.file}` }
  const why = admin.kind === 'none' ? `there is no ${admin.file}` : admin.why
  return { token: null, origin: 'default', hint: `no token is set (LEASEHOLD_TOKEN), and ${why}` }
}

/** The coordinator's API, ready for use; exit 1 with what to do where none is configured. */
export const connect = (settings: Settings): Session => {
  const coordinator = findCoordinator(settings)
  if (coordinator === null) {
    const why =
      settings.url.value === 'none'
        ? `url is "none" (from ${settings.url.origin})`
        : `neither --url, LEASEHOLD_URL nor url: in leasehold.yml is set, and ${settings.data.value} holds no admin.token`
    throw new CliError(
      `no coordinator: ${why}`,
      exitCodes.failure,
      'Start one with "npm start" or "leasehold serve", or name one with --url',
    )
  }
  const { token, hint } = findToken(settings, coordinator)
  return { settings, client: createClient({ ...coordinator, token, tokenHint: hint }) }
}
