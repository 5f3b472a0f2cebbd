/** A database that was copied, restored or rewound, beside the cloud that went on (decisions 6), and keyed tags that are copied, forged or gone. */
import { afterEach, expect, it } from 'vitest'
import { adoptInstallation, forkInstallation, readInstallationView, rotateKey } from '../../../src/engine/admin/index.ts'
import { createLease, releaseLease } from '../../../src/engine/leases/index.ts'
import { makeMac } from '../../../src/engine/keyring.ts'
import { currentKey, listKeys } from '../../../src/store/keys.ts'
import type { LeaseView } from '../../../src/model/wire.ts'
import type { Store } from '../../../src/store/store.ts'
import { copyDatabase } from '../../support/copies.ts'
import { ann, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases, requestKey, type Case } from './support.ts'

type Box = LeaseView & { cloudID: string }

/** As if a backup had been put back that is older than this lease: no table knows of it. */
const forget = (store: Store, { ref, id, instanceID }: LeaseView): Promise<void> =>
  store.write(async ({ db }) => {
    await db
      .deleteFrom('removals')
      .where('ref', '=', ref as never)
      .execute()
    await db
      .deleteFrom('attempts')
      .where('ref', '=', ref as never)
      .execute()
    await db
      .deleteFrom('ledger')
      .where('ref', '=', ref as never)
      .execute()
    await db
      .deleteFrom('instances')
      .where('id', '=', instanceID as never)
      .execute()
    await db
      .deleteFrom('leases')
      .where('id', '=', id as never)
      .execute()
  })

const tagsOf = (one: Case, id: string): Record<string, string> => one.cloud.get(id)?.tags ?? {}
const sweepOut = async (one: Case): Promise<void> => {
  await one.sweep()
  await one.sweep(graceSeconds + 60)
  await one.sweep()
}
const reasons = async (one: Case): Promise<string[]> =>
  (await one.open()).map((row) => (JSON.parse(row.evidence) as { verdict?: { reason: string } }).verdict?.reason ?? row.code).toSorted()
const stopsOf = async (one: Case) => (await readInstallationView(one.engine.context, root)).stops
/** Setting it up anew has taken that away. */
const makeDefault = (one: Case) =>
  one.store.write((tx) => tx.db.updateTable('backends').set({ is_default: 1 }).where('name', '=', 'local').execute())
const adopt = (one: Case) => adoptInstallation(one.engine.context, root, { reason: 'the other database is gone', original: 'stopped' })
const heldBy = async (one: Case, box: LeaseView) =>
  (
    await until(async () => {
      const { cleanup } = await one.leaseView(box.id)
      return cleanup.state === 'held' ? cleanup : undefined
    }, 'the removal is held')
  ).heldBy

