import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { recordLabels } from '../../../src/model/prune/record-names.ts'
import { namespaceLabel } from '../../../src/model/prune/swarm/stamp.ts'
import { freshSigningKey } from '../../../src/prune/records/keys.ts'
import { claimsOf } from '../../../src/prune/records/read.ts'
import { removeRecords, shrinkRevision } from '../../../src/prune/records/release.ts'
import { FakeSwarm } from '../../support/swarm-engine.ts'
import { deployTest, recordsOn, testContext, type TestRelease } from '../../support/swarm-releases.ts'

const web: TestRelease = { release: 'web', configs: ['a'], services: ['app'] }
const api: TestRelease = { release: 'api', configs: ['a'], services: ['app'] }

const world = async () => {
  const fake = new FakeSwarm()
  const context = await testContext(fake.engine)
  for (const release of [web, api]) await deployTest(context, release)
  const { releases } = await recordsOn(context)
  const [apiRecords, webRecords] = releases
  if (!apiRecords || !webRecords) throw new Error('not deployed')
  const configOf = (name: string) => {
    const found = fake.objects('config').find((one) => one.name === name)
    if (!found) throw new Error(`no config ${name}`)
    return found
  }
  const put = (name: string, labels: Record<string, string>, data: Buffer | string) =>
    context.swarm.configs.create({ Name: name, Labels: labels, Data: Buffer.from(data).toString('base64') }, context)
  const relabel = async (name: string, labels: Record<string, string>) => {
    const { id, version } = configOf(name)
    await context.swarm.configs.update(id, version, { Name: name, Labels: labels }, context)
  }
  return { fake, context, web: webRecords, api: apiRecords, configOf, put, relabel }
}
const dataOf = (config: { spec: Record<string, unknown> }): Buffer => Buffer.from(String(config.spec['Data']), 'base64')

