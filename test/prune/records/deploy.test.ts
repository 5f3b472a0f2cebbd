import { describe, expect, it } from 'vitest'
import { freshSigningKey } from '../../../src/prune/records/keys.ts'
import { FakeSwarm } from '../../support/swarm-engine.ts'
import { deployTest, namesOn, recordsOn, testContext, unrecorded, type TestRelease } from '../../support/swarm-releases.ts'

const web: TestRelease = { release: 'web', networks: ['net'], configs: ['a', 'b'], secrets: ['key'], services: ['app'] }
const webNext: TestRelease = { ...web, configs: ['b', 'c'], services: ['app', 'worker'] }

describe('a deploy with its records', () => {
  it('leaves a head, one committed revision, and the ids of all that it made (prune R2, R79)', async () => {
    const fake = new FakeSwarm()
    const context = await testContext(fake.engine)
    expect(await deployTest(context, web)).toMatchObject({ kind: 'deployed', revision: 1, warning: null })
    const { releases, poison } = await recordsOn(context)
    expect(poison).toEqual([])
    expect(releases).toHaveLength(1)
    expect(releases[0]).toMatchObject({
      release: 'web',
      stamp: 'cd/prod/edge:release/web',
      doubts: [],
      head: { state: { stamp: 'cd/prod/edge:release/web', revision: 1, state: 'active', epoch: 1 } },
      revisions: [{ number: 1, state: 'committed' }],
    })
    const ids = new Set(
      [...fake.objects('network'), ...fake.objects('secret'), ...fake.objects('service'), ...fake.objects('config')].map((one) => one.id),
    )
    const objects = Object.values(releases[0]?.revisions[0]?.objects ?? {})
    expect(objects).toHaveLength(5)
    for (const id of objects) expect(ids).toContain(id)
  })

  it('has the intent, with all claims old and new, on the Swarm before its first object (prune R79)', async () => {
    const fake = new FakeSwarm()
    const context = await testContext(fake.engine)
    await deployTest(context, web)
    let seen: Awaited<ReturnType<typeof recordsOn>> | undefined
    await deployTest(context, webNext, {
      apply: async () => {
        seen = await recordsOn(context)
        return { kind: 'failed', error: 'stopped here' }
      },
    })
    const intent = seen?.releases[0]?.revisions.at(-1)
    expect(intent).toMatchObject({ number: 2, state: 'intent' })
    expect(intent?.body.claims.map((claim) => claim.name)).toEqual(['web_net', 'web_b', 'web_c', 'web_key', 'web_app', 'web_worker'])
    expect(intent?.body.carried.map((claim) => claim.name)).toEqual(['web_a'])
    // What is known of it stands in the intent already.
    expect(intent?.body.carried[0]?.object).toMatch(/^con/)
  })

  it('a second one without a change writes nothing', async () => {
    const fake = new FakeSwarm()
    const context = await testContext(fake.engine)
    await deployTest(context, web)
    const before = fake.calls.length
    expect(await deployTest(context, web)).toMatchObject({ kind: 'unchanged', revision: 1 })
    expect(fake.calls.slice(before)).toEqual(['GET /configs'])
  })

  it('the same content for another application of this controller is a revision of its own, so that the stamp moves (prune R8, R9)', async () => {
    const fake = new FakeSwarm()
    const context = await testContext(fake.engine)
    await deployTest(context, web)
    const services = fake.objects('service')
    expect(await deployTest(context, { ...web, application: 'shop' })).toMatchObject({ kind: 'deployed', revision: 2 })
    expect((await recordsOn(context)).releases[0]).toMatchObject({ stamp: 'cd/prod/shop:release/web', doubts: [] })
    expect(fake.objects('service')).toEqual(services)
  })

  it('of a release of another controller is refused, and nothing is written (prune R10, R73)', async () => {
    const fake = new FakeSwarm()
    const key = freshSigningKey()
    const theirs = await testContext(fake.engine, { controllerId: 'theirs', key })
    await deployTest(theirs, web)
    const own = [...theirs.own]
    const ours = await testContext(fake.engine, { controllerId: 'ours' })
    const before = fake.objects('config')
    const context = { ...ours, own: [...ours.own, ...own] }
    expect(await deployTest(context, web)).toMatchObject({ kind: 'refused', why: [expect.stringContaining("theirs's: adopt it first")] })
    expect(fake.objects('config')).toEqual(before)
  })

  it('whose answer is lost at any call ends deployed, at once or when it is run again', async () => {
    for (let at = 1; ; at++) {
      const fake = new FakeSwarm()
      const context = await testContext(fake.engine)
      await deployTest(context, web)
      fake.plan('lose-answer', at)
      const before = fake.calls.length
      const first = await deployTest(context, webNext)
      const reached = fake.calls.length - before >= at
      fake.revive()
      expect(await unrecorded(context), `after call ${at}: ${fake.calls.at(-1)}`).toEqual([])
      if (first.kind !== 'deployed') expect(await deployTest(context, webNext)).toMatchObject({ revision: 2 })
      expect((await recordsOn(context)).releases).toMatchObject([
        { doubts: [], head: { state: { revision: 2 } }, revisions: [{}, { state: 'committed' }] },
      ])
      if (!reached) break
    }
  })

  it('is stopped before its next write by a lease that is lost, and goes on with a new one', async () => {
    const fake = new FakeSwarm()
    let left = 2
    const key = freshSigningKey()
    const context = await testContext(fake.engine, { key, stands: () => left-- > 0 })
    expect(await deployTest(context, web)).toMatchObject({ kind: 'lost' })
    const again = await testContext(fake.engine, { key, epoch: 2 })
    expect(await deployTest(again, web)).toMatchObject({ kind: 'deployed' })
    expect((await recordsOn(again)).releases).toMatchObject([{ head: { state: { epoch: 2 } } }])
  })

  it('by an earlier epoch moves no head of a later one (case A4)', async () => {
    const fake = new FakeSwarm()
    const key = freshSigningKey()
    const early = await testContext(fake.engine, { key, epoch: 7 })
    const late = await testContext(fake.engine, { key, epoch: 8 })
    await deployTest(early, web)
    await deployTest(late, webNext)
    expect(await deployTest(early, { ...web, configs: ['z'] })).toMatchObject({
      kind: 'lost',
      why: expect.stringContaining('epoch 8') as string,
    })
    expect((await recordsOn(late)).releases[0]?.head?.state).toMatchObject({ revision: 2, epoch: 8 })
  })
})

