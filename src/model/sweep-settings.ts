/**
 * The sweep's settings of each provider, with where each came from (orphans R67, R73-R75a, U1). An empty variable counts as unset; an explicit 0 is 0
 * where 0 means something (case H3); whatever is neither is refused with the variable's name.
 */
import type { Setting } from './config.ts'

export const sweepModes = ['report', 'delete', 'off'] as const
export type SweepMode = (typeof sweepModes)[number]

export interface SweepSettings {
  mode: Setting<SweepMode>
  intervalMs: Setting<number>
  graceMs: Setting<number>
  reportEveryMs: Setting<number>
}

export type Environment = Readonly<Record<string, string | undefined>>
export type SettingsResult = { ok: true; settings: SweepSettings } | { ok: false; problem: string }

const prefix = 'LEASEHOLD_ORPHAN_CLEANUP_'
const providerVariable = (provider: string, rest: string): string =>
  `LEASEHOLD_${provider.toUpperCase().replace(/[^A-Z0-9]/g, '_')}_ORPHAN_SWEEP_${rest}`

export interface SweepVariable {
  name: string
  /** In a sentence. */
  text: string
  fallback: string
}

const ofAll: readonly SweepVariable[] = [
  {
    name: `${prefix}MODE`,
    text: 'What becomes of what sweeps find: `report` tells of it, `delete` takes back what has stood for the grace, `off` stops sweeps and beats everything.',
    fallback: '`report`',
  },
  { name: `${prefix}INTERVAL_SECONDS`, text: 'How often each backend is swept.', fallback: '900; 3600 on aws and azure' },
  {
    name: `${prefix}GRACE_SECONDS`,
    text: 'How long an orphan must stand before `delete` takes it back. 0 in `delete` mode needs `serve --allow-zero-grace`.',
    fallback: '900',
  },
  { name: `${prefix}REPORT_EVERY_SECONDS`, text: 'How often a standing finding is told again; 0: at every sweep.', fallback: '86400' },
]

const ofOne = (provider: string): SweepVariable[] => [
  { name: providerVariable(provider, 'ENABLED'), text: 'Off: this provider is not swept, whatever else is set.', fallback: 'on' },
  { name: providerVariable(provider, 'DELETE'), text: 'On: `delete` for this provider; off: `report`.', fallback: 'the mode of all' },
  { name: providerVariable(provider, 'INTERVAL_SECONDS'), text: 'How often its backends are swept.', fallback: 'the interval of all' },
  { name: providerVariable(provider, 'GRACE_SECONDS'), text: 'How long its orphans must stand.', fallback: 'the grace of all' },
]

/** Every variable that the settings of sweeps are read from: those of all providers, then those of each. */
export const sweepVariables = (providers: readonly string[]): SweepVariable[] => [...ofAll, ...providers.flatMap(ofOne)]

type Read<T> = { ok: true; value: Setting<T> | null } | { ok: false; problem: string }
const refused = (variable: string, text: string, expected: string): { ok: false; problem: string } => ({
  ok: false,
  problem: `environment ${variable}: must be ${expected}, not ${JSON.stringify(text)}`,
})

const given = (environment: Environment, variable: string): string | null => {
  const text = environment[variable]?.trim()
  return text === undefined || text === '' ? null : text
}

const readMode = (environment: Environment): Read<SweepMode> => {
  const variable = `${prefix}MODE`
  const text = given(environment, variable)
  if (text === null) return { ok: true, value: null }
  const mode = sweepModes.find((one) => one === text.toLowerCase())
  return mode ? { ok: true, value: { value: mode, origin: `environment ${variable}` } } : refused(variable, text, 'report, delete or off')
}

const words: Readonly<Record<string, boolean>> = { 1: true, true: true, yes: true, on: true, 0: false, false: false, no: false, off: false }
/** @returns null: the word says neither */
export const switchOf = (text: string): boolean | null => {
  const word = text.toLowerCase()
  return Object.hasOwn(words, word) ? words[word] === true : null
}

const readSwitch = (environment: Environment, variable: string): Read<boolean> => {
  const text = given(environment, variable)
  if (text === null) return { ok: true, value: null }
  const on = switchOf(text)
  if (on === null) return refused(variable, text, '1, true, yes, on, 0, false, no or off')
  return { ok: true, value: { value: on, origin: `environment ${variable}` } }
}

