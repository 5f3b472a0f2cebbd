/** How many calls a second an account gets, of each provider. Where nothing is said, nothing limits it until its provider throttles. */
import type { Setting } from './config.ts'
import type { Environment, SweepVariable } from './sweep-settings.ts'

const ofAll = 'LEASEHOLD_CALLS_PER_SECOND'
const ofOne = (provider: string): string => `LEASEHOLD_${provider.toUpperCase().replace(/[^A-Z0-9]/g, '_')}_CALLS_PER_SECOND`

/** Clouds count the calls of everybody who uses the account: not all of them are ours to take. */
const defaults: Readonly<Record<string, number>> = { aws: 20, azure: 10, gcp: 20 }
export const defaultCallsPerSecond = (provider: string): number | null => defaults[provider] ?? null

const highest = 100_000
const expected = `any, or a number of calls a second from 0.1 to ${highest}`

export type RateResult = { ok: true; rate: Setting<number | null> } | { ok: false; problem: string }

/** The provider's own variable goes before that of all; both are read, so that a mistake in either stops the start. */
export const rateSetting = (environment: Environment, provider: string): RateResult => {
  let rate: Setting<number | null> = { value: defaultCallsPerSecond(provider), origin: 'default' }
  for (const variable of [ofAll, ofOne(provider)]) {
    const text = environment[variable]?.trim() ?? ''
    if (text === '') continue
    const value = text.toLowerCase() === 'any' ? null : /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
    if (value !== null && !(value >= 0.1 && value <= highest))
      return { ok: false, problem: `environment ${variable}: must be ${expected}, not ${JSON.stringify(text)}` }
    rate = { value, origin: `environment ${variable}` }
  }
  return { ok: true, rate }
}

export const rateVariables = (providers: readonly string[]): SweepVariable[] => [
  {
    name: ofAll,
    text: 'How many calls a second an account gets from all replicas together; `any`: no limit until its provider throttles.',
    fallback: '`any`; 20 on aws and gcp, 10 on azure',
  },
  ...providers.map((provider) => ({ name: ofOne(provider), text: 'The same for the accounts of this provider.', fallback: 'that of all' })),
]
