/** Groups that sweeps found: taken back whole, only in the exact shape, and gone on with as the same removal when one was dropped or given up. */
import { afterEach, expect, it } from 'vitest'
import { addHold, removeHold } from '../../../src/engine/admin/index.ts'
import type { Actor } from '../../../src/engine/actor.ts'
import { readEvents } from '../../../src/store/events.ts'
import { insertProject } from '../../../src/store/projects.ts'
import { readReceipt } from '../../../src/engine/receipt/index.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, openCases, type Case } from '../cases/support.ts'
import { findings, groupOn, order, progress, removalOf, removals, removalWhen, vanish, type Ids } from './support.ts'

eachStore('a group that a sweep found', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())
  const world = async (): Promise<Case> => cases.open(await open(), { config: { group: 'full' } })
  /** A whole group whose owner has ended. */
  const orphan = async (one: Case): Promise<{ ids: Ids; leaseId: string }> => {
    const { lease, ids } = await groupOn(one)
    one.cloud.rearm(lease.cloudID, 365 * 86_400_000)
    await one.deregister(lease)
    return { ids, leaseId: lease.id }
  }
  const gone = (one: Case) => removalWhen(one, 'the group is proved gone', (row) => row.state === 'gone')
  const quarantine = async (one: Case): Promise<void> => {
    await one.sweep()
    await one.sweep(graceSeconds + 60)
  }
  /** The machine goes, and then something happens before the nic is asked for. */
  const afterMachine = (one: Case, ids: Ids, then: () => Promise<void> | void): void => {
    one.hooks.remove = async (_, real) => {
      const answer = await real()
      one.hooks.remove = undefined
      await then()
      return answer
    }
    expect(one.isRunning(ids.machine)).toBe(true)
  }

  it('goes whole, in one removal that counts once, after two inventories and grace (leases R64, R69, R78)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${ids.machine}`])
    expect((await one.sweep(graceSeconds + 60)).plan?.removals).toEqual([`simulated/sim-a/${ids.machine}`])
    const row = await gone(one)
    const all = order.map((kind) => ids[kind])
    expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual(all)
    expect(progress(row)).toEqual(all)
    expect(await findings(one)).toEqual([])
    // By the name of any member, and by the provider's own id of it.
    for (const target of [`simulated/sim-a/${ids.disk}`, ids.machine]) {
      const about = await readEvents(one.store, { project: null, after: 0, limit: 500, target })
      expect(about.map(({ event }) => event.code).filter((code) => code.startsWith('removal.'))).toEqual(
        expect.arrayContaining(['removal.opened', 'removal.member-gone', 'removal.gone']),
      )
    }
    const receipt = await readReceipt(one.engine.context, root, row.id)
    expect(receipt.removals).toMatchObject([{ verdict: 'deleted', found: { reason: 'orphan.owner-ended' } }])
    expect(receipt.removals[0]?.found?.proofs).toHaveLength(4)
  })

  it('an operator of its project holds a companion by its name, before anybody met it and after, and nobody of another project does', async () => {
    const one = await world()
    const { lease, ids } = await groupOn(one)
    const disk = `simulated/sim-a/${ids.disk}`
    const operator = (project: string): Actor => ({ name: `operator-${project}`, role: 'operator', project, onlyLease: null })
    const hold = (who: Actor) => addHold(one.engine.context, who, { targetType: 'resource', targetID: disk, reason: 'a backup runs' })
    await one.store.write((tx) => insertProject(tx, 'other'))
    // Of a live group no row of ours names the disk: its tags do.
    const early = await hold(operator('default'))
    expect(early).toMatchObject({ targetID: disk, project: 'default' })
    expect(early.warning).toBeUndefined()
    await expect(hold(operator('other'))).rejects.toMatchObject({ code: 'not_found' })
    await expect(
      addHold(one.engine.context, operator('default'), { targetType: 'resource', targetID: 'simulated/sim-a/d-none', reason: 'r' }),
    ).rejects.toMatchObject({ code: 'not_found' })
    await removeHold(one.engine.context, root, early.id)

    one.cloud.rearm(lease.cloudID, 365 * 86_400_000)
    await one.deregister(lease)
    await one.sweep()
    await hold(operator('default'))
    await expect(hold(operator('other'))).rejects.toMatchObject({ code: 'not_found' })
    await one.sweep(graceSeconds + 60)
    await one.sweep(graceSeconds + 60)
    expect(await one.told()).toEqual([`protected ${ids.machine}`])
    expect(one.count('remove')).toBe(0)
  })

  it('is report-only while a companion is missing, or a second one is there, and goes when it is whole (leases R66, case D12)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    const putBack = vanish(one, ids.ip)
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(await one.told()).toEqual([`protected ${ids.machine}`])
    expect(JSON.stringify(await one.open())).toContain('its group is incomplete: there is no ip of it')
    expect(one.count('remove')).toBe(0)
    // The twin: whole again, it stands its quarantine and goes.
    putBack()
    one.cloud.attach({ member: ids.ip, target: ids.nic, onEnd: 'keep' })
    await quarantine(one)
    await gone(one)
    expect(one.running()).toEqual([])
  })

  it('that is told of stays told of whole where a page of one kind fails, and nothing of it is called changed (I5, orphans R68)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    one.cloud.setTags(ids.machine, { ...one.cloud.get(ids.machine)?.tags, keep: 'true' })
    await one.sweep()
    expect(await one.told()).toEqual([`protected ${ids.machine}`])
    const shown = async () => ((await one.open())[0] ?? { fingerprint: '', evidence: '' }) as { fingerprint: string; evidence: string }
    const before = await shown()
    expect(before.evidence).toContain(`"nativeId":"${ids.disk}"`)
    one.fault('list', 'fail-page', { kind: 'disk', location: 'sim-a' })
    await one.sweep(graceSeconds)
    const blind = await shown()
    expect(blind.evidence).toContain(`"nativeId":"${ids.disk}"`)
    expect(blind.fingerprint).toBe(before.fingerprint)
    expect(await one.events('finding.changed')).toEqual([])
    // The twin: seen whole, a disk that is gone is told of no more.
    one.cloud.clearFaults()
    vanish(one, ids.disk)
    await one.sweep(graceSeconds)
    expect((await shown()).evidence).not.toContain(`"nativeId":"${ids.disk}"`)
    expect(one.count('remove')).toBe(0)
  })

  it('without its machine is still whole, also where nothing holds the rest together (leases R64)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    one.cloud.end(ids.machine)
    await quarantine(one)
    await gone(one)
    expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual([ids.nic, ids.ip, ids.disk])
    expect(one.running()).toEqual([])
  })

  it('to which something came before it was bound is dropped untouched, and judged afresh (leases R59, R77)', async () => {
    const one = await world()
    const { ids, leaseId } = await orphan(one)
    let came = false
    one.hooks.read = async (_, real) => {
      if (!came) {
        came = true
        const extra = await one.launch(await one.leaseView(leaseId), 'disk', { name: 'second' })
        one.cloud.attach({ member: extra.id, target: ids.machine, onEnd: 'keep' })
      }
      return real()
    }
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    const dropped = await removalWhen(one, 'it is dropped', (row) => row.state === 'gave-up')
    expect(dropped.error).toMatch(/dropped: disk d-[0-9a-f]+ has come to its group/)
    expect(dropped).toMatchObject({ identity: null, progress: '[]' })
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(one.count('remove')).toBe(0)
    expect(await one.told()).toEqual([`protected ${ids.machine}`])
  })

  it('that changed half way is dropped, and after a quarantine of its own the same removal goes on with its progress (leases R88, orphans R91)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    afterMachine(one, ids, () => one.cloud.setTags(ids.disk, { ...one.cloud.get(ids.disk)?.tags, cost: 'unit-7' }))
    await quarantine(one)
    const dropped = await removalWhen(one, 'it is dropped', (row) => row.state === 'gave-up')
    expect(progress(dropped)).toEqual([ids.machine])
    expect(one.count('remove')).toBe(1)
    // One that a sweep has not seen long enough stays.
    await one.sweep(600)
    expect((await removalOf(one)).state).toBe('gave-up')
    await one.sweep(graceSeconds + 60)
    const row = await gone(one)
    expect(row.id).toBe(dropped.id)
    expect((await removals(one)).length).toBe(1)
    expect(progress(row)).toEqual(order.map((kind) => ids[kind]))
    expect(one.count('remove', ids.machine)).toBe(1)
    expect(await one.events('removal.continued')).toHaveLength(1)
    expect(one.running()).toEqual([])
  })

  it('of which a survivor vanished while it was dropped is touched by no sweep any more (leases R80, R88)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    afterMachine(one, ids, () => one.cloud.setTags(ids.disk, { ...one.cloud.get(ids.disk)?.tags, cost: 'unit-7' }))
    await quarantine(one)
    await removalWhen(one, 'it is dropped', (row) => row.state === 'gave-up')
    vanish(one, ids.ip)
    await quarantine(one)
    // What is left is no whole group any more, and nothing explains that: no sweep touches it.
    for (let i = 0; i < 2; i++) await one.sweep(graceSeconds)
    expect(one.running().toSorted()).toEqual([ids.disk, ids.nic].toSorted())
    expect((await one.told()).some((told) => told.startsWith('protected '))).toBe(true)
    expect(one.count('remove')).toBe(1)
  })

  it('stands still at once when the mode is turned off or somebody holds a member half way, and goes on afterwards (I10)', async () => {
    const one = await world()
    const { ids } = await orphan(one)
    afterMachine(one, ids, () => void (one.settings.mode = 'report'))
    await quarantine(one)
    await removalWhen(one, 'the mode stops it', (row) => row.held_by === 'mode report')
    expect(one.count('remove')).toBe(1)
    const hold = await addHold(one.engine.context, root, {
      targetType: 'resource',
      targetID: `simulated/sim-a/${ids.disk}`,
      reason: 'mine',
    })
    one.settings.mode = 'delete'
    await one.advance(60)
    await removalWhen(one, 'the hold on a later member stops it', (row) => row.held_by === `hold ${hold.id}`)
    // A keep label on a later member protects all of them (leases R68).
    const tags = one.cloud.get(ids.disk)?.tags ?? {}
    one.cloud.setTags(ids.disk, { ...tags, keep: 'true' })
    await removeHold(one.engine.context, root, hold.id)
    await removalWhen(one, 'the label stops it', (row) => row.held_by === `disk ${ids.disk}: label keep=true`)
    for (let i = 0; i < 3; i++) await one.sweep(graceSeconds)
    expect(one.count('remove')).toBe(1)
    expect(one.running().toSorted()).toEqual([ids.disk, ids.ip, ids.nic].toSorted())
    one.cloud.setTags(ids.disk, tags)
    await one.advance(60)
    await gone(one)
  })
})
