import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createProviders } from '../../src/cli/serve-providers.ts'
import { providerNames } from '../../src/cli/support/provider-names.ts'
import type { InstallationId } from '../../src/model/ids.ts'
import { leaseView, startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

let coordinator: FakeCoordinator
let box: Sandbox
beforeEach(async () => {
  coordinator = await startCoordinator()
  box = sandbox(coordinator.url)
})
afterEach(async () => {
  box.remove()
  await coordinator.close()
})

const withAdminToken = (): void => {
  mkdirSync(box.data, { recursive: true })
  writeFileSync(join(box.data, 'admin.token'), 'admin-secret\n', { mode: 0o600 })
}
const rows = (out: string): Record<string, { value: unknown; origin: string }> =>
  Object.fromEntries(
    (JSON.parse(out) as { name: string; value: unknown; origin: string }[]).map(({ name, value, origin }) => [name, { value, origin }]),
  )

describe('which coordinator and which token', () => {
  it('none is configured: says what to run', async () => {
    const { status, err } = await box.run(['list'], { environment: {} })
    expect(status).toBe(1)
    expect(err).toMatch(/^leasehold: no coordinator: neither .* holds no admin\.token\. Start one with "npm start" or "leasehold serve"/)
  })

  it('LEASEHOLD_URL=none means that there is none, whatever the data folder holds (leases R2)', async () => {
    withAdminToken()
    const { status, err } = await box.run(['list'], { environment: { LEASEHOLD_URL: 'none', LEASEHOLD_DATA: box.data } })
    expect(status).toBe(1)
    expect(err).toContain('url is "none" (from environment LEASEHOLD_URL)')
  })

  it('an admin.token in the data folder leads to this machine and its port', async () => {
    withAdminToken()
    const port = new URL(coordinator.url).port
    expect((await box.run(['list'], { environment: { LEASEHOLD_DATA: box.data, LEASEHOLD_PORT: port } })).status).toBe(0)
    expect(coordinator.seen[0]?.authorization).toBe('Bearer admin-secret')
  })

  it('LEASEHOLD_TOKEN goes before admin.token', async () => {
    withAdminToken()
    await box.run(['list'])
    expect(coordinator.seen[0]?.authorization).toBe('Bearer canary-token')
  })

  it("does not send this machine's admin.token to another one", async () => {
    withAdminToken()
    const { out } = await box.run(['config', '--json'], {
      environment: { LEASEHOLD_DATA: box.data, LEASEHOLD_URL: 'http://198.51.100.7:7400' },
    })
    expect(rows(out)['token']).toEqual({ value: null, origin: 'default' })
    const own = await box.run(['config', '--json'], { environment: { LEASEHOLD_DATA: box.data, LEASEHOLD_URL: 'http://localhost:7400' } })
    expect(rows(own.out)['token']).toEqual({ value: '***', origin: `file ${box.data}/admin.token` })
  })

  it('nobody listens: one line with the address, where it came from and what to run', async () => {
    await coordinator.close()
    const { status, err } = await box.run(['list'])
    expect(status).toBe(1)
    expect(err).toMatch(
      /^leasehold: no coordinator answers at http:\/\/127\.0\.0\.1:\d+ \(from environment LEASEHOLD_URL\): .*ECONNREFUSED.*"leasehold serve".*\n$/,
    )
  })

  it('something else listens there: says so', async () => {
    coordinator.override = () => ({ status: 404, body: '<html>' })
    const { status, err } = await box.run(['list'])
    expect([status, err]).toEqual([1, expect.stringContaining('is no Leasehold coordinator (HTTP 404')])
  })

  it('a redirect is not followed: the token goes nowhere else', async () => {
    const other = await startCoordinator()
    coordinator.override = () => ({ status: 307, body: '{}' })
    const { status, err } = await box.run(['list'])
    await other.close()
    expect([status, err]).toEqual([1, expect.stringContaining('redirects elsewhere')])
  })

  it.each([
    [400, 2],
    [401, 1],
    [403, 4],
    [404, 4],
    [409, 1],
    [500, 1],
  ])('HTTP %i is exit %i, with the message and the code', async (http, exit) => {
    coordinator.override = () => ({ status: http, body: { error: 'some_code', message: 'what happened' } })
    const { status, out, err } = await box.run(['lease', 'get', 'x', '--json'])
    expect([status, out]).toEqual([exit, ''])
    expect(err).toMatch(/^leasehold: what happened.*\(some_code\)\n$/)
    if (http === 401) expect(err).toContain('the token is from environment LEASEHOLD_TOKEN')
  })

  it('a message of others can not move the cursor of the terminal', async () => {
    coordinator.override = () => ({ status: 409, body: { error: 'x', message: 'a\u001b[2Jb\nleasehold: fine' } })
    expect((await box.run(['list'])).err).toBe('leasehold: a\\x1b[2Jb\\x0aleasehold: fine (x)\n')
  })

  it('what is typed as an id stays one part of the path', async () => {
    await box.run(['lease', 'get', '../tokens'])
    await box.run(['lease', 'get', '..'])
    expect(coordinator.seen.map(({ path }) => path)).not.toContain('/v1/tokens')
    expect(coordinator.seen[0]?.path).toBe('/v1/leases/..%2Ftokens')
  })
})

describe('leasehold config', () => {
  const write = (path: string, text: string): void => {
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
  }

  it('shows every value with its origin, and no secret', async () => {
    const environment = { LEASEHOLD_PORT: '7501', LEASEHOLD_TOKEN: 'canary', LEASEHOLD_DATABASE_URL: 'postgres://u:canary@h/d' }
    const { status, out, err } = await box.run(['config', '--json', '--host', '127.0.0.2'], { environment })
    expect([status, err]).toEqual([0, ''])
    expect(out).not.toContain('canary')
    expect(rows(out)).toMatchObject({
      port: { value: 7501, origin: 'environment LEASEHOLD_PORT' },
      host: { value: '127.0.0.2', origin: 'flag --host' },
      logLevel: { value: 'info', origin: 'default' },
      eventsTtlSeconds: { value: 2_592_000, origin: 'default' },
      token: { value: '***', origin: 'environment LEASEHOLD_TOKEN' },
    })
    expect((await box.run(['config'], { environment })).out).not.toContain('canary')
  })

  it('warns of a variable that nobody reads, with the nearest name and without its value, as doctor does; serve refuses one that looks like a rule of what is deleted', async () => {
    const environment = { LEASEHOLD_ORPHAN_CLEANUP_MDOE: 'canary', LEASEHOLD_DATA: box.data, LEASEHOLD_URL: 'none' }
    const { LEASEHOLD_ORPHAN_CLEANUP_MDOE: _, ...right } = environment
    const said = 'the environment variable LEASEHOLD_ORPHAN_CLEANUP_MDOE is read by nobody: is LEASEHOLD_ORPHAN_CLEANUP_MODE meant?'
    const config = await box.run(['config', '--json'], { environment })
    expect(config).toMatchObject({ status: 0, err: `leasehold: warning: ${said}\n` })
    expect(config.out).not.toContain('canary')
    const serve = await box.run(['serve'], { environment })
    expect(serve).toMatchObject({
      status: 2,
      err: expect.stringContaining(`leasehold: ${said} It looks as if it decided what is deleted`) as string,
    })
    expect(serve.err).not.toContain('canary')
    // The twin: another one is told, and no reason to refuse; a wrong setting stops serve here before it opens anything.
    const other = { ...right, LEASEHOLD_LOG_LEVLE: 'canary', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: 'x' }
    const warned = await box.run(['serve'], { environment: other })
    expect(warned).toMatchObject({
      status: 2,
      err: expect.stringMatching(/warning: .*LEASEHOLD_LOG_LEVLE.*\n.*GRACE_SECONDS: must be/) as string,
    })
    const checks = async (changes: Record<string, string>) =>
      JSON.parse((await box.run(['doctor', '--json'], { environment: changes })).out) as { name: string; level: string; message: string }[]
    expect((await checks(environment)).find(({ name }) => name === 'local environment')).toMatchObject({ level: 'warning', message: said })
    expect((await checks(right)).find(({ name }) => name === 'local environment')).toMatchObject({ level: 'ok' })
  })

  it('says whose the sweep settings are, and where those of the coordinator differ', async () => {
    const running = { provider: 'process', origin: 'environment X', intervalSeconds: 900, graceSeconds: 900, canList: true, backends: 1 }
    const status = (mode: string) => ({ status: 200, body: { status: { sweeps: [{ ...running, mode }] } } })
    coordinator.override = ({ path }) => (path === '/v1/status' ? status('delete') : null)
    const whose = `the sweep settings shown are those that "leasehold serve" would take from this shell, not those of the coordinator at ${coordinator.url}`
    expect((await box.run(['config'])).err).toBe(`leasehold: warning: ${whose}: sweep.process.mode is delete there (environment X)\n`)
    coordinator.override = ({ path }) => (path === '/v1/status' ? status('report') : null)
    expect((await box.run(['config'])).err).toBe(`leasehold: warning: ${whose}, which runs with the same\n`)
    coordinator.override = () => ({ status: 403, body: { error: 'forbidden', message: 'no' } })
    expect((await box.run(['config'])).err).toContain(`${whose}, which could not be asked (no (forbidden)); "leasehold status" shows them`)
    coordinator.override = () => null
  })

  it('shows the settings of sweeps for each provider, with where each comes from (orphans R75a)', async () => {
    const environment = {
      LEASEHOLD_ORPHAN_CLEANUP_MODE: 'report',
      LEASEHOLD_SIMULATED_ORPHAN_SWEEP_DELETE: 'on',
      LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '60',
      LEASEHOLD_PROCESS_ORPHAN_SWEEP_ENABLED: 'no',
    }
    const { status, out, err } = await box.run(['config', '--json'], { environment })
    expect([status, err]).toEqual([0, ''])
    expect(rows(out)).toMatchObject({
      'sweep.process.mode': { value: 'off', origin: 'environment LEASEHOLD_PROCESS_ORPHAN_SWEEP_ENABLED' },
      'sweep.simulated.mode': { value: 'delete', origin: 'environment LEASEHOLD_SIMULATED_ORPHAN_SWEEP_DELETE' },
      'sweep.simulated.graceSeconds': { value: 60, origin: 'environment LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS' },
      'sweep.simulated.intervalSeconds': { value: 900, origin: 'default' },
      'sweep.process.reportEverySeconds': { value: 86_400, origin: 'default' },
    })
  })

  it.each([
    [{ LEASEHOLD_ORPHAN_CLEANUP_MODE: 'purge' }, /LEASEHOLD_ORPHAN_CLEANUP_MODE: must be report, delete or off, not "purge"/],
    [{ LEASEHOLD_SIMULATED_ORPHAN_SWEEP_GRACE_SECONDS: 'soon' }, /LEASEHOLD_SIMULATED_ORPHAN_SWEEP_GRACE_SECONDS/],
  ])('refuses %j, in config and in serve, with exit 2 (orphans R74)', async (environment, message) => {
    for (const command of ['config', 'serve']) {
      const { status, out, err } = await box.run([command], { environment: { LEASEHOLD_DATA: box.data, ...environment } })
      expect([status, out]).toEqual([2, ''])
      expect(err).toMatch(message)
    }
    expect(existsSync(box.data)).toBe(false)
  })

  it('says when serve refuses a grace of 0 in delete mode, and that --allow-zero-grace allows it', async () => {
    const environment = { LEASEHOLD_DATA: box.data, LEASEHOLD_ORPHAN_CLEANUP_MODE: 'delete', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '0' }
    const { status, err } = await box.run(['config'], { environment })
    expect([status, err]).toEqual([0, expect.stringMatching(/^leasehold: warning: serve refuses to start: .*--allow-zero-grace/)])
    expect(await box.run(['config', '--allow-zero-grace'], { environment })).toMatchObject({ status: 0, err: '' })
    expect(await box.run(['serve'], { environment })).toMatchObject({ status: 2, err: expect.stringContaining('--allow-zero-grace') })
    expect(existsSync(box.data)).toBe(false)
  })

  it('knows the providers that serve has', () => {
    expect(createProviders(box.data, 'abcdefgh' as InstallationId).map((provider) => provider.name)).toEqual([...providerNames])
  })

  it('reads ./leasehold.yml before the one in the home folder, and --config before both', async () => {
    const home = join(box.root, '.config/leasehold/leasehold.yml')
    const here = join(box.root, 'repository/leasehold.yml')
    const named = join(box.root, 'other.yml')
    write(home, 'port: 1\n')
    expect(rows((await box.run(['config', '--json'], { environment: {} })).out)['port']).toEqual({ value: 1, origin: `file ${home}:1` })
    write(here, '# comment\nport: 2\n')
    expect(rows((await box.run(['config', '--json'], { environment: {} })).out)['port']).toEqual({ value: 2, origin: `file ${here}:2` })
    write(named, '\n\nport: 3\ndata: d\n')
    const { out } = await box.run(['config', '--json', '--config', '../other.yml'], { environment: {} })
    expect(rows(out)).toMatchObject({
      port: { value: 3, origin: `file ${named}:3` },
      data: { value: join(box.root, 'd'), origin: `file ${named}:4` },
    })
  })

  it.each([
    ['port: 1\nprot: 2\n', /:2: unknown key "prot"/],
    ['port: x\n', /:1: port must be a port number/],
    ['host: a\nport: [1]\n', /:2: port must be one plain value/],
    ['port: 1\nport: 2\n', /:2: /],
    ['a: b: c\n', /:1: /],
    ['- port\n', /:1: must hold "key: value" lines/],
    ['port: 0123\nport2: 1\n', /:2: unknown key/],
  ])('refuses %j with the file and its line, exit 2', async (text, message) => {
    write(join(box.root, 'repository/leasehold.yml'), text)
    const { status, out, err } = await box.run(['config'], { environment: {} })
    expect([status, out]).toEqual([2, ''])
    expect(err).toMatch(message)
    expect(err).toContain(join(box.root, 'repository/leasehold.yml'))
    expect(err.trimEnd().split('\n')).toHaveLength(1)
  })

  it('refuses a file that is named and not there, and accepts an empty one', async () => {
    expect((await box.run(['config', '--config', 'none.yml'])).status).toBe(2)
    write(join(box.root, 'repository/leasehold.yml'), '')
    expect((await box.run(['config'])).status).toBe(0)
  })

  it('keeps a token of digits the text that it is', async () => {
    write(join(box.root, 'repository/leasehold.yml'), `token: 0123456789012345678901\nurl: ${coordinator.url}\n`)
    await box.run(['list'], { environment: {} })
    expect(coordinator.seen[0]?.authorization).toBe('Bearer 0123456789012345678901')
  })
})

describe('leasehold doctor', () => {
  it('adds its own checks, and is exit 1 with an error among them', async () => {
    coordinator.override = ({ path }) =>
      path === '/v1/doctor' ? { status: 200, body: { checks: [{ name: 'boxes', level: 'ok', message: 'fine', remedy: null }] } } : null
    const { status, out } = await box.run(['doctor', '--json'])
    expect(status).toBe(0)
    expect((JSON.parse(out) as { name: string }[]).map(({ name }) => name)).toEqual([
      'local data folder',
      'local admin token',
      'local claims',
      'local environment',
      'coordinator',
      'boxes',
    ])
    withAdminToken()
    chmodSync(join(box.data, 'admin.token'), 0o644)
    const open = await box.run(['doctor'])
    expect(open.status).toBe(1)
    expect(open.out).toContain('others may read')
  })

  it('still answers when there is no coordinator', async () => {
    await coordinator.close()
    const { status, out } = await box.run(['doctor', '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(out)).toContainEqual(expect.objectContaining({ name: 'coordinator', level: 'error' }))
  })
})

describe('lists', () => {
  it('say on stderr that they are empty, and are an empty array in JSON', async () => {
    expect(await box.run(['list'])).toMatchObject({ status: 0, out: '', err: expect.stringContaining('no leases') })
    expect(await box.run(['list', '--json'])).toEqual({ status: 0, out: '[]\n', err: '' })
  })

  it('are tables with relative ages, coloured on a terminal only', async () => {
    coordinator.leases.set('a', leaseView())
    const plain = await box.run(['list'])
    expect(plain.out).toContain('lh_0123456789ab  brave-otter  active')
    expect(plain.out).toContain('5m ago')
    expect(plain.out).toContain('in 25m')
    expect(plain.out).not.toContain('\u001b')
    expect((await box.run(['list'], { colours: true })).out).toContain('\u001b[32mactive')
  })
})
