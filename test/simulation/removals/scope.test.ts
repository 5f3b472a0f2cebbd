/** Which account a removal is of, and what an account that can't be read means for one that nobody may try. */
import { afterEach, expect, it } from 'vitest'
import { addFreeze, addHold, removeFreeze, removeHold } from '../../../src/engine/admin/index.ts'
import type { InspectOutcome } from '../../../src/providers/contract.ts'
import { root } from '../../support/engine.ts'
import { gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { openCases, type Case } from '../cases/support.ts'
import { findings, groupOn, release, removalOf, removalWhen } from './support.ts'

eachStore('the account of a removal', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('must be that of its attempt and of all that it bound: else nothing is called, and a person is told (leases R75)', async () => {
    for (const what of ['attempt', 'member', 'nothing'] as const) {
      const one = await cases.open(await open())
      const lease = await one.lease()
      const reading = gate()
      one.hooks.read = async () => {
        await reading.promise
        return { kind: 'unknown', error: 'HTTP 500' } as const
      }
      await release(one, lease)
      await until(() => one.count('read') > 0, 'it is read')
      reading.open()
      await removalWhen(one, 'it has failed', (row) => row.failures === 1)
      one.hooks.read = undefined
      const foreign = [
        { scope: 'simulated:other', location: 'sim-a', kind: 'machine', nativeId: lease.cloudID, immutableId: lease.cloudID, facts: {} },
      ]
      await one.store.write(async (tx) => {
        if (what === 'attempt')
          await tx.db
            .updateTable('attempts')
            .set({ scope: 'simulated:other' as never })
            .execute()
        if (what === 'member')
          await tx.db
            .updateTable('removals')
            .set({ identity: JSON.stringify(foreign) })
            .execute()
      })
      await one.advance(300)
      if (what === 'nothing') {
        await removalWhen(one, 'it is gone', (row) => row.state === 'gone')
        continue
      }
      const row = await removalWhen(one, 'it waits for a person', (now) => now.due_at === null)
      expect(row.error).toMatch(/^nothing was touched: .*simulated:other/)
      expect(await findings(one)).toEqual(['removal-needs-person'])
      expect(one.count('remove')).toBe(0)
      expect(one.isRunning(lease.cloudID)).toBe(true)
    }
  })

  it('must be that of everything that its group shows before anything is bound (leases R75, R77)', async () => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { lease, ids } = await groupOn(one)
    const inspect = one.provider.inspect?.bind(one.provider)
    one.provider.inspect = async (group, config, context): Promise<InspectOutcome> => {
      const seen = await inspect?.(group, config, context)
      if (seen?.kind !== 'complete') throw new Error('not inspected')
      const move = (member: (typeof seen.members)[number]) =>
        member.resource.kind === 'disk' ? { ...member, resource: { ...member.resource, scope: 'simulated:other' as never } } : member
      return { kind: 'complete', members: seen.members.map(move) }
    }
    await release(one, lease)
    const row = await removalWhen(one, 'it has failed', (now) => now.failures === 1)
    expect(row).toMatchObject({ identity: null })
    expect(row.error).toContain(`disk ${ids.disk} of its group: it is of account simulated:other`)
    expect(one.count('remove')).toBe(0)
    // The twin: of this account it goes.
    if (inspect) one.provider.inspect = inspect
    await one.advance(300)
    await removalWhen(one, 'it is gone', (now) => now.state === 'gone')
  })

  const unreadable = (one: Case): (() => void) => {
    const scope = one.provider.scope.bind(one.provider)
    one.provider.scope = async () => {
      throw new Error('401 ExpiredToken')
    }
    return () => void (one.provider.scope = scope)
  }

  it.each(['a hold', 'a freeze'] as const)(
    'that can not be read fails nothing that %s holds, however often it is looked at; without it, it has failed (leases R40)',
    async (by) => {
      const one = await cases.open(await open())
      const lease = await one.lease()
      const { context } = one.engine
      const hold = by === 'a hold' ? await addHold(context, root, { targetType: 'lease', targetID: lease.id, reason: 'mine' }) : null
      if (!hold) await addFreeze(context, root, { reason: 'stop' })
      const mend = unreadable(one)
      await one.restart()
      await release(one, lease)
      for (let i = 0; i < 5; i++) {
        const fence = (await removalOf(one)).lock_fence
        const wasLookedAt = async (): Promise<boolean> => {
          const row = await removalOf(one)
          return row.lock_fence > fence && row.lock_owner === null
        }
        await one.advanceUntil(wasLookedAt, 'it is looked at', 400)
      }
      expect(await removalOf(one)).toMatchObject({ failures: 0, failed_at: null, first_failed_at: null, retry_at: null })
      expect(await one.events('removal.failed')).toEqual([])
      expect((await one.leaseView(lease.id)).cleanup.state).not.toBe('failed')
      // The twin: what nobody holds has failed, with its next try.
      if (hold) await removeHold(one.engine.context, root, hold.id)
      else await removeFreeze(one.engine.context, root, '*')
      await one.advance(400)
      const failed = await removalWhen(one, 'it has failed', (row) => row.failures > 0 && row.lock_owner === null)
      expect(failed.error).toContain('401 ExpiredToken')
      mend()
      await one.advanceUntil(() => !one.isRunning(lease.cloudID), 'it goes', 300)
    },
  )
})