describe('a record that is not read', () => {
  it('is reported, everything else is read as before, and only its own release is not deletable (prune R78, case prune 6)', async () => {
    const { context, put, web: target, api: other } = await world()
    const name = `leasehold.rev.${target.uid}.7`
    const poisons: [string, Record<string, string>, Buffer | string, string][] = [
      [name, { [recordLabels.record]: 'revision' }, 'no gzip', 'bad-gzip'],
      [`leasehold.rev.${target.uid}.8`, { [recordLabels.record]: 'revision' }, gzipSync('{"half'), 'bad-json'],
      [`leasehold.rev.${target.uid}.9`, { [recordLabels.record]: 'revision' }, gzipSync('{"version":2}'), 'unknown-version'],
      [`leasehold.rev.${target.uid}.10`, { [recordLabels.record]: 'revision' }, gzipSync('{"version":1,"type":"revision"}'), 'bad-shape'],
      [`leasehold.claims.${target.uid}`, {}, '{}', 'bad-labels'],
      ['anything', { [recordLabels.record]: 'revision' }, 'x', 'bad-name'],
      ['leasehold.rev.UPPER.1', {}, 'x', 'bad-name'],
      ['leasehold.ctl.theirs', { [recordLabels.record]: 'controller' }, 'x', 'bad-json'],
    ]
    for (const [poisonName, labels, data] of poisons) await put(poisonName, labels, data)
    const records = await recordsOn(context)
    expect(new Map(records.poison.map((one) => [one.name, one.code]))).toEqual(new Map(poisons.map(([named, , , code]) => [named, code])))
    expect(records.releases.find((one) => one.uid === other.uid)).toEqual(other)
    const doubted = records.releases.find((one) => one.uid === target.uid)
    expect(doubted?.doubts.map((one) => one.code)).toEqual(Array(5).fill('unreadable-record'))
    if (!doubted) throw new Error('not read')
    expect(await removeRecords(context, doubted)).toMatchObject({ kind: 'refused' })
    // Its neighbour deploys on, and so does it.
    expect(await deployTest(context, { ...api, configs: ['b'] })).toMatchObject({ kind: 'deployed', revision: 2 })
    expect(await deployTest(context, { ...web, configs: ['b'] })).toMatchObject({ kind: 'deployed', revision: 11 })
  })

  it('none of these is, where nothing is wrong: the twin', async () => {
    const { context } = await world()
    const { poison, releases } = await recordsOn(context)
    expect(poison).toEqual([])
    expect(releases.flatMap((one) => one.doubts)).toEqual([])
  })

  it('is a copy under another uid: that is nobody’s, and the original stays what it was (case prune 4)', async () => {
    const { context, web: original, configOf, put } = await world()
    for (const [from, to] of [
      [`leasehold.rel.${original.uid}`, 'leasehold.rel.payrollaaaaa'],
      [`leasehold.rev.${original.uid}.1`, 'leasehold.rev.payrollaaaaa.1'],
    ] as const) {
      const source = configOf(from)
      expect(await put(to, source.labels, dataOf(source))).toMatchObject({ kind: 'created' })
    }
    const { poison, releases } = await recordsOn(context)
    expect(poison.map(({ name, code }) => [name, code])).toEqual([
      ['leasehold.rel.payrollaaaaa', 'copied'],
      ['leasehold.rev.payrollaaaaa.1', 'copied'],
    ])
    expect(releases.map((one) => one.release)).toEqual(['api', 'web'])
    expect(releases.find((one) => one.uid === original.uid)).toEqual(original)
  })

  it('is a copy from another Swarm, as a restored backup is one (prune 7.2)', async () => {
    const { configOf, web: original, context } = await world()
    const fake = new FakeSwarm()
    const there = await testContext(fake.engine)
    const source = configOf(`leasehold.rel.${original.uid}`)
    await there.swarm.configs.create({ Name: source.name, Labels: source.labels, Data: dataOf(source).toString('base64') }, there)
    expect((await recordsOn({ ...there, own: context.own })).poison).toMatchObject([{ code: 'other-cluster' }])
  })

  it('is one whose content, labels, or both were written by somebody without the key (prune R12)', async () => {
    const { context, web: target, configOf, put, relabel } = await world()
    const stranger = await testContext((await world()).fake.engine)
    const head = `leasehold.rel.${target.uid}`
    const honest = configOf(head)
    const forged = JSON.parse(dataOf(honest).toString()) as { body: { release: string; uid: string } }
    Object.assign(forged.body, { uid: 'forgedaaaaaa', release: 'payroll' })
    await put('leasehold.rel.forgedaaaaaa', honest.labels, JSON.stringify(forged))
    await relabel(head, { ...honest.labels, [recordLabels.owner]: 'cd/prod/evil:release/web' })
    const { poison, releases } = await recordsOn(context)
    expect(poison.map((one) => one.code)).toEqual(['wrong-signature', 'wrong-signature'])
    expect(releases.find((one) => one.uid === target.uid)?.doubts.map((one) => one.code)).toEqual(['unreadable-record', 'missing-head'])
    await relabel(head, honest.labels)
    // And no signature of an unregistered key counts, however right it is.
    expect((await recordsOn({ ...context, own: stranger.own })).poison.map((one) => one.code)).toEqual(Array(5).fill('unknown-key'))
    expect((await recordsOn(context)).releases.map((one) => one.release)).toEqual(['api', 'web'])
  })

  it('is one with the label of a stack, which a stack’s removal would take along (prune R35)', async () => {
    const { context, web: target, configOf, relabel } = await world()
    const name = `leasehold.rev.${target.uid}.1`
    await relabel(name, { ...configOf(name).labels, [namespaceLabel]: 'web' })
    expect((await recordsOn(context)).poison).toMatchObject([{ name, code: 'stack-label', uid: target.uid }])
  })

  it('is a revision whose claims were moved from another one, or put into another state (prune R12)', async () => {
    const { context, web: target, configOf, relabel } = await world()
    await deployTest(context, { ...web, configs: ['b'] })
    const [first, second] = [1, 2].map((number) => `leasehold.rev.${target.uid}.${number}`) as [string, string]
    await relabel(first, configOf(second).labels)
    expect((await recordsOn(context)).poison).toMatchObject([{ name: first, code: 'bad-labels' }])
    await relabel(first, { ...configOf(second).labels, [recordLabels.revision]: '1', [recordLabels.objects]: '{}' })
    expect((await recordsOn(context)).poison).toMatchObject([{ name: first, code: 'wrong-signature' }])
  })

  it('is one that a registered controller signed for another’s application (prune R12, R73)', async () => {
    const { fake, context } = await world()
    const key = freshSigningKey()
    const evil = await testContext(fake.engine, { controllerId: 'evil', key })
    // It signs as prod, and its key is known as evil's.
    const forger = await testContext(fake.engine, { controllerId: 'prod', key })
    await deployTest(forger, { release: 'forged', configs: ['x'] })
    const { poison } = await recordsOn({ ...context, own: [...context.own, ...evil.own] })
    expect(poison.map((one) => one.code)).toEqual(['wrong-controller', 'wrong-controller'])
  })

  it('makes the head’s current revision missing when it was deleted by hand, and the release is not deletable', async () => {
    const { context, web: target, configOf } = await world()
    await context.swarm.configs.remove(configOf(`leasehold.rev.${target.uid}.1`).id, context)
    expect((await recordsOn(context)).releases.find((one) => one.uid === target.uid)?.doubts).toMatchObject([{ code: 'missing-revision' }])
  })
})