eachStore('a ledger that is older than the world', (open, database) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('a ref under our valid keyed tag that nobody here knows stops every removal in that account, of both entrances (decisions 6)', async () => {
    const one = await cases.open(await open())
    const [lost, ended, orphan] = [await one.lease(), await one.lease(), await one.orphan()] as [Box, Box, Box]
    await forget(one.store, lost)
    await sweepOut(one)
    expect(await stopsOf(one)).toMatchObject([{ code: 'rewound', scope: expect.stringContaining('simulated:') as string }])
    expect(await reasons(one)).toEqual(['contradiction.unknown-ref-of-ours', 'orphan.owner-ended', 'rewound'])
    await releaseLease(one.engine.context, ann, ended.id, {})
    expect(await heldBy(one, ended)).toMatch(/stop of removals in simulated:.*forgotten/)
    expect((await one.events('installation.stopped')).map(({ event }) => event.level)).toEqual(['error'])
    expect(one.count('remove')).toBe(0)
    // Everything else goes on.
    const fresh = await one.lease()

    // A person says that this is the database that goes on: what it lost stays, reported, and stops nothing any more.
    await adopt(one)
    await one.gone(ended.cloudID)
    await sweepOut(one)
    await one.gone(orphan.cloudID)
    expect(one.running().toSorted()).toEqual([lost.cloudID, fresh.cloudID].toSorted())
    expect([await stopsOf(one), await reasons(one)]).toEqual([[], ['contradiction.unknown-ref-of-ours']])
  })

  it('the twin: a bare unknown ref, also under our installation’s id, is ignored (orphans R50)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const installation = one.engine.context.installation.installation_id
    for (const tags of [
      { leasehold_ref: 'r00000000001' },
      { leasehold_ref: 'r00000000002', leasehold_installation: installation, leasehold_attempt: 'e'.repeat(32) },
    ])
      await one.launch(orphan, 'machine', { tags, token: null })
    await sweepOut(one)
    await one.gone(orphan.cloudID)
    expect([await stopsOf(one), await one.told()]).toEqual([[], []])
  })

  it('what merely names us stops nothing: a forged keyed tag, and none where each of ours has one, are reported and left alone (case B4)', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    await one.advance(600)
    const key = await one.store.read(currentKey)
    const tags = {
      leasehold_ref: 'r00000000001',
      leasehold_installation: one.engine.context.installation.installation_id,
      leasehold_attempt: 'e'.repeat(32),
    }
    await one.launch(orphan, 'machine', {
      tags: { ...tags, leasehold_mac: `1-${key?.id ?? ''}-1-${'0'.repeat(40)}` },
      token: 'e'.repeat(32),
    })
    await one.launch(orphan, 'machine', {
      tags: { ...tags, leasehold_ref: 'r00000000002', leasehold_attempt: 'd'.repeat(32) },
      token: 'd'.repeat(32),
    })
    await sweepOut(one)
    await one.gone(orphan.cloudID)
    expect(await reasons(one)).toEqual(['contradiction.no-mac', 'contradiction.wrong-mac'])
    expect([await stopsOf(one), one.count('remove'), one.running().length]).toEqual([[], 1, 2])
  })

  it('a key that was made after the backup is not in it: the fact fixed at creation then says that it is ours (decisions 6)', async () => {
    const one = await cases.open(await open())
    await one.lease()
    const view = await rotateKey(one.engine.context, root, { reason: 'a test' })
    const lost = await one.lease()
    // Both may be of the same millisecond.
    const newest = view.keys.find((key) => key.retiredAt === null)
    expect(tagsOf(one, lost.cloudID)['leasehold_mac']).toContain(`1-${newest?.id}-`)
    await forget(one.store, lost)
    await one.store.write(async ({ db }) => {
      await db
        .deleteFrom('keys')
        .where('id', '=', newest?.id ?? '')
        .execute()
      await db.updateTable('keys').set({ retired_at: null }).execute()
    })
    await one.sweep()
    expect(await stopsOf(one)).toMatchObject([{ code: 'rewound' }])
  })

  it('a machine made after the newest start that the database knows of stops removals, until a newer epoch than any begins (decisions 6)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const { epoch } = await readInstallationView(one.engine.context, root)
    await one.store.write((tx) =>
      tx.db
        .updateTable('installation')
        .set({ epoch: epoch - 1 })
        .execute(),
    )
    await one.sweep()
    expect(await reasons(one)).toEqual(['contradiction.newer-epoch', 'rewound'])
    await releaseLease(one.engine.context, ann, lease.id, {})
    expect(await heldBy(one, lease)).toMatch(/stop of removals/)
    expect(await adopt(one)).toMatchObject({ epoch: epoch + 1 })
    await one.gone(lease.cloudID)
    await one.sweep()
    expect([await stopsOf(one), await one.told()]).toEqual([[], []])
  })

  it('of two that go on side by side the old one stops at the first machine of the new one, and touches none (case A4, B3)', async () => {
    const db = await database()
    const before = await cases.open(await db.open())
    const shared = await before.lease()
    await before.stop()
    // PostgreSQL copies a database to which nobody is connected.
    await before.store.close()
    const copy = await copyDatabase(db.target)
    const path = before.cloud.path
    const old = await cases.open(await db.open(), { path })
    const store = await copy.open()
    const moved = await cases.open(store, { path })
    for (const each of [old, moved]) await makeDefault(each)
    await adopt(moved)
    const theirs = await moved.lease()
    await old.advance(3_600)
    await sweepOut(old)
    await releaseLease(old.engine.context, ann, shared.id, {})
    expect(await heldBy(old, shared)).toMatch(/stop of removals/)
    expect(old.count('remove')).toBe(0)
    expect(old.running().toSorted()).toEqual([shared.cloudID, theirs.cloudID].toSorted())
    // And the new one, should the old one make something.
    const late = await old.lease()
    await moved.advance(7_200)
    await moved.sweep()
    expect(await stopsOf(moved)).toMatchObject([{ code: 'rewound' }])
    // One of them becomes another installation: then both go on.
    await forkInstallation(old.engine.context, root, { reason: 'it was moved', when: 'stopped' })
    await old.restart()
    await sweepOut(old)
    expect([await stopsOf(old), await old.told(), old.count('remove')]).toEqual([[], [], 0])
    expect(old.isRunning(late.cloudID)).toBe(true)
    await moved.stop()
    await store.close()
    await copy.drop()
  })
})

