import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { standingExitCode } from '../../../src/model/prune/controller.ts'
import { recordLabels } from '../../../src/model/prune/record-names.ts'
import { adoptFromController } from '../../../src/prune/controller/adopt.ts'
import { reclaimController } from '../../../src/prune/controller/reclaim.ts'
import { openSqliteStore } from '../../../src/store/sqlite/index.ts'
import { listAudit } from '../../../src/store/audit.ts'
import { ann, root } from '../../support/engine.ts'
import { sqliteDatabase } from '../../support/databases.ts'
import { advance, eachStore, setClock } from '../../support/stores.ts'
import { FakeSwarm } from '../../support/swarm-engine.ts'
import { testController } from '../../support/swarm-controllers.ts'
import { deployTest, recordsOn, type TestRelease } from '../../support/swarm-releases.ts'

const web: TestRelease = { release: 'web', configs: ['a'], services: ['app'] }
const patienceMs = 3 * 180_000

eachStore('a controller on a Swarm', (open) => {
  it('registers at its first start, and knows itself again after a restart, at once (prune 7.3)', async () => {
    const fake = new FakeSwarm()
    const store = await open()
    const first = await testController(fake.engine, store)
    expect(await first.session.tick()).toEqual({ mode: 'act', epoch: 1, appSetChanged: false })
    expect(await first.session.tick()).toMatchObject({ mode: 'act', epoch: 1 })
    // Another process of the same database: by the database's lock it knows that the first has gone.
    const second = await testController(fake.engine, store)
    expect(await second.session.tick()).toMatchObject({ mode: 'act', epoch: 2 })
    expect(second.word.identity.signer.keyId).toBe(first.word.identity.signer.keyId)
    expect(fake.objects('config').map((one) => one.name)).toEqual(['leasehold.ctl.default'])
    // The first learns it at its next word to the Swarm.
    expect(await first.session.tick()).toMatchObject({ mode: 'act', epoch: 3 })
  })

  it('leaves the work to the replica that has the database’s lock, and takes over when that one is silent (decisions 10)', async () => {
    const fake = new FakeSwarm()
    const store = await open()
    await setClock(store, 1_780_000_000_000)
    const [one, two] = await Promise.all(['rp_1', 'rp_2'].map((replicaId) => testController(fake.engine, store, { replicaId })))
    if (!one || !two) throw new Error('not made')
    expect(await one.session.tick()).toMatchObject({ mode: 'act' })
    const waiting = await two.session.tick()
    expect(waiting).toMatchObject({ mode: 'report', code: 'standing-by' })
    expect(standingExitCode(waiting)).toBe(0)
    await advance(store, 91_000)
    expect(await two.session.tick()).toMatchObject({ mode: 'act', epoch: 2 })
    expect(await one.session.tick()).toMatchObject({ mode: 'report', code: 'standing-by' })
    await two.session.close()
    expect(await one.session.tick()).toMatchObject({ mode: 'act', epoch: 3 })
  })

  it('with an id that another installation has, and another app set, reports who has it and changes nothing; the first goes on (prune R74, cases B3, prune 15)', async () => {
    const fake = new FakeSwarm()
    const first = await testController(fake.engine, await open(), { appSet: 'https://git.example/apps main' })
    await first.session.tick()
    await deployTest(await first.records(), web)
    const before = JSON.stringify([fake.objects('config'), fake.objects('service')])
    const second = await testController(fake.engine, await open(), { appSet: 'https://git.example/other main' })
    const standing = await second.session.tick()
    expect(standing).toMatchObject({
      mode: 'report',
      code: 'another-controller',
      rival: { controllerId: 'default', instance: first.word.identity.instanceUid, appSet: 'https://git.example/apps main' },
    })
    expect(standingExitCode(standing)).toBe(3)
    expect(second.session.stands()).toBe(false)
    expect(await deployTest(await second.records(), { release: 'other', configs: ['x'] })).toMatchObject({ kind: 'lost' })
    expect(JSON.stringify([fake.objects('config'), fake.objects('service')])).toBe(before)
    expect(await first.session.tick()).toMatchObject({ mode: 'act' })
    expect(await deployTest(await first.records(), { ...web, configs: ['b'] })).toMatchObject({ kind: 'deployed' })
    // With another id it works beside the first, and sees none of its releases as its own (prune R73).
    const third = await testController(fake.engine, await open(), { controllerId: 'third' })
    expect(await third.session.tick()).toMatchObject({ mode: 'act', epoch: 1 })
    expect((await recordsOn(await third.records())).releases).toMatchObject([{ release: 'web', doubts: [{ code: 'foreign-key' }] }])
  })

  it('of several that start at once with one id, exactly one has it', async () => {
    const fake = new FakeSwarm()
    const all = await Promise.all(Array.from({ length: 4 }, async () => testController(fake.engine, await open())))
    const standings = await Promise.all(all.map((one) => one.session.tick()))
    expect(standings.filter((one) => one.mode === 'act')).toHaveLength(1)
    expect(standings.filter((one) => one.mode === 'report' && one.code === 'another-controller')).toHaveLength(3)
  })

  it('is told that its app set is another one, until a person confirmed it (prune 7.3)', async () => {
    const fake = new FakeSwarm()
    const store = await open()
    await (await testController(fake.engine, store, { appSet: 'a' })).session.tick()
    const moved = await testController(fake.engine, store, { appSet: 'b' })
    expect(await moved.session.tick()).toMatchObject({ mode: 'act', appSetChanged: true })
    expect(await moved.session.tick()).toMatchObject({ appSetChanged: true })
    moved.session.confirmAppSet()
    expect(await moved.session.tick()).toMatchObject({ appSetChanged: false })
    expect(await (await testController(fake.engine, store, { appSet: 'b' })).session.tick()).toMatchObject({ appSetChanged: false })
  })

  it('deletes nothing once half of its lease’s life went by without a renewal (prune 7.3)', async () => {
    const fake = new FakeSwarm()
    const clock = { ms: 0 }
    const one = await testController(fake.engine, await open(), { clock })
    await one.session.tick()
    clock.ms = 89_999
    expect(one.session.stands()).toBe(true)
    clock.ms = 90_000
    expect(one.session.stands()).toBe(false)
    await one.session.tick()
    expect(one.session.stands()).toBe(true)
  })

  it('writes nothing while the Swarm does not answer, and nothing on a registration that it can’t read', async () => {
    const fake = new FakeSwarm()
    const one = await testController(fake.engine, await open())
    await one.session.tick()
    fake.plan('refuse', 1)
    expect(await one.session.tick()).toMatchObject({ mode: 'report', code: 'no-answer' })
    expect(one.session.stands()).toBe(false)
    fake.revive()
    expect(await one.session.tick()).toMatchObject({ mode: 'act' })
    const [config] = fake.objects('config')
    if (!config) throw new Error('not registered')
    await one.word.swarm.configs.update(config.id, config.version, { Name: config.name, Labels: {} }, one.word)
    expect(await one.session.tick()).toMatchObject({ mode: 'report', code: 'unreadable-registration' })
  })

  it.each(['lose-answer', 'die-after', 'die-before'] as const)(
    'whose call fails at any point of a tick has the id at its next one: %s',
    async (fault) => {
      for (let at = 1; ; at++) {
        const fake = new FakeSwarm()
        const store = await open()
        const one = await testController(fake.engine, store)
        const from = fake.calls.length
        fake.plan(fault, at)
        await one.session.tick()
        const reached = fake.calls.length - from >= at
        fake.revive()
        const next = await testController(fake.engine, store)
        expect(await next.session.tick(), `${fault} at ${at}`).toMatchObject({ mode: 'act' })
        expect(next.session.stands()).toBe(true)
        if (!reached) break
      }
    },
  )

  it('whose key is lost is replaced by a person’s word: a new epoch, and old signatures still count (prune 7.3)', async () => {
    const fake = new FakeSwarm()
    const lostOne = await testController(fake.engine, await open())
    await lostOne.session.tick()
    await deployTest(await lostOne.records(), web)
    const { instanceUid } = lostOne.word.identity
    const store = await open()
    const heir = await testController(fake.engine, store)
    expect(await heir.session.tick()).toMatchObject({ code: 'another-controller', rival: { instance: instanceUid } })
    await expect(reclaimController(heir.word, ann, instanceUid)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(reclaimController(heir.word, root, 'somebody')).rejects.toMatchObject({ code: 'bad_request' })
    expect(await heir.session.tick()).toMatchObject({ code: 'another-controller' })
    expect(await reclaimController(heir.word, root, instanceUid)).toEqual({ epoch: 2 })
    expect(await heir.session.tick()).toMatchObject({ mode: 'act', epoch: 3 })
    expect((await recordsOn(await heir.records())).releases).toMatchObject([{ release: 'web', doubts: [] }])
    expect(await deployTest(await heir.records(), { ...web, configs: ['b'] })).toMatchObject({ kind: 'deployed', revision: 2 })
    expect(await lostOne.session.tick()).toMatchObject({ mode: 'report', code: 'given-away' })
    const audit = await store.read((session) => listAudit(session, { project: null, removal: null, limit: 5 }))
    expect(audit.map((one) => JSON.parse(one.body) as unknown)).toContainEqual(
      expect.objectContaining({ action: 'controller-reclaim', instance: instanceUid }),
    )
    await expect(reclaimController(heir.word, root, instanceUid)).rejects.toMatchObject({ code: 'already_exists' })
  })

  it('takes over the releases of another id by a person’s word, with their history and without touching an object (prune R75)', async () => {
    const fake = new FakeSwarm()
    const old = await testController(fake.engine, await open(), { controllerId: 'old' })
    await old.session.tick()
    await deployTest(await old.records(), web)
    for (const config of ['b', 'c']) await deployTest(await old.records(), { ...web, configs: [config] }, { historyMax: 1 })
    const store = await open()
    const heir = await testController(fake.engine, store, { controllerId: 'new' })
    await heir.session.tick()
    const objects = () =>
      fake.objects('service').concat(fake.objects('config').filter((one) => !Object.hasOwn(one.labels, recordLabels.record)))
    const before = objects()
    const records = await heir.records()
    expect(await deployTest(records, web)).toMatchObject({ kind: 'refused' })
    await expect(adoptFromController(store, records, ann, { from: 'old', originalIsStopped: true })).rejects.toMatchObject({
      code: 'forbidden',
    })
    expect(await adoptFromController(store, records, root, { from: 'old', originalIsStopped: true })).toEqual({ moved: ['web'], left: [] })
    expect(objects()).toEqual(before)
    const after = (await recordsOn(await heir.records())).releases
    expect(after).toMatchObject([
      { stamp: 'cd/new/edge:release/web', doubts: [], head: { state: { stamp: 'cd/new/edge:release/web', revision: 4 } } },
    ])
    expect(await deployTest(await heir.records(), { ...web, configs: ['d'] })).toMatchObject({ kind: 'deployed', revision: 5 })
    expect(await deployTest(await old.records(), web)).toMatchObject({ kind: 'refused' })
    expect(await adoptFromController(store, await heir.records(), root, { from: 'old', originalIsStopped: true })).toEqual({
      moved: [],
      left: [],
    })
    await expect(adoptFromController(store, await heir.records(), root, { from: 'nobody', originalIsStopped: true })).rejects.toMatchObject(
      { code: 'not_found' },
    )
  })

  it('killed at any call of such a take-over goes on with it by the same word', async () => {
    const [theirs, store] = [await open(), await open()]
    for (let at = 1; ; at++) {
      const fake = new FakeSwarm()
      const old = await testController(fake.engine, theirs, { controllerId: 'old' })
      await old.session.tick()
      await deployTest(await old.records(), web)
      const heir = await testController(fake.engine, store, { controllerId: 'new' })
      await heir.session.tick()
      fake.plan('die-after', at)
      await adoptFromController(store, await heir.records(), root, { from: 'old', originalIsStopped: true }).catch(() => null)
      const { dead } = fake
      fake.revive()
      await adoptFromController(store, await heir.records(), root, { from: 'old', originalIsStopped: true })
      expect((await recordsOn(await heir.records())).releases, `at ${at}`).toMatchObject([{ stamp: 'cd/new/edge:release/web', doubts: [] }])
      if (!dead) break
    }
  })
})

describe('a clone with the same key', () => {
  /** Copied while the original has the lease. */
  const pair = async () => {
    const fake = new FakeSwarm()
    const database = sqliteDatabase()
    const store = await database.open()
    const originalClock = { ms: 0 }
    const cloneClock = { ms: 1_000_000_000 }
    const original = await testController(fake.engine, store, { clock: originalClock })
    await original.session.tick()
    await store.close()
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-clone-'))
    cpSync(dirname(database.target), folder, { recursive: true })
    const copy = await openSqliteStore(database.target.replace(dirname(database.target), folder))
    // The lock that was copied along has ended.
    await advance(copy, 91_000)
    const again = await database.open()
    const revived = await testController(fake.engine, again, { clock: originalClock })
    await revived.session.tick()
    const clone = await testController(fake.engine, copy, { clock: cloneClock, replicaId: 'rp_clone' })
    const end = async (): Promise<void> => {
      await again.close()
      await copy.close()
      await database.drop()
    }
    return { fake, original: revived, clone, originalClock, cloneClock, end }
  }

  it('stands by while the original renews, however long by its own clock, and takes over once that is silent for three lives of the lease (prune 7.3)', async () => {
    const { original, clone, cloneClock, end } = await pair()
    expect(clone.word.identity.signer.keyId).toBe(original.word.identity.signer.keyId)
    for (let round = 0; round < 10; round++) {
      expect(await clone.session.tick()).toMatchObject({
        mode: 'report',
        why: expect.stringContaining('with the same key is at work') as string,
      })
      cloneClock.ms += patienceMs - 1
      expect(await clone.session.tick()).toMatchObject({ mode: 'report', code: 'standing-by' })
      expect(await original.session.tick()).toMatchObject({ mode: 'act' })
    }
    await clone.session.tick()
    cloneClock.ms += patienceMs
    expect(await clone.session.tick()).toMatchObject({ mode: 'act' })
    expect(await original.session.tick()).toMatchObject({ mode: 'report', code: 'standing-by' })
    expect(original.session.stands()).toBe(false)
    await end()
  })
})
