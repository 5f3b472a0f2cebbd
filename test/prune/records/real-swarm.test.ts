/** The records on a real Swarm of one node: what the fake Engine shows elsewhere must be so here. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EngineCalls } from '../../../src/providers/swarm/index.ts'
import { createSwarm } from '../../../src/providers/swarm/index.ts'
import { freshSigningKey } from '../../../src/prune/records/keys.ts'
import { FakeSwarm } from '../../support/swarm-engine.ts'
import { socketEngine } from '../../support/swarm-socket.ts'
import { deployTest, namesOn, recordsOn, testContext, unrecorded, type TestRelease } from '../../support/swarm-releases.ts'
import { serviceOr } from '../../support/services/skip.ts'
import { startSwarm, swarmAvailable, type Swarm as RealSwarm } from '../../support/services/swarm.ts'

const { signal } = new AbortController()
const context = { signal }

/** What each step answers, without ids and versions. */
const outcomes = async (engine: EngineCalls): Promise<unknown[]> => {
  const { configs, secrets, networks, services, info } = createSwarm(engine)
  const said: unknown[] = []
  const say = (what: string, outcome: { kind: string }): void => void said.push(`${what}: ${outcome.kind}`)
  const config = (Name: string, Data = 'aGk=') => configs.create({ Name, Labels: { 'x.y': '1' }, Data }, context)
  say('info', await info(context))
  const made = await config('engine.x')
  say('create', made)
  say('again', await config('engine.x'))
  say('in another case', await config('Engine.X'))
  say('empty', await config('engine.y', ''))
  say('too large', await config('engine.y', Buffer.alloc(1_024_000).toString('base64')))
  say('largest', await config('engine.large', Buffer.alloc(1_023_999).toString('base64')))
  say('long', await config('x'.repeat(65)))
  say('dash', await config('-x'))
  const id = made.kind === 'created' ? made.id : ''
  const found = await configs.inspect(id, context)
  say('inspect', found)
  const version = found.kind === 'present' ? (found.object.version ?? 0) : 0
  say('stale', await configs.update(id, version + 1000, { Name: 'engine.x', Labels: {} }, context))
  say('update', await configs.update(id, version, { Name: 'engine.x', Labels: { 'x.y': '2' } }, context))
  say('stale again', await configs.update(id, version, { Name: 'engine.x', Labels: {} }, context))
  const now = await configs.inspect('engine.x', context)
  said.push(now.kind === 'present' ? [now.object.labels, now.object.spec.Data, now.object.version === version] : now)
  const next = now.kind === 'present' ? (now.object.version ?? 0) : 0
  say('other data', await configs.update(id, next, { Name: 'engine.x', Labels: {}, Data: 'aGkk' }, context))
  say('other name', await configs.update(id, next, { Name: 'engine.z', Labels: {} }, context))
  for (const name of ['engine.', 'ENGINE.', 'ngine.']) {
    const listed = await configs.list({ name }, context)
    said.push([name, listed.kind === 'complete' ? listed.objects.length : listed.why])
  }
  for (const label of [{ key: 'x.y' }, { key: 'x.y', value: '2' }, { key: 'x.y', value: '3' }]) {
    const listed = await configs.list({ label }, context)
    said.push([label, listed.kind === 'complete' ? listed.objects.length : listed.why])
  }
  const network = await networks.create({ Name: 'engine-net', Labels: {}, Driver: 'overlay', CheckDuplicate: true }, context)
  say('network', network)
  say('network again', await networks.create({ Name: 'engine-net', Labels: {}, Driver: 'overlay', CheckDuplicate: true }, context))
  say('network twin', await networks.create({ Name: 'Engine-Net', Labels: {}, Driver: 'overlay', CheckDuplicate: true }, context))
  const secret = await secrets.create({ Name: 'engine.secret', Labels: {}, Data: 'aGk=' }, context)
  say('secret', secret)
  const [networkId, secretId] = [network, secret].map((one) => (one.kind === 'created' ? one.id : '')) as [string, string]
  const template = {
    ContainerSpec: {
      Image: 'none:none',
      Secrets: [{ SecretID: secretId, SecretName: 'engine.secret', File: { Name: 's', UID: '0', GID: '0', Mode: 292 } }],
    },
    Networks: [{ Target: networkId }],
  }
  const service = await services.create(
    { Name: 'engine-service', Labels: {}, TaskTemplate: template, Mode: { Replicated: { Replicas: 0 } } },
    context,
  )
  say('service', service)
  say(
    'service twin',
    await services.create({ Name: 'ENGINE-service', Labels: {}, TaskTemplate: { ContainerSpec: { Image: 'none:none' } } }, context),
  )
  say('secret in use', await secrets.remove(secretId, context))
  say('network in use', await networks.remove(networkId, context))
  say('service away', await services.remove(service.kind === 'created' ? service.id : '', context))
  say('secret away', await secrets.remove(secretId, context))
  say('network away', await networks.remove(networkId, context))
  for (const kind of [configs, secrets, services, networks]) {
    say('inspect nothing', await kind.inspect('engine-nothing', context))
    say('remove nothing', await kind.remove('engine-nothing', context))
  }
  say('remove', await configs.remove(id, context))
  say('remove again', await configs.remove(id, context))
  return said
}

