import { describe, expect, it } from 'vitest'
import { unknownVariables } from '../../src/model/environment.ts'
import { environmentOf, settingNames } from '../../src/model/config.ts'
import { sweepSettings, sweepVariables } from '../../src/model/sweep-settings.ts'

const unknown = (environment: Record<string, string>) => unknownVariables(environment, ['process', 'my-cloud'])

describe('a variable that nobody reads', () => {
  it.each([
    ['LEASEHOLD_ORPHAN_CLEANUP_MDOE', 'LEASEHOLD_ORPHAN_CLEANUP_MODE'],
    ['LEASEHOLD_ORPHAN_CLEAN_UP_MODE', 'LEASEHOLD_ORPHAN_CLEANUP_MODE'],
    ['LEASEHOLD_PROCES_ORPHAN_SWEEP_DELETE', 'LEASEHOLD_PROCESS_ORPHAN_SWEEP_DELETE'],
    ['LEASEHOLD_MY_CLOUD_ORPHAN_SWEEP_DELET', 'LEASEHOLD_MY_CLOUD_ORPHAN_SWEEP_DELETE'],
    ['LEASEHOLD_LIMIT_PER_SWEPT', 'LEASEHOLD_LIMIT_PER_SWEEP'],
    ['LEASEHOLD_TOKENS', 'LEASEHOLD_TOKEN'],
    ['LEASEHOLD_SOMETHING_ELSE_ALTOGETHER', null],
  ])('%s is told with the nearest known name', (name, nearest) => {
    expect(unknown({ [name]: 'secret' })).toEqual([{ name, nearest }])
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
