/**
 * Every variable of the environment that means something here, and those that look as if they did: a misspelt one is ignored, and nobody would know. One that
 * looks as if it bounded what is deleted stops the start.
 */
import { nearest } from '../lib/nearest.ts'
import { environmentOf, settingNames } from './config.ts'
import { rateVariables } from './rate-settings.ts'
import { sweepVariables, type Environment } from './sweep-settings.ts'

/** Read by other parts than the settings: the provider `process`, `bin/leasehold`, and what is set inside a box. */
const others = [
  'LEASEHOLD_DOCKER_HOST',
  'LEASEHOLD_PROCESS_MODE',
  'LEASEHOLD_NODE',
  'LEASEHOLD_LEASE_TOKEN',
  'LEASEHOLD_LEASE_ID',
  'LEASEHOLD_REF',
  'LEASEHOLD_INSTALLATION',
  'LEASEHOLD_ATTEMPT',
] as const

/** Of our own test runs. */
const house = /^LEASEHOLD_(TEST_|BENCH_|CI_RUN$|SEED$|KILL_ROUNDS$)/

export interface UnknownVariable {
  name: string
  /** null: nothing is near. */
  nearest: string | null
  /** It looks as if it decided what is deleted, or when. */
  safety: boolean
}

const safetySettings = ['limitPerSweep', 'limitSharePercent', 'limitPerDay', 'fourEyes'] as const
const looksSafe = /ORPHAN|SWEEP|CLEAN_?UP|GRACE|LIMIT|FREEZE|FOUR_?EYES/
/** Of a provider that this program may not have: it concerns nothing here, unless the provider's name is what is misspelt. */
const ofProvider = /^LEASEHOLD_([A-Z0-9_]+)_ORPHAN_SWEEP_(?:ENABLED|DELETE|INTERVAL_SECONDS|GRACE_SECONDS)$/

/** What Kubernetes puts into every container of a namespace for each of its services: one called `leasehold-sweeper` is no misspelt setting. */
const ofService = /_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?$/

const isSafety = (name: string, near: string | null, safe: ReadonlySet<string>, providers: readonly string[]): boolean => {
  if (ofService.test(name)) return false
  const [, provider] = ofProvider.exec(name) ?? []
  const mine = providers.map((one) => one.toUpperCase().replace(/[^A-Z0-9]/g, '_'))
  if (provider !== undefined && nearest(provider, mine) === null) return false
  return looksSafe.test(name) || (near !== null && safe.has(near))
}

/** Set, not empty, beginning like ours, and read by nobody. The value is never looked at. */
export const unknownVariables = (environment: Environment, providers: readonly string[]): UnknownVariable[] => {
  const sweeps = sweepVariables(providers).map((one) => one.name)
  const rates = rateVariables(providers).map((one) => one.name)
  const known = new Set([...settingNames.map(environmentOf), ...others, ...sweeps, ...rates])
  const safe = new Set([...safetySettings.map(environmentOf), ...sweeps])
  return Object.entries(environment)
    .filter(
      ([name, value]) => name.startsWith('LEASEHOLD_') && value !== undefined && value !== '' && !known.has(name) && !house.test(name),
    )
    .map(([name]) => {
      const near = nearest(name, known)
      const safety = isSafety(name, near, safe, providers)
      return { name, nearest: safety ? nearest(name, safe) : near, safety }
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

export const unknownVariableText = ({ name, nearest: near }: UnknownVariable): string =>
  `the environment variable ${name} is read by nobody${near === null ? '' : `: is ${near} meant?`}`

/** The start is refused by it; null: nothing looks like that. */
export const refusedVariables = (unknown: readonly UnknownVariable[]): string | null => {
  const unsafe = unknown.filter((one) => one.safety)
  if (unsafe.length === 0) return null
  const said = unsafe.map(unknownVariableText).join('; ')
  return `${said}${said.endsWith('?') ? '' : '.'} It looks as if it decided what is deleted: correct it or unset it; "leasehold config" lists what is read`
}
