import { describe, expect, it } from 'vitest'
import { refusedVariables, unknownVariables } from '../../src/model/environment.ts'
import { environmentOf, settingNames } from '../../src/model/config.ts'
import { sweepSettings, sweepVariables } from '../../src/model/sweep-settings.ts'

const unknown = (environment: Record<string, string>) => unknownVariables(environment, ['process', 'my-cloud'])

describe('a variable that nobody reads', () => {
  it.each([
    ['LEASEHOLD_ORPHAN_CLEANUP_MDOE', 'LEASEHOLD_ORPHAN_CLEANUP_MODE', true],
    ['LEASEHOLD_ORPHAN_CLEAN_UP_MODE', 'LEASEHOLD_ORPHAN_CLEANUP_MODE', true],
    ['LEASEHOLD_PROCES_ORPHAN_SWEEP_DELETE', 'LEASEHOLD_PROCESS_ORPHAN_SWEEP_DELETE', true],
    ['LEASEHOLD_MY_CLOUD_ORPHAN_SWEEP_DELET', 'LEASEHOLD_MY_CLOUD_ORPHAN_SWEEP_DELETE', true],
    ['LEASEHOLD_LIMIT_PER_SWEPT', 'LEASEHOLD_LIMIT_PER_SWEEP', true],
    ['LEASEHOLD_FOR_EYES', 'LEASEHOLD_FOUR_EYES', true],
    ['LEASEHOLD_LIMTI_PER_DAY', 'LEASEHOLD_LIMIT_PER_DAY', true],
    ['LEASEHOLD_FREEZE', null, true],
    ['LEASEHOLD_TOKENS', 'LEASEHOLD_TOKEN', false],
    ['LEASEHOLD_MAX_LEASES_PER_PROJETC', 'LEASEHOLD_MAX_LEASES_PER_PROJECT', false],
    ['LEASEHOLD_SOMETHING_ELSE_ALTOGETHER', null, false],
  ])('%s is told with the nearest known name, and stops a start where it looks like a rule of what is deleted', (name, nearest, safety) => {
    const told = unknown({ [name]: 'secret' })
    expect(told).toEqual([{ name, nearest, safety }])
    const refused = refusedVariables(told)
    if (safety) expect(refused).toContain(name)
    else expect(refused).toBeNull()
  })

  it('the settings of a provider that this program does not have concern nothing here, and stop no start', () => {
    expect(unknown({ LEASEHOLD_DIGITALOCEAN_ORPHAN_SWEEP_GRACE_SECONDS: '60' }).map((one) => one.safety)).toEqual([false])
  })

  it.each([
    'LEASEHOLD_SWEEPER_SERVICE_HOST',
    'LEASEHOLD_SWEEPER_SERVICE_PORT',
    'LEASEHOLD_SWEEPER_SERVICE_PORT_HTTP',
    'LEASEHOLD_SWEEPER_PORT',
    'LEASEHOLD_SWEEPER_PORT_80_TCP',
    'LEASEHOLD_SWEEPER_PORT_80_TCP_ADDR',
  ])('%s, which Kubernetes sets for a service of that name, stops no start', (name) => {
    expect(refusedVariables(unknown({ [name]: 'x' }))).toBeNull()
    // The twin: without the service's ending it looks like a rule.
    expect(refusedVariables(unknown({ LEASEHOLD_SWEEPER: 'x' }))).toContain('LEASEHOLD_SWEEPER')
  })

  it('the refusal is two whole sentences, whether a name is near or none', () => {
    expect(refusedVariables(unknown({ LEASEHOLD_FOR_EYES: 'x' }))).toContain('is LEASEHOLD_FOUR_EYES meant? It looks')
    expect(refusedVariables(unknown({ LEASEHOLD_FREEZE: 'x' }))).toContain('is read by nobody. It looks')
  })

  it('whatever is read, empty, of a box, of our tests, or not ours is none', () => {
    const read = [...settingNames.map(environmentOf), ...sweepVariables(['process', 'my-cloud']).map((one) => one.name)]
    const environment = Object.fromEntries(read.map((name) => [name, 'x']))
    expect(
      unknown({ ...environment, LEASEHOLD_NOTHING: '', LEASEHOLD_REF: 'a', LEASEHOLD_TEST_POSTGRES_URL: 'x', PATH: '/', leasehold_x: 'y' }),
    ).toEqual([])
  })

  it('every variable that sweeps read is in the registry: a bad value of it is refused, and nothing else is (orphans R74)', () => {
    for (const { name } of sweepVariables(['my-cloud'])) {
      const result = sweepSettings({ [name]: 'nonsense' }, 'my-cloud', false)
      expect(result.ok ? name : result.problem, name).toContain(`environment ${name}: must be`)
    }
  })
})
