/** What somebody does to a group, or says of it, while it is being taken back. */
import { afterEach, expect, it } from 'vitest'
import { addHold } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases, type Case } from '../cases/support.ts'
import { findings, groupOn, release, removalOf, removalWhen } from './support.ts'

eachStore('a removal under attack', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())
  const world = async (config: Record<string, unknown> = {}): Promise<Case> =>
    cases.open(await open(), { config: { group: 'full', ...config } })
  const removed = (one: Case): string[] => one.calls.filter((call) => call.op === 'remove').map((call) => call.id)

  it.each(['keep', 'delete'] as const)(
    'a hold on any companion, told before the release, stops all of it in the very pass that binds it (cascade: %s)',
    async (cascade) => {
      const one = await world({ cascade })
      const { lease, ids } = await groupOn(one)
      await addHold(one.engine.context, root, { targetType: 'resource', targetID: `simulated/sim-a/${ids.disk}`, reason: 'mine' })
      await release(one, lease)
      await removalWhen(
        one,
        'it is held or over',
        (row) => row.lock_owner === null && (row.held_by !== null || row.state === 'gone' || row.failed_at !== null),
      )
      expect(removed(one)).toEqual([])
      expect(one.running()).toHaveLength(4)
    },
  )

  it('a machine alone, to which somebody attaches a disk that would go with it after it was bound, is not taken; without it, it goes', async () => {
    const one = await world({ group: 'machine' })
    const lease = await one.lease()
    one.hooks.remove = async () => ({ kind: 'retryLater', why: 'busy', afterSeconds: null })
    await release(one, lease)
    await removalWhen(one, 'it was asked for once', (row) => row.failures === 1 && row.lock_owner === null)
    one.hooks.remove = undefined
    const [disk] = one.cloud.launch([{ kind: 'disk', location: 'sim-a', name: 'theirs', tags: {} }]).resources
    one.cloud.attach({ member: disk?.id ?? '', target: lease.cloudID, onEnd: 'delete' })
    for (let i = 0; i < 3; i++) {
      await one.advance(300)
      await removalWhen(one, 'it is looked at', (row) => row.failures >= 2 + i && row.lock_owner === null)
    }
    expect(removed(one)).toHaveLength(1)
    expect(one.running().toSorted()).toEqual([lease.cloudID, disk?.id ?? ''].toSorted())
    expect(await findings(one)).toEqual(['contradiction'])
    one.cloud.database.run('delete from attachments')
    await one.advanceUntil(() => !one.isRunning(lease.cloudID), 'it goes', 300)
    expect(one.isRunning(disk?.id ?? '')).toBe(true)
  })

  it('a hold on the lease stops also the removal that a sweep ordered, up to its intent', async () => {
    const one = await world({ group: 'machine' })
    const orphan = await one.orphan()
    await one.lease()
    await one.sweep()
    let reads = 0
    one.hooks.read = async (_, real) => {
      if (reads++ === 0) await addHold(one.engine.context, root, { targetType: 'lease', targetID: orphan.id, reason: 'mine' })
      return real()
    }
    await one.sweep(graceSeconds + 60)
    const row = await removalWhen(one, 'it is held', (each) => each.held_by !== null)
    expect(row.held_by).toMatch(/^hold /)
    expect(removed(one)).toEqual([])
  })

  it('an account that nobody can read is a failure that shows, with its next try, and not silence (leases R40)', async () => {
    const one = await world({ group: 'machine' })
    const lease = await one.lease()
    const scope = one.provider.scope.bind(one.provider)
    one.provider.scope = async () => {
      throw new Error('401 ExpiredToken')
    }
    await one.restart()
    await release(one, lease)
    const { cleanup } = await until(async () => {
      const view = await one.leaseView(lease.id)
      return view.cleanup.state === 'failed' ? view : undefined
    }, 'it is told')
    expect(cleanup.error).toContain('401 ExpiredToken')
    expect(cleanup.retryAt).not.toBeNull()
    // The twin: readable again, it goes.
    one.provider.scope = scope
    await one.advanceUntil(() => !one.isRunning(lease.cloudID), 'it goes', 300)
  })

  it('a member that was proved gone by a lie and is there again is told of, and nothing is called gone (leases R83)', async () => {
    const one = await world()
    const { lease, ids } = await groupOn(one)
    let lied = false
    one.hooks.remove = async (resource, real) => (resource.kind === 'disk' ? { kind: 'accepted', requestId: 'x' } : real())
    one.hooks.read = async (resource, real) => {
      if (resource.kind !== 'disk' || lied || one.count('remove', ids.disk) === 0) return real()
      lied = true
      return { kind: 'absent', proof: 'a lie', contradictions: [] }
    }
    await release(one, lease)
    await one.advanceUntil(async () => (await removalOf(one)).failures > 0, 'it is told', 60)
    expect((await removalOf(one)).error).toMatch(/was proved gone, and is there again/)
    expect(await one.events('removal.gone')).toEqual([])
    expect(one.isRunning(ids.disk)).toBe(true)
  })

  it('a machine that is gone before its companions are listed proves nothing of them (I5)', async () => {
    const one = await world({ visibilitySeconds: 60 })
    const { lease, ids } = await groupOn(one)
    one.fault('list', 'lag', { lengthMs: 60_000 })
    one.cloud.end(ids.machine)
    await release(one, lease)
    for (let i = 0; i < 20; i++) await one.advance(60)
    await until(async () => (await removalOf(one)).lock_owner === null, 'it is free')
    const { state } = await removalOf(one)
    const left = one.running().filter((id) => Object.values(ids).includes(id))
    // Either a person is asked about what is missing, or all of it is gone: never "gone" beside what runs.
    expect(state === 'gone').toBe(left.length === 0)
  })
})
