/** A person's word on what is gone, held to what is read afterwards; and what needs nobody's word. */
import { afterEach, expect, it } from 'vitest'
import { getRemoval } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import { gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { openCases, type Case } from '../cases/support.ts'
import {
  acknowledge,
  afterMachine,
  findings,
  groupOn,
  isStopped,
  order,
  progress,
  release,
  removalOf,
  removalWhen,
  vanish,
  type Ids,
} from './support.ts'

const reason = 'deleted by hand on Monday'

eachStore('a word that something is gone', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())
  const world = async (config: Record<string, unknown> = {}): Promise<Case> =>
    cases.open(await open(), { config: { group: 'full', ...config } })
  const gone = (one: Case) => removalWhen(one, 'the group is proved gone', (row) => row.state === 'gone')
  /** A read lies that the nic is not there; then nobody lies any more. */
  const stopByLie = async (one: Case): Promise<Ids> => {
    const ids = await afterMachine(one, ({ nic }) => {
      one.hooks.read = async (resource, real) =>
        resource.nativeId === nic ? { kind: 'absent', proof: 'not found', contradictions: [] } : real()
    })
    await removalWhen(one, 'it stops', isStopped)
    one.hooks.read = undefined
    return ids
  }

  it('lapses once it is read again: the removal says so and takes it back itself, with a call of its own (leases R91)', async () => {
    const one = await world()
    const ids = await stopByLie(one)
    const stalled = gate()
    one.hooks.remove = async (_, real) => {
      await stalled.promise
      return real()
    }
    await acknowledge(one, reason)
    await removalWhen(one, 'the word lapsed', (row) => row.acknowledged === '[]')
    const said = `nic ${ids.nic} is there, and pat had said that it is gone: that counts no more`
    expect((await getRemoval(one.engine.context, root, (await removalOf(one)).id)).reason).toBe(said)
    expect((await one.events('removal.acknowledgement-lapsed')).map(({ event }) => JSON.parse(event.payload))).toEqual([
      { missing: `nic ${ids.nic}`, by: 'pat' },
    ])
    stalled.open()
    expect(progress(await gone(one))).toEqual(order.map((kind) => ids[kind]))
    expect(one.count('remove', ids.nic)).toBe(1)
    expect(await findings(one)).toEqual([])
  })

  it('that has lapsed explains nothing: when it vanishes afterwards, a person is asked again (leases R80, R91)', async () => {
    const one = await world()
    const ids = await stopByLie(one)
    one.hooks.remove = async (_, real) => {
      await real()
      return { kind: 'unknown', error: 'socket closed' }
    }
    await acknowledge(one, reason)
    await removalWhen(one, 'the call fails', (row) => row.failures === 1)
    await one.advance(300)
    const stopped = await removalWhen(one, 'it stops again', isStopped)
    expect(stopped.error).toContain(`nic ${ids.nic} of its group is gone`)
    expect(await findings(one)).toEqual(['unexplained-absence'])
    expect(one.running().toSorted()).toEqual([ids.disk, ids.ip].toSorted())
  })

  it('of a kind that was missing before anything was bound lapses too, and what is back goes with the others (leases R77, R91)', async () => {
    const one = await world()
    const { lease, ids } = await groupOn(one)
    const putBack = vanish(one, ids.ip)
    await release(one, lease)
    await removalWhen(one, 'it is refused', isStopped)
    putBack()
    one.cloud.attach({ member: ids.ip, target: ids.nic, onEnd: 'keep' })
    await acknowledge(one, reason)
    await gone(one)
    expect(one.running()).toEqual([])
    expect(one.count('remove', ids.ip)).toBe(1)
    expect((await one.events('removal.acknowledgement-lapsed')).map(({ event }) => JSON.parse(event.payload))).toEqual([
      { missing: 'a ip', by: 'pat' },
    ])
    // The twin: while it is gone the word stands.
    const other = await world()
    const second = await groupOn(other)
    vanish(other, second.ids.ip)
    await release(other, second.lease)
    await removalWhen(other, 'it is refused', isStopped)
    await acknowledge(other, reason)
    await gone(other)
    expect(await other.events('removal.acknowledgement-lapsed')).toEqual([])
  })

  it('is not needed for what went with a member that our own recorded answer explains; where the answer was lost it is (leases R80)', async () => {
    for (const recorded of [true, false]) {
      const one = await world({ cascade: 'delete', deleteSeconds: 600 })
      const { lease, ids } = await groupOn(one)
      one.hooks.remove = async (resource, real) => {
        const answer = await real()
        // The cloud takes it along before the machine itself is gone.
        if (resource.kind === 'machine') vanish(one, ids.nic)
        return recorded ? answer : { kind: 'unknown', error: 'socket closed' }
      }
      await release(one, lease)
      if (recorded) {
        await one.advanceUntil(async () => progress(await removalOf(one)).includes(ids.nic), 'the nic is explained', 5)
        expect(one.isRunning(ids.machine)).toBe(true)
        await one.advanceUntil(async () => (await removalOf(one)).state === 'gone', 'the group is gone')
        expect(await findings(one)).toEqual([])
      } else {
        await removalWhen(one, 'the call fails', (row) => row.failures === 1)
        await one.advance(300)
        expect((await removalWhen(one, 'it stops', isStopped)).error).toContain(`nic ${ids.nic} of its group is gone`)
      }
    }
  })
})
