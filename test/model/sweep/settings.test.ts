import { describe, expect, it } from 'vitest'
import { effectiveMode, marginMs, sweepSettings, type Environment } from '../../../src/model/sweep-settings.ts'

const global = 'LEASEHOLD_ORPHAN_CLEANUP_MODE'
const enabled = 'LEASEHOLD_AWS_ORPHAN_SWEEP_ENABLED'
const deletes = 'LEASEHOLD_AWS_ORPHAN_SWEEP_DELETE'
const mode = (environment: Environment) => {
  const result = effectiveMode(environment, 'aws')
  return result.ok ? [result.mode.value, result.mode.origin] : result.problem
}

describe('the effective mode of a provider (orphans R67, R73, R75a)', () => {
  it.each<[Environment, string, string]>([
    [{}, 'report', 'default'],
    [{ [global]: '' }, 'report', 'default'],
    [{ [global]: 'report' }, 'report', `environment ${global}`],
    [{ [global]: 'delete' }, 'delete', `environment ${global}`],
    [{ [global]: ' Delete ' }, 'delete', `environment ${global}`],
    [{ [global]: 'off' }, 'off', `environment ${global}`],
    [{ [global]: 'off', [enabled]: '1', [deletes]: '1' }, 'off', `environment ${global}`],
    [{ [enabled]: '0', [deletes]: '1' }, 'off', `environment ${enabled}`],
    [{ [enabled]: 'No', [global]: 'delete' }, 'off', `environment ${enabled}`],
    [{ [enabled]: 'yes' }, 'report', 'default'],
    [{ [deletes]: '1' }, 'delete', `environment ${deletes}`],
    [{ [deletes]: 'on', [global]: 'report' }, 'delete', `environment ${deletes}`],
    [{ [deletes]: 'off', [global]: 'delete' }, 'report', `environment ${deletes}`],
    [{ [deletes]: '', [global]: 'delete' }, 'delete', `environment ${global}`],
    [{ LEASEHOLD_AZURE_ORPHAN_SWEEP_DELETE: '1' }, 'report', 'default'],
  ])('%j gives %s, from %s', (environment, value, origin) => {
    expect(mode(environment)).toEqual([value, origin])
  })

  it.each<[Environment, RegExp]>([
    [{ [global]: 'purge' }, /LEASEHOLD_ORPHAN_CLEANUP_MODE: must be report, delete or off, not "purge"/],
    [{ [global]: 'true' }, /report, delete or off/],
    [{ [enabled]: 'maybe' }, /LEASEHOLD_AWS_ORPHAN_SWEEP_ENABLED.*"maybe"/],
    [{ [deletes]: 'delete' }, /LEASEHOLD_AWS_ORPHAN_SWEEP_DELETE/],
    [{ [deletes]: '2', [global]: 'off' }, /LEASEHOLD_AWS_ORPHAN_SWEEP_DELETE/],
    [{ [deletes]: 'constructor' }, /LEASEHOLD_AWS_ORPHAN_SWEEP_DELETE/],
  ])('%j is refused: an unknown value never deletes (R74, orphan case 8)', (environment, problem) => {
    expect(mode(environment)).toMatch(problem)
  })

  it('a provider’s name with other characters has its variable too', () => {
    expect(effectiveMode({ LEASEHOLD_MY_CLOUD_ORPHAN_SWEEP_DELETE: '1' }, 'my-cloud')).toMatchObject({ mode: { value: 'delete' } })
  })
})

const settings = (environment: Environment, provider = 'aws', allowZeroGrace = false) => {
  const result = sweepSettings(environment, provider, allowZeroGrace)
  if (!result.ok) return result.problem
  const { intervalMs, graceMs, reportEveryMs } = result.settings
  return [intervalMs.value, graceMs.value, reportEveryMs.value]
}

describe('interval, grace and reports (U1, case H3)', () => {
  it('defaults', () => {
    expect(settings({})).toEqual([3_600_000, 900_000, 86_400_000])
    expect(settings({}, 'azure')).toEqual([3_600_000, 900_000, 86_400_000])
    expect(settings({}, 'process')).toEqual([900_000, 900_000, 86_400_000])
  })

  it('the provider’s variable before the global one before the default', () => {
    const everywhere = { LEASEHOLD_ORPHAN_CLEANUP_INTERVAL_SECONDS: '60', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '5' }
    expect(settings(everywhere)).toEqual([60_000, 5000, 86_400_000])
    const own = { ...everywhere, LEASEHOLD_AWS_ORPHAN_SWEEP_INTERVAL_SECONDS: '7', LEASEHOLD_AWS_ORPHAN_SWEEP_GRACE_SECONDS: '0.5' }
    expect(settings(own)).toEqual([7000, 500, 86_400_000])
    expect(settings(own, 'process')).toEqual([60_000, 5000, 86_400_000])
  })

  it('an explicit 0 is 0 where 0 means something, and unset is the default', () => {
    expect(settings({ LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '0', LEASEHOLD_ORPHAN_CLEANUP_REPORT_EVERY_SECONDS: '0' })).toEqual([
      3_600_000, 0, 0,
    ])
    expect(settings({ LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '' })).toEqual([3_600_000, 900_000, 86_400_000])
    // The provider's 0 is not "unset", which would fall back to the global one.
    expect(settings({ LEASEHOLD_AWS_ORPHAN_SWEEP_GRACE_SECONDS: '0', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '9' })).toEqual([
      3_600_000, 0, 86_400_000,
    ])
  })

  it.each(['-1', 'soon', '15m', 'NaN', 'Infinity', '1e3', '99999999999'])('%j is refused by name', (value) => {
    for (const variable of [
      'LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS',
      'LEASEHOLD_AWS_ORPHAN_SWEEP_INTERVAL_SECONDS',
      'LEASEHOLD_ORPHAN_CLEANUP_REPORT_EVERY_SECONDS',
    ])
      expect(settings({ [variable]: value })).toContain(variable)
  })

  it('an interval of 0 is refused, and a grace too small to be a millisecond is not taken for 0', () => {
    expect(settings({ LEASEHOLD_ORPHAN_CLEANUP_INTERVAL_SECONDS: '0' })).toContain('INTERVAL_SECONDS')
    expect(settings({ LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '0.0001' })).toContain('GRACE_SECONDS')
  })

  it('a grace of 0 in delete mode needs to be allowed (case H3)', () => {
    const zero = { LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '0' }
    expect(settings({ ...zero, [global]: 'delete' })).toContain('--allow-zero-grace')
    expect(settings({ ...zero, [deletes]: '1' })).toContain('--allow-zero-grace')
    expect(settings({ ...zero, [global]: 'delete' }, 'aws', true)).toEqual([3_600_000, 0, 86_400_000])
    expect(settings({ ...zero, [global]: 'report' })).toEqual([3_600_000, 0, 86_400_000])
    expect(settings({ ...zero, [global]: 'delete', [enabled]: 'no' })).toEqual([3_600_000, 0, 86_400_000])
  })
})

describe('the margin (R63, decisions)', () => {
  it.each([
    ['process', 0, 5000],
    ['simulated', 2, 5000],
    ['simulated', 10, 20_000],
    ['docker', 10, 20_000],
    ['aws', 300, 600_000],
    ['aws', 0, 600_000],
    ['something-new', 0, 600_000],
  ])('%s with a visibility of %d s: %d ms', (provider, visibility, expected) => {
    expect(marginMs(provider, visibility)).toBe(expected)
  })
})
