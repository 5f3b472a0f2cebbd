/** The rates of accounts as `serve` takes them and `config` shows them. */
import type { Setting } from '../../model/config.ts'
import { rateSetting } from '../../model/rate-settings.ts'
import type { Environment } from '../../model/sweep-settings.ts'
import { usageError } from './errors.ts'
import type { SweepRow } from './sweep-config.ts'

/** @throws CliError exit 2 with the variable, its value and what would be right */
export const readRateSettings = (environment: Environment, providers: readonly string[]): Map<string, Setting<number | null>> =>
  new Map(
    providers.map((provider) => {
      const result = rateSetting(environment, provider)
      if (!result.ok) throw usageError(result.problem)
      return [provider, result.rate]
    }),
  )

export const rateRows = (rates: ReadonlyMap<string, Setting<number | null>>): SweepRow[] =>
  [...rates].map(([provider, { value, origin }]) => ({
    name: `rate.${provider}.callsPerSecond`,
    value: value ?? 'any',
    origin,
    environment: 'LEASEHOLD_CALLS_PER_SECOND',
  }))