describe('a listing of records that fails', () => {
  it('is no listing of none: nothing is deployed (prune R24)', async () => {
    const { fake, context } = await world()
    fake.plan('refuse', 1)
    const before = fake.objects('config')
    expect(await deployTest(context, { ...web, configs: ['z'] })).toMatchObject({ kind: 'unknown' })
    expect(fake.objects('config')).toEqual(before)
  })
})

describe('the history of a release', () => {
  it('is kept to historyMax, never without the current one, and the claims of what went stay provable (prune R71, R39)', async () => {
    const { context, web: target } = await world()
    const names = ['b', 'c', 'd', 'e']
    for (const name of names)
      expect(await deployTest(context, { ...web, configs: [name] }, { historyMax: 2 })).toMatchObject({ kind: 'deployed', warning: null })
    const read = (await recordsOn(context)).releases.find((one) => one.uid === target.uid)
    expect(read).toMatchObject({ doubts: [], revisions: [{ number: 4 }, { number: 5 }] })
    expect(read?.folded?.claims.map((one) => one.name)).toContain('web_a')
    const claimed = read ? claimsOf(read) : []
    expect(claimed.map((one) => one.name).toSorted()).toEqual(['a', 'app', ...names].map((name) => `web_${name}`).toSorted())
    // Of each the id, also of what no revision that is left declared.
    expect(claimed.every((one) => one.object !== null)).toBe(true)
  })

  it('of the neighbours is not touched', async () => {
    const { context, api: neighbour } = await world()
    for (const name of ['b', 'c', 'd']) await deployTest(context, { ...web, configs: [name] }, { historyMax: 1 })
    expect((await recordsOn(context)).releases.find((one) => one.uid === neighbour.uid)).toEqual(neighbour)
  })

  it('is not trimmed beside a record that can’t be read (prune R78)', async () => {
    const { context, web: target, put } = await world()
    await put(`leasehold.claims.${target.uid}`, { [recordLabels.record]: 'claims' }, 'x')
    await deployTest(context, { ...web, configs: ['b'] }, { historyMax: 1 })
    expect((await recordsOn(context)).releases.find((one) => one.uid === target.uid)?.revisions).toHaveLength(2)
  })

  it('forgets a claim only once its object is verified gone', async () => {
    const { context, web: target } = await world()
    await deployTest(context, { ...web, configs: ['b'] })
    const read = (await recordsOn(context)).releases.find((one) => one.uid === target.uid)
    const revision = read?.revisions.at(-1)
    const gone = revision?.body.carried.find((one) => one.name === 'web_a')
    if (!revision || !gone) throw new Error('nothing is carried')
    expect(await shrinkRevision(context, revision, new Set([gone.id]))).toMatchObject({ kind: 'done' })
    const after = (await recordsOn(context)).releases.find((one) => one.uid === target.uid)
    expect(after ? claimsOf(after).map((one) => one.name) : []).toEqual(['web_b', 'web_app'])
    // And what another changed meanwhile is not written over.
    expect(await shrinkRevision(context, revision, new Set())).toMatchObject({ kind: 'lost' })
  })
})

describe('the records of a release that is gone', () => {
  it('go last, the head as the very last, and a crash at any call leaves something to go on from (prune R31)', async () => {
    for (const fault of ['die-before', 'die-after'] as const) {
      for (let at = 1; ; at++) {
        const { fake, context, web: target } = await world()
        await deployTest(context, { ...web, configs: ['b'] }, { historyMax: 1 })
        const before = (await recordsOn(context)).releases.find((one) => one.uid === target.uid)
        if (!before) throw new Error('not there')
        fake.plan(fault, at)
        await removeRecords(context, before)
        const { dead } = fake
        fake.revive()
        const after = (await recordsOn(context)).releases.find((one) => one.uid === target.uid)
        if (after) {
          expect(after.head, `${fault} at ${at}`).not.toBeNull()
          expect(await removeRecords(context, after), `${fault} at ${at}`).toMatchObject({ kind: 'done' })
        }
        expect((await recordsOn(context)).releases.map((one) => one.release)).toEqual(['api'])
        if (!dead) break
      }
    }
  })
})
