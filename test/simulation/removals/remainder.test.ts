/** What a removal left over, because a person closed it half way: it goes by a removal of its own, which misses nothing that went before. */
import { afterEach, expect, it } from 'vitest'
import { auditLeases, closeRemoval, getRemoval } from '../../../src/engine/admin/index.ts'
import { readReceipt } from '../../../src/engine/receipt/index.ts'
import { needsPerson } from '../../../src/model/codes.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases, type Case } from '../cases/support.ts'
import {
  afterMachine,
  approver,
  chain,
  findings,
  groupOn,
  groupsOn,
  isStopped,
  order,
  progress,
  removals,
  removalWhen,
  vanish,
  type Ids,
} from './support.ts'

eachStore('a remainder', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  const quarantine = async (one: Case): Promise<void> => {
    await one.sweep()
    await one.sweep(graceSeconds + 60)
  }
  const relabel = (one: Case, id: string): void => one.cloud.setTags(id, { ...one.cloud.get(id)?.tags, cost: 'unit-7' })
  /** A group that a sweep found goes but for its disk; then the removal is dropped, and a person closes it. */
  const leaveDisk = async (one: Case): Promise<{ ids: Ids; closed: string }> => {
    const { lease, ids } = await groupOn(one)
    one.cloud.rearm(lease.cloudID, 365 * 86_400_000)
    await one.deregister(lease)
    one.hooks.remove = async (resource, real) => {
      const answer = await real()
      if (resource.kind === 'ip') relabel(one, ids.disk)
      return answer
    }
    await quarantine(one)
    const dropped = await removalWhen(one, 'it is dropped', (row) => row.state === 'gave-up')
    expect(progress(dropped)).toEqual([ids.machine, ids.nic, ids.ip])
    one.hooks.remove = undefined
    await closeRemoval(one.engine.context, root, dropped.id, { reason: 'looked at by hand' })
    expect(one.running()).toEqual([ids.disk])
    return { ids, closed: dropped.id }
  }
  const newest = async (one: Case) => (await removals(one)).at(-1)

  it('is bound with what the earlier removal proved gone, goes, and nobody is asked (leases R79, R80)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { ids, closed } = await leaveDisk(one)
    await quarantine(one)
    const row = await until(async () => {
      const last = await newest(one)
      return last?.state === 'gone' && last.id !== closed ? last : undefined
    }, 'the disk is proved gone')
    expect(one.running()).toEqual([])
    // The whole group, in order; of it only the disk was asked for.
    expect(progress(row)).toEqual(order.map((kind) => ids[kind]))
    expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual(order.map((kind) => ids[kind]))
    expect((await chain(one)).slice(-3)).toEqual([`intent ${ids.disk}`, 'outcome gone', `proof ${ids.disk}`])
    expect(await findings(one)).toEqual([])
    const view = await getRemoval(one.engine.context, root, row.id)
    expect(view.members.map((member) => `${member.kind} ${member.state}`)).toEqual(['machine gone', 'nic gone', 'ip gone', 'disk gone'])
    // Its receipt tells of the disk alone, and misses no record: those of the others are of the closed one.
    const [receipt] = (await readReceipt(one.engine.context, root, row.id)).removals
    expect(receipt).toMatchObject({ verdict: 'deleted', missing: [] })
    expect(receipt?.resources.map((resource) => resource.nativeID)).toEqual([ids.disk])
  })

  it('whose bound member vanished by other hands is asked about, whatever went before (leases R80)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { ids } = await leaveDisk(one)
    one.hooks.remove = async (_, real) => {
      await real()
      return { kind: 'unknown', error: 'socket closed' }
    }
    await quarantine(one)
    await until(async () => ((await newest(one))?.failures === 1 ? true : undefined), 'the call fails')
    await one.advance(300)
    const row = await until(async () => {
      const last = await newest(one)
      return last?.stopped == null || last.lock_owner !== null ? undefined : last
    }, 'it stops')
    expect(row.error).toContain(`disk ${ids.disk} of its group is gone, and nothing of ours explains it`)
    expect(progress(row)).toEqual([ids.machine, ids.nic, ids.ip])
  })

  it('is dropped as a group that is incomplete where the earlier removal proved nothing gone (leases R66)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { closed } = await leaveDisk(one)
    await one.store.write((tx) => tx.db.updateTable('removals').set({ progress: '[]' }).execute())
    await quarantine(one)
    await one.sweep(graceSeconds)
    expect((await removals(one)).map((row) => row.id)).toEqual([closed])
    expect((await one.told()).map((told) => told.split(' ')[0])).toEqual(['left-behind'])
  })

  it('that is no whole group needs a person, who is told who closed it and what to end by hand, until it is gone (orphans R91)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const ids = await afterMachine(one, ({ disk }) => void vanish(one, disk))
    const stopped = await removalWhen(one, 'it stops', isStopped)
    const audit = () => auditLeases(one.engine.context, root, { limit: 100 })
    await closeRemoval(one.engine.context, approver, stopped.id, { reason: 'drop it' })
    expect(one.running().toSorted()).toEqual([ids.ip, ids.nic].toSorted())
    await one.sweep(graceSeconds)
    const [finding, ...others] = await one.open()
    expect(others).toEqual([])
    expect(finding?.code).toBe('left-behind')
    expect(needsPerson.has('left-behind')).toBe(true)
    for (const said of [`removal ${stopped.id} was closed by pat: drop it`, `to end by hand: `, `nic ${ids.nic} in `, `ip ${ids.ip} in `])
      expect(finding?.message).toContain(said)
    expect(JSON.parse(finding?.evidence ?? '{}')).toMatchObject({ verdict: { reason: 'protected.removal-closed' } })
    // Looked at where it is, without a sweep: the machine that the lease was known by is gone, and the rest is not.
    const [row] = await audit()
    expect(row).toMatchObject({ debt: ['removal-closed'], cloudStatus: 'found' })
    expect(row?.message).toContain(`pat closed its removal: drop it; still there, end it by hand: `)
    expect(row?.message).toContain(`nic ${ids.nic} in `)
    // The twin: once a person ended it, nobody is needed, and nothing is owed.
    vanish(one, ids.nic)
    vanish(one, ids.ip)
    await one.sweep(graceSeconds)
    expect(await one.open()).toEqual([])
    expect(await audit()).toEqual([])
  })

  it('that is dropped as it was takes the place of no other of its kind and rule, and when it was first begun stays (leases R88, decisions)', async () => {
    const one = await cases.open(await open())
    // Enough of ours that two of it are within the limit on shares.
    await groupsOn(one, 40)
    const first = (await one.orphan()).cloudID
    // What is read right before its deletion never is what its listing shows.
    one.hooks.read = async (resource, real) => {
      const read = await real()
      if (read.kind !== 'present' || resource.nativeId !== first) return read
      return { ...read, found: { ...read.found, labels: { ...read.found.labels, cost: 'unit-7' } } }
    }
    const dropped = (): Promise<unknown> => removalWhen(one, 'it is dropped', (row) => row.state === 'gave-up')
    await quarantine(one)
    await dropped()
    const [before] = await removals(one)
    const second = (await one.orphan()).cloudID
    expect(first < second).toBe(true)
    await one.sweep()
    const plan = await one.sweep(graceSeconds + 60)
    expect(plan.plan?.removals).toEqual([`simulated/sim-a/${second}`])
    await one.gone(second)
    // The twin: with nobody else in the line it is tried again, in the same removal.
    const again = await one.sweep()
    expect(again.plan?.removals).toEqual([`simulated/sim-a/${first}`])
    await until(async () => (await one.events('removal.dropped')).length > 1, 'it is dropped once more')
    const [after] = await removals(one)
    expect(after?.id).toBe(before?.id)
    expect(after?.begun_at).toBe(before?.begun_at)
    expect(after?.continued_at).toBeGreaterThan(after?.begun_at ?? Infinity)
    expect(one.isRunning(first)).toBe(true)
  })
})
