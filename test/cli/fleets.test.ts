/** The commands of fleets against the real engine through its API. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ExplanationView, FleetView, InstanceView, LeaseView } from '../../src/model/wire.ts'
import type { Store } from '../../src/store/store.ts'
import { makeBench, type Bench } from '../api/support.ts'
import { sqliteDatabase } from '../support/databases.ts'
import { until } from '../support/until.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

describe('fleet', () => {
  const database = sqliteDatabase()
  let store: Store
  let bench: Bench
  let box: Sandbox
  beforeAll(async () => {
    store = await database.open()
    bench = await makeBench(store)
    await bench.api.listen({ host: '127.0.0.1', port: 0 })
    const { port } = bench.api.server.address() as { port: number }
    box = sandbox(`http://127.0.0.1:${port}`)
    box.environment['LEASEHOLD_TOKEN'] = bench.admin
  })
  afterAll(async () => {
    box.remove()
    await bench.close()
    await store.close()
    await database.drop()
  })
  const json = async <T>(...argv: string[]): Promise<T> => JSON.parse((await box.run([...argv, '--json'])).out) as T
  const fleetWhen = (is: (fleet: FleetView) => boolean): Promise<FleetView> =>
    until(async () => (await json<FleetView[]>('fleet', 'list')).find((one) => one.name === 'ci' && is(one)), 'the fleet gets there')

  it('is made, listed, taken from, scaled, paused, explained and deleted', async () => {
    const made = await box.run(['fleet', 'create', 'ci', '--size', '1', '--ttl', '1h', '--label', 'team=web'])
    expect(made).toMatchObject({ status: 0, out: 'fleet ci of project default is made: 1 box is kept ready on local\n' })
    expect(await fleetWhen((fleet) => fleet.ready === 1)).toMatchObject({
      state: 'running',
      size: 1,
      ttlSeconds: 3600,
      labels: { team: 'web' },
      createdBy: 'admin',
    })
    const [ready] = await json<InstanceView[]>('instances')
    expect(ready).toMatchObject({ state: 'idle', fleet: 'ci', leaseID: null })
    expect(await json<ExplanationView>('explain', ready?.id ?? '')).toMatchObject({ verdict: 'tracked', reason: 'tracked.bound' })
    expect((await box.run(['explain', ready?.id ?? ''])).out).toContain('Fleet ci keeps it ready.')
    expect((await box.run(['fleet', 'list'])).out).toMatch(/NAME .*READY[^]*ci +default +local +running +1 +1/)

    const lease = await json<LeaseView>('warmup', '--fleet', 'ci', '--slug', 'calm-otter')
    expect(lease).toMatchObject({ state: 'active', fleet: 'ci', instanceID: ready?.id })
    await fleetWhen((fleet) => fleet.ready === 1 && fleet.taken === 1)
    expect((await box.run(['status', 'calm-otter'])).out).toMatch(/fleet +ci/)

    expect((await box.run(['fleet', 'scale', 'ci', '2', '--pause'])).out).toMatch(/^fleet ci is paused: 2 are to be ready/)
    expect(await json<ExplanationView>('explain', 'ci')).toMatchObject({ type: 'fleet', verdict: 'held', subject: 'fleet default/ci' })
    expect(await json<FleetView>('fleet', 'scale', 'ci', '--resume')).toMatchObject({ state: 'running', size: 2 })
    await fleetWhen((fleet) => fleet.ready === 2)

    const deleted = await box.run(['fleet', 'delete', 'ci'])
    expect(deleted.out).toBe('fleet ci is deleted, 2 boxes are taken back; 1 go when their leases end\n')
    await fleetWhen((fleet) => fleet.state === 'draining' && fleet.ready + fleet.ending === 0 && fleet.taken === 1)
    expect((await box.run(['warmup', '--fleet', 'ci'])).err).toContain('has no fleet "ci"')
    expect((await box.run(['stop', 'calm-otter'])).status).toBe(0)
    expect(await json<FleetView[]>('fleet', 'list')).toEqual([])
    // Drained, its name may be given again.
    expect((await box.run(['fleet', 'create', 'ci', '--size', '0'])).status).toBe(0)
    expect((await box.run(['fleet', 'delete', 'ci'])).status).toBe(0)
  })

  it.each([
    [['fleet', 'create', 'ci'], '--size NUMBER'],
    [['fleet', 'create', 'ci', '--size', '-1'], 'whole number'],
    [['fleet', 'create', 'ci', '--size', '1001'], 'from 0 to 1000'],
    [['fleet', 'create', 'Not A Name', '--size', '1'], 'a letter first'],
    [['fleet', 'scale', 'ci'], 'say what changes'],
    [['fleet', 'scale', 'ci', 'many'], 'whole number'],
    [['fleet', 'scale', 'ci', '--pause', '--resume'], 'contradict'],
    [['run', '--id', 'calm-otter', '--fleet', 'ci', '--', 'true'], '--fleet is for a new lease'],
  ])('refuses %j', async (argv, why) => {
    const { status, err } = await box.run(argv)
    expect(status).toBe(2)
    expect(err).toContain(why)
  })

  it('says what is not there, what is there already, and what stands in the way of a deletion', async () => {
    expect(await box.run(['fleet', 'scale', 'none', '1'])).toMatchObject({
      status: 4,
      err: expect.stringContaining('no fleet "none"') as string,
    })
    expect((await box.run(['fleet', 'create', 'busy', '--size', '0'])).status).toBe(0)
    expect((await box.run(['fleet', 'create', 'busy', '--size', '0'])).err).toContain('has a fleet "busy"')
    expect((await box.run(['backend', 'remove', 'local'])).err).toContain('keeps boxes ready (fleet busy)')
    const capped = await box.run(['fleet', 'create', 'long', '--size', '0', '--ttl', '24h'])
    expect(capped.err).toContain('--ttl 24h is above the cap of 22h and was set to 22h')
  })

  it('a user sees the fleets of its project alone and changes none', async () => {
    const user = await bench.token('user', 'other')
    const operator = await bench.token('operator', 'other')
    const { fleets } = (await bench.call<{ fleets: FleetView[] }>('GET', '/v1/fleets', undefined, { token: user })).body
    expect(fleets).toEqual([])
    const body = { name: 'theirs', size: 0 }
    expect((await bench.call('POST', '/v1/fleets', body, { token: user })).status).toBe(403)
    expect((await bench.call('POST', '/v1/fleets', body, { token: operator })).status).toBe(201)
    expect((await bench.call('PATCH', '/v1/fleets/busy?project=default', { size: 1 }, { token: operator })).status).toBe(404)
    const mine = (await bench.call<{ fleets: FleetView[] }>('GET', '/v1/fleets', undefined, { token: user })).body.fleets
    expect(mine).toMatchObject([{ name: 'theirs', project: 'other' }])
  })
})