const longestSeconds = 365 * 86_400
const readSeconds = (environment: Environment, variable: string, zero: 'allowed' | 'refused'): Read<number> => {
  const text = given(environment, variable)
  if (text === null) return { ok: true, value: null }
  const ms = /^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * 1000) : Number.NaN
  if (!(ms <= longestSeconds * 1000) || (ms === 0 && (zero === 'refused' || Number(text) !== 0)))
    return refused(variable, text, `${zero === 'allowed' ? '0 or ' : ''}a number of seconds up to ${longestSeconds}`)
  return { ok: true, value: { value: ms, origin: `environment ${variable}` } }
}

/** decisions, Defaults. */
const defaultIntervalMs = (provider: string): number => (provider === 'aws' || provider === 'azure' ? 3_600_000 : 900_000)
const defaultGraceMs = 900_000
const defaultReportEveryMs = 86_400_000
const localProviders: ReadonlySet<string> = new Set(['process', 'docker', 'swarm', 'simulated'])

/** decisions, Defaults: max(5 s, 2 × visibility) where we share a machine or its clock, 600 s on clouds. */
export const marginMs = (provider: string, visibilitySeconds: number): number =>
  localProviders.has(provider) ? Math.max(5000, 2000 * visibilitySeconds) : Math.max(600_000, 2000 * visibilitySeconds)

/**
 * orphans R75a: `off`, global or of the provider, beats everything; then the provider's own DELETE; then the global mode.
 * Reads every variable that concerns the provider, also one that another hides: a mistake must not wait for its day.
 */
export const effectiveMode = (
  environment: Environment,
  provider: string,
): { ok: true; mode: Setting<SweepMode> } | { ok: false; problem: string } => {
  const global = readMode(environment)
  if (!global.ok) return global
  const enabled = readSwitch(environment, providerVariable(provider, 'ENABLED'))
  if (!enabled.ok) return enabled
  const deletes = readSwitch(environment, providerVariable(provider, 'DELETE'))
  if (!deletes.ok) return deletes
  if (global.value?.value === 'off') return { ok: true, mode: global.value }
  if (enabled.value?.value === false) return { ok: true, mode: { value: 'off', origin: enabled.value.origin } }
  if (deletes.value) return { ok: true, mode: { value: deletes.value.value ? 'delete' : 'report', origin: deletes.value.origin } }
  return { ok: true, mode: global.value ?? { value: 'report', origin: 'default' } }
}

/**
 * All settings of one provider's sweeps.
 * @param allowZeroGrace `--allow-zero-grace`: without it a grace of 0 in `delete` mode is refused
 */
export const sweepSettings = (environment: Environment, provider: string, allowZeroGrace: boolean): SettingsResult => {
  const mode = effectiveMode(environment, provider)
  if (!mode.ok) return mode
  const read = (name: string, own: string | null, zero: 'allowed' | 'refused', fallback: number): Read<number> => {
    const global = readSeconds(environment, `${prefix}${name}`, zero)
    if (!global.ok) return global
    const special = own === null ? null : readSeconds(environment, providerVariable(provider, own), zero)
    if (special?.ok === false) return special
    return { ok: true, value: special?.value ?? global.value ?? { value: fallback, origin: 'default' } }
  }
  const interval = read('INTERVAL_SECONDS', 'INTERVAL_SECONDS', 'refused', defaultIntervalMs(provider))
  if (!interval.ok) return interval
  const grace = read('GRACE_SECONDS', 'GRACE_SECONDS', 'allowed', defaultGraceMs)
  if (!grace.ok) return grace
  const report = read('REPORT_EVERY_SECONDS', null, 'allowed', defaultReportEveryMs)
  if (!report.ok) return report
  const settings: SweepSettings = {
    mode: mode.mode,
    intervalMs: interval.value as Setting<number>,
    graceMs: grace.value as Setting<number>,
    reportEveryMs: report.value as Setting<number>,
  }
  if (settings.mode.value === 'delete' && settings.graceMs.value === 0 && !allowZeroGrace)
    return {
      ok: false,
      problem: `${settings.graceMs.origin}: a grace of 0 in delete mode (${settings.mode.origin}) takes orphans back at their second sighting; pass --allow-zero-grace if you mean it`,
    }
  return { ok: true, settings }
}
