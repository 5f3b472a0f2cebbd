/** The settings of sweeps as `serve` takes them and `config` shows them. */
import { sweepSettings, type Environment, type SweepSettings } from '../../model/sweep-settings.ts'
import { usageError } from './errors.ts'

/** @throws CliError exit 2 with the variable, its value and what would be right (orphans R74); a grace of 0 in delete mode without `allowZeroGrace` */
export const readSweepSettings = (
  environment: Environment,
  providers: readonly string[],
  allowZeroGrace: boolean,
): Map<string, SweepSettings> =>
  new Map(
    providers.map((provider) => {
      const result = sweepSettings(environment, provider, allowZeroGrace)
      if (!result.ok) throw usageError(result.problem)
      return [provider, result.settings]
    }),
  )

export interface SweepRow {
  /** `sweep.<provider>.<setting>` */
  name: string
  value: string | number
  origin: string
  /** The variable that sets it for all providers. */
  environment: string
}

/** orphans R75a: what is in force, for each provider, with where it comes from. */
export const sweepRows = (settings: ReadonlyMap<string, SweepSettings>): SweepRow[] =>
  [...settings].flatMap(([provider, { mode, intervalMs, graceMs, reportEveryMs }]) =>
    (
      [
        ['mode', mode.value, mode.origin, 'MODE'],
        ['intervalSeconds', intervalMs.value / 1000, intervalMs.origin, 'INTERVAL_SECONDS'],
        ['graceSeconds', graceMs.value / 1000, graceMs.origin, 'GRACE_SECONDS'],
        ['reportEverySeconds', reportEveryMs.value / 1000, reportEveryMs.origin, 'REPORT_EVERY_SECONDS'],
      ] as const
    ).map(([name, value, origin, variable]) => ({
      name: `sweep.${provider}.${name}`,
      value,
      origin,
      environment: `LEASEHOLD_ORPHAN_CLEANUP_${variable}`,
    })),
  )
