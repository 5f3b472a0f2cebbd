/** What a removal leaves behind when nobody tries any more: every member by name, as its provider shows it, for as long as it is there. */
import { afterEach, expect, it } from 'vitest'
import { auditLeases, closeRemoval, getRemoval, listRemovals } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { openCases, type Case } from '../cases/support.ts'
import { approver, groupOn, isStopped, order, release, removals, removalWhen, vanish, type Ids } from './support.ts'

eachStore('what a removal leaves', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())
  const world = async (): Promise<Case> => cases.open(await open(), { config: { group: 'full' } })
  const audit = (one: Case) => auditLeases(one.engine.context, root, { limit: 100 })
  const named = (ids: Ids, kinds: readonly (typeof order)[number][]): string[] => kinds.map((kind) => `${kind} ${ids[kind]} in sim-a`)

  /** Released after somebody took its machine and its disk: nothing is bound, and a person is asked. */
  const incomplete = async (one: Case): Promise<{ leaseId: string; ids: Ids; id: string }> => {
    const { lease, ids } = await groupOn(one)
    vanish(one, ids.disk)
    vanish(one, ids.machine)
    await release(one, lease)
    const { id } = await removalWhen(one, 'it is refused', isStopped)
    return { leaseId: lease.id, ids, id }
  }

  it('of an incomplete group that is closed before anything was bound is named member by member, and owed until none is there (orphans R91, leases R49, R50)', async () => {
    const one = await world()
    const { context } = one.engine
    const { leaseId, ids, id } = await incomplete(one)
    const left = named(ids, ['nic', 'ip'])
    expect(await getRemoval(context, root, id)).toMatchObject({ left, members: [{ nativeID: ids.nic }, { nativeID: ids.ip }] })
    expect(await closeRemoval(context, approver, id, { reason: 'drop it' })).toMatchObject({ state: 'closed', left })
    expect((await one.leaseView(leaseId)).cleanup).toMatchObject({ state: 'closed', mayBeLeft: left })
    expect((await one.events('removal.closed'))[0]?.event.message).toContain(`left behind: ${left.join(', ')}`)
    const [row, ...others] = await audit(one)
    expect(others).toEqual([])
    expect(row).toMatchObject({ cloudStatus: 'found', debt: ['removal-closed'] })
    expect(row?.message).toBe(`pat closed its removal: drop it; still there, end it by hand: ${left.join(', ')}`)
    vanish(one, ids.nic)
    expect((await audit(one))[0]?.message).toMatch(new RegExp(`by hand: ip ${ids.ip} in sim-a$`))
    vanish(one, ids.ip)
    expect(await audit(one)).toEqual([])
  })

  it('of which its provider shows nothing when it is closed is said to be nothing, and what can not be read is said to be unknown (I5)', async () => {
    for (const failing of [false, true]) {
      const one = await world()
      const { leaseId, ids, id } = await incomplete(one)
      vanish(one, ids.nic)
      vanish(one, ids.ip)
      if (failing) one.fault('get', 'error-before')
      const closed = await closeRemoval(one.engine.context, approver, id, { reason: 'drop it' })
      const { mayBeLeft } = (await one.leaseView(leaseId)).cleanup
      if (failing) {
        expect(closed.left.join()).toMatch(/and perhaps more \(/)
        expect(mayBeLeft).toEqual(closed.left)
        expect((await audit(one))[0]).toMatchObject({ cloudStatus: 'error' })
      } else {
        expect(closed).toMatchObject({ left: [], leftSeenAt: expect.any(String) })
        expect(mayBeLeft).toBeNull()
      }
    }
  })

  it('when it is given up names all of it in the order in which it can go, each with its command, and says what is left once a person ended some (orphans R97, R91)', async () => {
    const one = await world()
    const { context } = one.engine
    one.settings.mode = 'report'
    const { lease, ids } = await groupOn(one)
    one.cloud.rearm(lease.cloudID, 365 * 86_400_000)
    one.hooks.remove = async () => ({ kind: 'denied', permission: 'all' })
    await release(one, lease)
    await one.store.write((tx) => tx.db.updateTable('removals').set({ cause: 'create-interrupted' }).execute())
    await one.advanceUntil(async () => (await removals(one))[0]?.state === 'gave-up', 'it is given up', 60)
    const commands = (kinds: readonly (typeof order)[number][]): string =>
      kinds.map((kind) => `leasehold simulate remove ${one.cloud.get(ids[kind])?.id ?? '?'}`).join(', then ')
    const all = commands(order)
    expect((await one.events('terminate.gave-up.manual'))[0]?.event.message).toContain(`Terminate it manually: ${all}.`)
    expect((await one.open()).find((row) => row.code === 'removal-needs-person')?.message).toContain(all)
    expect((await listRemovals(context, root, { limit: 10 }))[0]?.nextStep).toContain(`(${all})`)
    vanish(one, ids.machine)
    vanish(one, ids.nic)
    await one.advanceUntil(async () => (await removals(one))[0]?.stopped !== null, 'it is looked at', 60)
    const [view] = await listRemovals(context, root, { limit: 10 })
    expect(view).toMatchObject({ state: 'gave-up', left: named(ids, ['ip', 'disk']), missing: [] })
    expect(view?.nextStep).toContain(`end it by hand (${commands(['ip', 'disk'])})`)
    expect((await one.open()).find((row) => row.code === 'removal-needs-person')?.message).toContain(
      `Still to be terminated manually: ${commands(['ip', 'disk'])}`,
    )
  })
})