eachStore('keyed tags', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('what is made carries one, of the current key; an orphan with it goes, also after the key was rotated', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const attempt = await one.attemptOf(orphan)
    const key = await one.store.read(currentKey)
    const { epoch, installation } = await readInstallationView(one.engine.context, root)
    const claim = { installation, scope: attempt.scope, ref: orphan.ref, attempt: attempt.token, epoch }
    expect(tagsOf(one, orphan.cloudID)['leasehold_mac']).toBe(makeMac(key as NonNullable<typeof key>, claim))
    expect(attempt.mac_key).toBe(key?.id)
    await rotateKey(one.engine.context, root, { reason: 'somebody left' })
    expect((await one.store.read(listKeys)).filter((row) => row.retired_at === null)).toHaveLength(1)
    expect((await one.store.read(currentKey))?.id).not.toBe(key?.id)
    await sweepOut(one)
    await one.gone(orphan.cloudID)
  })

  it.each([
    ['altered', 'contradiction.wrong-mac', (mac: string) => mac.replace(/.$/, (last) => (last === '0' ? '1' : '0'))],
    ['of a key that is not here', 'contradiction.wrong-mac', (mac: string) => mac.replace(/^1-[a-z0-9]{6}/, '1-zzzzzz')],
    ['of another epoch', 'contradiction.wrong-mac', (mac: string) => mac.replace(/^(1-[a-z0-9]{6})-\d+/, '$1-9')],
    ['no such value', 'contradiction.wrong-mac', () => 'x'],
    ['gone', 'contradiction.no-mac', () => null],
  ])('an orphan whose keyed tag is %s is reported and never taken back; with its own again it goes', async (_, reason, change) => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    const tags = tagsOf(one, orphan.cloudID)
    const { leasehold_mac: mac = '', ...others } = tags
    const changed = change(mac)
    one.cloud.setTags(orphan.cloudID, changed === null ? others : { ...others, leasehold_mac: changed })
    await sweepOut(one)
    await sweepOut(one)
    expect([one.isRunning(orphan.cloudID), await reasons(one)]).toEqual([true, [reason]])
    one.cloud.setTags(orphan.cloudID, tags)
    await sweepOut(one)
    await one.gone(orphan.cloudID)
  })

  it('another’s keyed tag, copied with all other tags, makes nothing ours (leases 8, case B1)', async () => {
    const one = await cases.open(await open())
    const live = await one.lease()
    const orphan = await one.orphan()
    const copy = await one.launch(live, 'machine', { tags: tagsOf(one, live.cloudID), token: null })
    const swapped = await one.launch(live, 'machine', {
      tags: { ...tagsOf(one, live.cloudID), leasehold_mac: tagsOf(one, orphan.cloudID)['leasehold_mac'] ?? '' },
      token: null,
    })
    await sweepOut(one)
    await one.gone(orphan.cloudID)
    expect(one.running().toSorted()).toEqual([live.cloudID, copy.id, swapped.id].toSorted())
    expect(await reasons(one)).toEqual(['contradiction.tags-only', 'contradiction.wrong-mac'])
  })

  it('a machine that a holder gave up is read once more: with a keyed tag that is not its own nothing is called (I6)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const tags = tagsOf(one, lease.cloudID)
    one.cloud.setTags(lease.cloudID, { ...tags, leasehold_mac: 'x' })
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'failed', 'the removal has failed')
    expect((await one.leaseView(lease.id)).cleanup.error).toContain('leasehold_mac')
    expect([one.count('remove'), await one.told()]).toEqual([0, [`contradiction ${lease.cloudID}`]])
    one.cloud.setTags(lease.cloudID, tags)
    await one.advance(301)
    await one.gone(lease.cloudID)
  })

  it('a machine that is found after a crash is not adopted under a forged keyed tag (leases R9)', async () => {
    const one = await cases.open(await open())
    one.hooks.create = async (request, real) => {
      await real()
      const [id] = one.running()
      one.cloud.setTags(id ?? '', { ...tagsOf(one, id ?? ''), leasehold_mac: `1-zzzzzz-1-${'0'.repeat(40)}` })
      return { kind: 'uncertain', message: `the answer for ${request.name} was lost`, resource: null }
    }
    const { lease } = await createLease(one.engine.context, ann, { createAttemptID: requestKey() })
    await one.advanceUntil(async () => (await one.open()).some((row) => row.code === 'contradiction'), 'a person is told', 1)
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'provisioning', cloudID: null })
    expect([one.count('create'), one.count('remove')]).toEqual([1, 0])
  })

  it('what was made before there were keys is judged as it always was', async () => {
    const one = await cases.open(await open())
    const orphan = await one.orphan()
    await one.store.write((tx) => tx.db.updateTable('attempts').set({ mac_key: null }).execute())
    const { leasehold_mac: _mac, ...others } = tagsOf(one, orphan.cloudID)
    one.cloud.setTags(orphan.cloudID, others)
    await sweepOut(one)
    await one.gone(orphan.cloudID)
  })
})
