/** Every variable of the environment that means something here, and those that look as if they did: a misspelt one is ignored, and nobody would know. */
import { nearest } from '../lib/nearest.ts'
import { environmentOf, settingNames } from './config.ts'
import { rateVariables } from './rate-settings.ts'
import { sweepVariables, type Environment } from './sweep-settings.ts'

/** Read by other parts than the settings: the provider `process`, `bin/leasehold`, and what is set inside a box. */
const others = [
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
}

/** Set, not empty, beginning like ours, and read by nobody. The value is never looked at. */
export const unknownVariables = (environment: Environment, providers: readonly string[]): UnknownVariable[] => {
  const known = new Set([
    ...settingNames.map(environmentOf),
    ...others,
    ...[...sweepVariables(providers), ...rateVariables(providers)].map((one) => one.name),
  ])
  return Object.entries(environment)
    .filter(
      ([name, value]) => name.startsWith('LEASEHOLD_') && value !== undefined && value !== '' && !known.has(name) && !house.test(name),
    )
    .map(([name]) => ({ name, nearest: nearest(name, known) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

export const unknownVariableText = ({ name, nearest: near }: UnknownVariable): string =>
  `the environment variable ${name} is read by nobody${near === null ? '' : `: is ${near} meant?`}`