const web: TestRelease = { release: 'web', networks: ['net'], configs: ['a', 'b'], secrets: ['key'], services: ['app'] }

serviceOr(
  'a Swarm',
  swarmAvailable(),
  'apt-get install docker.io iproute2, and run as root',
)('on a real Swarm', () => {
  let real: RealSwarm
  let engine: EngineCalls
  beforeAll(async () => {
    real = await startSwarm()
    engine = socketEngine(real.socket)
  }, 120_000)
  afterAll(() => real?.stop())

  it('every call answers as on the fake Engine that the other suites use', async () => {
    expect(await outcomes(engine)).toEqual(await outcomes(new FakeSwarm().engine))
  })

  it('a deploy leaves its records and nothing unrecorded, and a second one nothing to do (prune R2, R79)', async () => {
    const ours = await testContext(engine)
    expect(await deployTest(ours, web)).toMatchObject({ kind: 'deployed', revision: 1, warning: null })
    expect(await deployTest(ours, web)).toMatchObject({ kind: 'unchanged' })
    for (const name of ['c', 'd'])
      expect(await deployTest(ours, { ...web, configs: [name] }, { historyMax: 1 })).toMatchObject({ kind: 'deployed' })
    expect(await unrecorded(ours)).toEqual([])
    const { releases, poison } = await recordsOn(ours)
    expect(poison).toEqual([])
    expect(releases).toMatchObject([{ release: 'web', doubts: [], revisions: [{ number: 3, state: 'committed' }] }])
    expect(releases[0]?.folded?.claims.map((one) => one.name)).toContain('web_a')
  })

  it.each([1, 2, 3])('killed at a call chosen by seed %i, the deploy run again converges (prune R79)', async (seed) => {
    const key = freshSigningKey()
    const release: TestRelease = { ...web, release: `seed${seed}` }
    let left = (seed * 7) % 17
    const dying: EngineCalls = { call: (request) => (left-- > 0 ? engine.call(request) : Promise.reject(new Error('dead'))) }
    const first = await testContext(engine, { key, controllerId: `c${seed}` })
    const dead = createSwarm(dying)
    expect((await deployTest({ ...first, swarm: dead }, release)).kind).not.toBe('deployed')
    expect((await unrecorded(first)).filter((name) => name.includes(release.release))).toEqual([])
    expect(['deployed', 'unchanged']).toContain((await deployTest(first, release)).kind)
    expect((await namesOn(first.swarm)).filter((name) => name.includes(`seed${seed}`))).toHaveLength(5)
    expect((await recordsOn(first)).releases.find((one) => one.release === release.release)).toMatchObject({
      doubts: [],
      revisions: [{ state: 'committed' }],
    })
  })
})

describe('the fake Engine', () => {
  it('is dead after the call at which it was told to die, and not before', async () => {
    const fake = new FakeSwarm()
    fake.plan('die-after', 2)
    const { info } = createSwarm(fake.engine)
    expect((await info(context)).kind).toBe('manager')
    expect((await info(context)).kind).toBe('unknown')
    expect(fake.dead).toBe(true)
  })
})