/** Runs the world once without a fault to count its calls, then once for each of them with a death there. */
const killedEverywhere = async (
  fault: 'die-before' | 'die-after',
  first: TestRelease | null,
  then: TestRelease,
  historyMax: number,
): Promise<number> => {
  for (let at = 1; ; at++) {
    const fake = new FakeSwarm()
    const key = freshSigningKey()
    const context = await testContext(fake.engine, { key })
    if (first !== null) await deployTest(context, first, { historyMax })
    fake.plan(fault, at)
    await deployTest(context, then, { historyMax })
    const last = fake.calls.at(-1)
    const { dead } = fake
    fake.revive()
    if (!dead) return at - 1
    const next = await testContext(fake.engine, { key, epoch: 2 })
    const where = `${fault} at call ${at}: ${last}`
    // Not even for a moment.
    expect(await unrecorded(next), where).toEqual([])
    const again = await deployTest(next, then, { historyMax })
    expect(['deployed', 'unchanged'], `${where}: ${JSON.stringify(again)}`).toContain(again.kind)
    expect(await unrecorded(next), where).toEqual([])
    const wanted = [...new Set([...(first === null ? [] : names(first)), ...names(then)])].toSorted()
    expect(await namesOn(next.swarm), where).toEqual(wanted)
    const { releases, poison } = await recordsOn(next)
    expect(poison, where).toEqual([])
    expect(releases, where).toHaveLength(1)
    expect(releases[0], where).toMatchObject({ doubts: [], stamp: 'cd/prod/edge:release/web' })
    const current = releases[0]?.revisions.at(-1)
    expect(current, where).toMatchObject({ state: 'committed', number: releases[0]?.head?.state.revision })
    expect(Object.values(current?.objects ?? {}), where).not.toContain('')
  }
}
const names = (release: TestRelease): string[] =>
  (['network', 'config', 'secret', 'service'] as const).flatMap((kind) =>
    (release[`${kind}s`] ?? []).map((name) => `${kind} ${release.release}_${name}`),
  )

describe('a controller killed at every single call of a deploy (prune R79; I1)', () => {
  it.each(['die-before', 'die-after'] as const)(
    'of a first release converges when it is run again, and leaves nothing unrecorded: %s',
    async (fault) => {
      expect(await killedEverywhere(fault, null, web, 10)).toBeGreaterThan(12)
    },
  )

  it.each(['die-before', 'die-after'] as const)('of a changed one, with history trimmed, as well: %s', async (fault) => {
    expect(await killedEverywhere(fault, web, webNext, 1)).toBeGreaterThan(15)
  })

  it('would be found out without the intent: objects made first are unrecorded', async () => {
    const fake = new FakeSwarm()
    const context = await testContext(fake.engine)
    await deployTest(context, web)
    for (const config of fake.objects('config').filter((one) => one.name.startsWith('leasehold.rev.')))
      await context.swarm.configs.remove(config.id, context)
    expect(await unrecorded(context)).toEqual(['network web_net', 'config web_a', 'config web_b', 'secret web_key', 'service web_app'])
  })
})
