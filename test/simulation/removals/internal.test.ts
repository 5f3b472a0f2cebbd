/** A machine's own disk that carries no tags: taken in by what was fixed at its creation and by its edge, and by nothing less (leases R85). */
import { afterEach, expect, it } from 'vitest'
import type { Actor } from '../../../src/engine/actor.ts'
import { addHold, closeRemoval, getRemoval } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, openCases, type Case } from '../cases/support.ts'
import { approver, findings, groupOn, order, progress, release, removals, removalOf, removalWhen, vanish, type Ids } from './support.ts'

eachStore('an untagged disk of a released machine', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  const untagged = async (): Promise<{ one: Case; ids: Ids; release: () => Promise<unknown>; theirs: string }> => {
    const one = await cases.open(await open(), { config: { group: 'full' } })
    const { lease, ids } = await groupOn(one)
    one.cloud.setTags(ids.disk, {})
    const theirs = one.cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'theirs', tags: {} }]).resources[0]?.id ?? ''
    return { one, ids, theirs, release: () => release(one, lease) }
  }
  const refused = (one: Case) => removalWhen(one, 'it is refused', (row) => row.failures > 0 && row.lock_owner === null)

  it('goes with its group, last and by a call of its own (leases R85)', async () => {
    const { one, ids, theirs, release: go } = await untagged()
    await go()
    const row = await removalWhen(one, 'it is gone', (now) => now.state === 'gone')
    expect(progress(row)).toEqual(order.map((kind) => ids[kind]))
    expect(one.running()).toEqual([theirs])
    expect(await findings(one)).toEqual([])
  })

  it('can be held by an operator of its own project, who is not told that nobody has seen it; one of another can not', async () => {
    const { one, ids } = await untagged()
    const input = { targetType: 'resource', targetID: `simulated/sim-a/${ids.disk}`, reason: 'a look at it' } as const
    const operator = (project: string): Actor => ({ name: 'opal', role: 'operator', project, onlyLease: null })
    await expect(addHold(one.engine.context, operator('elsewhere'), input)).rejects.toMatchObject({ code: 'not_found' })
    for (const actor of [operator('default'), root]) {
      const hold = await addHold(one.engine.context, actor, input)
      expect(hold.project).toBe('default')
      expect(hold).not.toHaveProperty('warning')
    }
    // The twin: a disk that was made by another request is nobody's here.
    one.cloud.database.run("update resources set token = 'other' where kind = 'disk'")
    await expect(addHold(one.engine.context, operator('default'), input)).rejects.toMatchObject({ code: 'not_found' })
  })

  it.each([
    [
      'carries a tag of somebody else',
      ({ one, ids }) => one.cloud.setTags(ids.disk, { team: 'theirs' }),
      /tag no longer says that it is ours/,
    ],
    [
      'stands on another machine too',
      ({ one, ids, theirs }) => one.cloud.attach({ member: ids.disk, target: theirs, onEnd: 'keep' }),
      /not attached to machine .* alone/,
    ],
    [
      'was made by another request',
      ({ one }) => one.cloud.database.run("update resources set token = 'other' where kind = 'disk'"),
      /there is no disk of it/,
    ],
    ['has tags that nobody can read', ({ one, ids }) => one.cloud.setTags(ids.disk, null), /tag no longer says that it is ours/],
  ] as [string, (world: Awaited<ReturnType<typeof untagged>>) => unknown, RegExp][])(
    'that %s is not taken in, and nothing of its group is called (leases R85)',
    async (_, change, error) => {
      const world = await untagged()
      change(world)
      await world.release()
      const row = await refused(world.one)
      expect(row.error).toMatch(error)
      expect(row).toMatchObject({ identity: null, progress: '[]' })
      expect(world.one.count('remove')).toBe(0)
      expect(world.one.isRunning(world.ids.disk)).toBe(true)
    },
  )

  it.each([
    ['an edge', ({ one, ids, theirs }) => one.cloud.attach({ member: ids.disk, target: theirs, onEnd: 'keep' }), /now attached to/],
    ['a tag', ({ one, ids }) => one.cloud.setTags(ids.disk, { team: 'theirs' }), /was taken in without tags, and carries some by now/],
  ] as [string, (world: Awaited<ReturnType<typeof untagged>>) => unknown, RegExp][])(
    'that got %s between its binding and the fresh read before the first call stops all of it (leases R85)',
    async (_, change, error) => {
      const world = await untagged()
      let changed = false
      world.one.hooks.read = async (resource, real) => {
        // Before it is bound only the machine is read.
        if (resource.kind === 'disk' && !changed) {
          changed = true
          change(world)
        }
        return real()
      }
      await world.release()
      const row = await refused(world.one)
      expect(row.error).toMatch(error)
      expect(row.identity).toContain(world.ids.disk)
      expect(world.one.count('remove')).toBe(0)
    },
  )

  it.each([true, false])(
    'that gets tags while its group goes, and exactly those of its group: %s, goes with it, and with one more it stops until a person closes it (leases R85, orphans R91)',
    async (exactly) => {
      const { one, ids, release: go } = await untagged()
      const tags = one.cloud.get(ids.machine)?.tags ?? {}
      one.hooks.remove = async (resource, real) => {
        const answer = await real()
        if (resource.kind === 'ip') one.cloud.setTags(ids.disk, exactly ? tags : { ...tags, team: 'theirs' })
        return answer
      }
      await go()
      if (exactly) {
        const row = await removalWhen(one, 'it is gone', (now) => now.state === 'gone')
        expect(progress(row)).toEqual(order.map((kind) => ids[kind]))
        return
      }
      const { id } = await refused(one)
      await expect(closeRemoval(one.engine.context, approver, id, { reason: 'too early' })).rejects.toMatchObject({
        code: 'removal_not_stopped',
      })
      await one.advanceUntil(async () => (await removalOf(one)).failures >= 3, 'it fails again and again', 301)
      const row = await removalWhen(one, 'it rests', (now) => now.lock_owner === null)
      expect(row.error).toMatch(/labels of disk .* have changed/)
      expect(one.isRunning(ids.disk)).toBe(true)
      expect((await getRemoval(one.engine.context, root, id)).nextStep).toContain(`leasehold removal close ${id}`)
      const closed = await closeRemoval(one.engine.context, approver, id, { reason: 'theirs by now' })
      expect(closed).toMatchObject({ state: 'closed', left: [expect.stringContaining(ids.disk)] })
    },
  )

  it.each([true, false])(
    'that a given-up removal leaves, untagged: %s, is promised to no sweep, which can not see it: a person is needed (leases R85, orphans R96)',
    async (bare) => {
      const { one, ids, release: go } = await untagged()
      if (!bare) one.cloud.setTags(ids.disk, one.cloud.get(ids.machine)?.tags ?? {})
      one.hooks.remove = async (resource, real) => (resource.kind === 'disk' ? { kind: 'unknown', error: 'no answer' } : real())
      await go()
      await one.store.write((tx) => tx.db.updateTable('removals').set({ cause: 'create-interrupted' }).execute())
      await one.advanceUntil(async () => (await removals(one))[0]?.state === 'gave-up', 'it is given up', 60)
      const { id } = await removalOf(one)
      const { nextStep } = await getRemoval(one.engine.context, root, id)
      const manual = await one.events('terminate.gave-up.manual')
      expect(manual.length).toBe(bare ? 1 : 0)
      expect((await one.events('terminate.gave-up.cleanup-retries')).length).toBe(bare ? 0 : 1)
      expect(await findings(one)).toEqual(bare ? ['removal-needs-person'] : [])
      expect(nextStep.startsWith(bare ? 'end it by hand' : 'a sweep that finds it')).toBe(true)
      if (bare) expect(manual[0]?.event.message).toContain(ids.disk)
      one.hooks.remove = undefined
      await one.sweep()
      await one.sweep(graceSeconds + 60)
      if (!bare) {
        await one.gone(ids.disk)
        return
      }
      vanish(one, ids.disk)
      await one.advanceUntil(async () => (await removalOf(one)).state === 'gone', 'a look finds it gone', 600)
      expect(await findings(one)).toEqual([])
    },
  )

  it.each([
    ['bears the token of the attempt', true],
    ['was made by another request', false],
  ] as const)('whose machine went by itself and that %s is never said not to be there (leases R85, R80)', async (_, ours) => {
    const { one, ids, release: go } = await untagged()
    if (!ours) one.cloud.database.run("update resources set token = 'other' where kind = 'disk'")
    vanish(one, ids.machine)
    await one.advance(60)
    await go()
    const row = await refused(one)
    expect(one.count('remove')).toBe(0)
    expect(row.error).toMatch(ours ? /carries no tags, and no living machine of its group/ : /there is no disk of it/)
    expect(row.stopped === null).toBe(ours)
    expect(await findings(one)).toEqual([ours ? 'contradiction' : 'removal-needs-person'])
    expect(one.isRunning(ids.disk)).toBe(true)
  })

  it('that a machine left which ended by itself is named where the machine is told missing, since nothing else ever shows it (leases R85)', async () => {
    const { one, ids } = await untagged()
    vanish(one, ids.machine)
    await one.sweep(600)
    await one.sweep(600)
    const [missing] = (await one.open()).filter((row) => row.code === 'missing')
    const said = `nothing of ours removed it; it left nic ${ids.nic}, ip ${ids.ip}, which sweeps take back; it left what carries no tag, .*: disk ${ids.disk}`
    expect(missing?.message).toMatch(new RegExp(`${said}\\. End it by hand$`))
    expect(one.isRunning(ids.disk)).toBe(true)
  })

  it('is told apart from what carries tags, which sweeps go on with, or report where they may not', async () => {
    const one = await cases.open(await open(), { mode: 'report', config: { group: 'full' } })
    const { ids } = await groupOn(one)
    vanish(one, ids.machine)
    await one.sweep(600)
    await one.sweep(600)
    const [missing] = (await one.open()).filter((row) => row.code === 'missing')
    const left = `it left nic ${ids.nic}, ip ${ids.ip}, disk ${ids.disk}, which sweeps report and, in mode report, leave alone`
    expect(missing?.message).toMatch(new RegExp(`${left}$`))
  })
})
