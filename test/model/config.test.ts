import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resolveConfig, settingNames, shownValue, type ConfigSources, type Settings } from '../../src/model/config.ts'

const sources = (changes: Partial<ConfigSources> = {}): ConfigSources => ({
  flags: {},
  environment: {},
  file: null,
  home: '/home/ada',
  absolute: (path, from) => (path.startsWith('/') ? path : `/${from}/${path}`),
  ...changes,
})
const resolve = (changes: Partial<ConfigSources> = {}): Settings => {
  const result = resolveConfig(sources(changes))
  if (!result.ok) throw new Error(result.problem)
  return result.settings
}
const problem = (changes: Partial<ConfigSources>): string => {
  const result = resolveConfig(sources(changes))
  if (result.ok) throw new Error('was accepted')
  return result.problem
}
const file = (key: string, value: unknown, line = 1) => ({ path: '/etc/leasehold.yml', entries: [{ key, value, line }] })

describe('settings', () => {
  it('have defaults, and say so', () => {
    const settings = resolve()
    expect(settings.port).toEqual({ value: 7400, origin: 'default' })
    expect(settings.host.value).toBe('127.0.0.1')
    expect(settings.url.value).toBeNull()
    expect(settings.data.value).toBe('/home/ada/.local/state/leasehold')
  })

  it('put the data folder under XDG_STATE_HOME, unless that is relative', () => {
    expect(resolve({ environment: { XDG_STATE_HOME: '/state/' } }).data.value).toBe('/state/leasehold')
    expect(resolve({ environment: { XDG_STATE_HOME: 'state' } }).data.value).toBe('/home/ada/.local/state/leasehold')
  })

  it('prefer flags to the environment, the environment to the file, the file to the default, and name the place', () => {
    const environment = { LEASEHOLD_PORT: '2' }
    expect(resolve({ flags: { port: '1' }, environment, file: file('port', 3, 9) }).port).toEqual({ value: 1, origin: 'flag --port' })
    expect(resolve({ environment, file: file('port', 3, 9) }).port).toEqual({ value: 2, origin: 'environment LEASEHOLD_PORT' })
    expect(resolve({ file: file('port', 3, 9) }).port).toEqual({ value: 3, origin: 'file /etc/leasehold.yml:9' })
  })

  it('take an empty environment variable for unset', () => {
    expect(resolve({ environment: { LEASEHOLD_PORT: '' } }).port.origin).toBe('default')
  })

  it('take a key without a value for the default', () => {
    expect(resolve({ file: file('port', null) }).port).toEqual({ value: 7400, origin: 'default' })
  })

  it('refuse an unknown key and a bad value with file and line', () => {
    expect(problem({ file: file('prot', 1, 4) })).toMatch(/^\/etc\/leasehold\.yml:4: unknown key "prot"; known are data, /)
    expect(problem({ file: file('port', 'x', 4) })).toMatch(/^\/etc\/leasehold\.yml:4: port must be a port number/)
    expect(problem({ file: file('port', { a: 1 }, 4) })).toContain(':4: port must be one plain value')
    expect(problem({ file: file('constructor', 1, 4) })).toContain('unknown key')
  })

  it('refuse a bad value in the file also where a flag hides it', () => {
    expect(problem({ flags: { port: '1' }, file: file('port', 'x', 4) })).toContain('/etc/leasehold.yml:4')
  })

  it.each(['70000', '-1', '1.5', '0x10', ' 1', 'port'])('refuse port %j', (port) => {
    expect(problem({ environment: { LEASEHOLD_PORT: port } })).toContain('environment LEASEHOLD_PORT: port must be')
  })

  it('say who sets a port that is none, where Kubernetes does', () => {
    const said = (value: string) => problem({ environment: { LEASEHOLD_PORT: value } })
    expect(said('tcp://10.0.0.1:80')).toMatch(/Kubernetes sets it for a service called "leasehold".*enableServiceLinks/)
    expect(said('port')).not.toContain('Kubernetes')
  })

  it.each(['ftp://x', 'localhost:7400', 'http://me:secret@x', 'http://x/?a=1', ''])('refuse url %j', (url) => {
    expect(problem({ flags: { url } })).toContain('flag --url: url must')
  })

  it('know none for no coordinator, and drop the slash at the end of an address (leases R2)', () => {
    expect(resolve({ environment: { LEASEHOLD_URL: 'none' } }).url.value).toBe('none')
    expect(resolve({ environment: { LEASEHOLD_URL: 'http://x:1/lease/' } }).url.value).toBe('http://x:1/lease')
  })

  it('make paths absolute against the folder of their source', () => {
    expect(resolve({ flags: { data: 'd' } }).data.value).toBe('/flag/d')
    expect(resolve({ file: file('data', 'd') }).data.value).toBe('/file/d')
  })

  it('never show a secret, neither as a value nor in an error', () => {
    expect(shownValue('token', 'canary')).toBe('***')
    expect(shownValue('databaseUrl', 'postgres://u:canary@h/db')).toBe('postgres://u:***@h/db')
    expect(shownValue('databaseUrl', 'postgres://h/db?password=canary')).not.toContain('canary')
    expect(problem({ environment: { LEASEHOLD_TOKEN: 'canary with space' } })).not.toContain('canary')
    expect(problem({ environment: { LEASEHOLD_DATABASE_URL: 'mysql://u:canary@h' } })).not.toContain('canary')
    expect(problem({ file: file('databaseUrl', 'mysql://u:canary@h') })).not.toContain('canary')
    expect(problem({ environment: { LEASEHOLD_URL: 'http://u:canary@h' } })).not.toContain('canary')
  })

  it('always answer each setting with an origin, or a problem', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('LEASEHOLD_PORT', 'LEASEHOLD_URL', 'LEASEHOLD_LOG_LEVEL'), fc.string()), (environment) => {
        const result = resolveConfig(sources({ environment }))
        if (result.ok) for (const name of settingNames) expect(result.settings[name].origin).toMatch(/^(default|environment LEASEHOLD_)/)
        else expect(result.problem).toContain('environment LEASEHOLD_')
      }),
    )
  })
})
