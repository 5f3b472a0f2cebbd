/** A removal of four members, killed and stalled at every one of its steps. */
import { afterEach, expect, it } from 'vitest'
import { acknowledgeAbsence, getRemoval } from '../../../src/engine/admin/index.ts'
import { readReceipt } from '../../../src/engine/receipt/index.ts'
import type { LeaseView } from '../../../src/model/wire.ts'
import type { ResourceIdentity } from '../../../src/providers/contract.ts'
import { loadRemovals } from '../../../src/engine/remove-load.ts'
import { applyProgress } from '../../../src/engine/remove-members.ts'
import { identitiesOf } from '../../../src/engine/removal-row.ts'
import { lockDue } from '../../../src/store/due.ts'
import { removalsByIds, type RemovalRow } from '../../../src/store/removals.ts'
import { root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { openCases, type Case } from '../cases/support.ts'
import { runToEnd, startProcess, type Fate, type Process } from './dying.ts'
import { groupsOn, order, progress, release, type Ids } from './support.ts'

/** More than a removal has. */
const mostSteps = 60
/** Each step is a removal of its own, and the databases share the machine. */
const patience = 240_000

interface Group {
  lease: LeaseView
  ids: Ids
  removalId: string
}

eachStore('a removal of four members', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())
  const world = async (): Promise<Case> => cases.open(await open(), { config: { group: 'full' } })

  /** Groups of released leases, one after the other; the engine that made them does not run any more. */
  const groups = async function* (one: Case, count = mostSteps): AsyncGenerator<Group> {
    const many = await groupsOn(one, count)
    await one.engine.stop(0)
    for (const group of many) {
      const { cleanup } = await release(one, group.lease)
      yield { ...group, removalId: cleanup.removalID ?? '' }
    }
  }
  const lives: Fate = { kind: 'lives' }
  const unexplained = async (one: Case, group: Group): Promise<number> =>
    (await one.open()).filter((row) => row.code === 'unexplained-absence' && row.target_id === group.lease.instanceID).length
  const override = async (one: Case, group: Group): Promise<void> => {
    const { fingerprint } = await getRemoval(one.engine.context, root, group.removalId)
    await acknowledgeAbsence(one.engine.context, root, group.removalId, { fingerprint, reason: 'its process died' })
  }
  const deletions = (group: Group, ...processes: Process[]): string[] =>
    processes
      .flatMap((process) => process.removes)
      // What was absent already has no request of its own.
      .filter(({ answer }) => answer.kind === 'gone' && answer.requestId !== null)
      .map(({ id }) => id)
      .filter((id) => Object.values(group.ids).includes(id))
  const expectGone = async (one: Case, group: Group, row: RemovalRow): Promise<void> => {
    const all = order.map((kind) => group.ids[kind])
    expect(row.state).toBe('gone')
    expect(progress(row)).toEqual(all)
    expect(one.running().filter((id) => all.includes(id))).toEqual([])
    expect(await unexplained(one, group)).toBe(0)
    expect((await one.leaseView(group.lease.id)).cleanup.state).toBe('gone')
  }

  it(
    'killed at every step and started again it converges with a complete receipt; only between an answer and its record it stops, once, for a person (leases R43, R77-R80, R91)',
    async () => {
      const one = await world()
      const stoppedAt: string[] = []
      let at = 0
      for await (const group of groups(one)) {
        const dying = await startProcess(one, one.provider, { kind: 'killed', at })
        await runToEnd(one, dying, group.removalId)
        const name = dying.steps[at]
        const survivor = await startProcess(one, one.provider, lives)
        let row = await runToEnd(one, survivor, group.removalId)
        const lost = name?.startsWith('remove ') === true
        expect(row.state, `killed at step ${at}, ${name}`).toBe(lost ? 'removing' : 'gone')
        if (lost) {
          stoppedAt.push(name)
          expect(await unexplained(one, group)).toBe(1)
          await override(one, group)
          row = await runToEnd(one, survivor, group.removalId)
        }
        await expectGone(one, group, row)
        // Each was deleted by one call, whoever made it.
        expect(deletions(group, dying, survivor).toSorted()).toEqual(Object.values(group.ids).toSorted())
        const receipt = await readReceipt(one.engine.context, root, group.removalId)
        expect(receipt.removals).toMatchObject([{ verdict: 'deleted', state: 'gone' }])
        expect(new Set(receipt.removals[0]?.proofs.map((proof) => proof.resource.nativeID))).toEqual(new Set(Object.values(group.ids)))
        if (!lost)
          expect(receipt.removals[0]?.calls.filter((call) => call.answer !== null).map((call) => call.resource.nativeID)).toEqual(
            order.map((kind) => group.ids[kind]),
          )
        if (name === undefined) break
        at++
      }
      expect(stoppedAt).toEqual(order.map((kind) => `remove ${kind}`))
      expect(at).toBeGreaterThan(30)
      expect(at).toBeLessThan(mostSteps)
    },
    patience,
  )

  it.each(['stalled-before', 'stalled-after'] as const)(
    'one worker %s every step while another takes over: the longer progress stays, nothing is deleted twice, and who lost its lock calls nothing (leases R47, R81, R82, I3)',
    async (kind) => {
      const one = await world()
      const stoppedAt: string[] = []
      let at = 0
      for await (const group of groups(one)) {
        const stalled = await startProcess(one, one.provider, { kind, at })
        const before = await runToEnd(one, stalled, group.removalId)
        const name = stalled.steps[at]
        const what = `${kind} step ${at}, ${name}`
        const other = await startProcess(one, one.provider, lives)
        // Its lock ends by the clock, and the other has it.
        const taken = await runToEnd(one, other, group.removalId)
        expect(progress(taken).length, what).toBeGreaterThanOrEqual(progress(before).length)
        stalled.resume()
        await Promise.all(stalled.begun)
        const after = await runToEnd(one, stalled, group.removalId)
        expect(progress(after).length, what).toBeGreaterThanOrEqual(progress(taken).length)
        if (taken.state === 'gone') expect(after, what).toEqual(taken)
        // A request that was on its way already can't be called back; it names an immutable id, and finds nothing.
        const onItsWay = kind === 'stalled-before' && name?.startsWith('remove ') === true
        const late = stalled.removes.filter((call) => call.afterResume)
        expect(late.length, what).toBe(onItsWay ? 1 : 0)
        let row = after
        if (row.state !== 'gone') {
          // The answer was on its way to the record while the other looked: it stopped, and now that it is there nobody needs to say anything.
          stoppedAt.push(stalled.steps[kind === 'stalled-after' ? at : at - 1] ?? '')
          expect(await unexplained(one, group)).toBe(1)
          await release(one, group.lease)
          row = await runToEnd(one, other, group.removalId)
        }
        await expectGone(one, group, row)
        expect(deletions(group, stalled, other).toSorted(), what).toEqual(Object.values(group.ids).toSorted())
        if (name === undefined) break
        at++
      }
      expect(stoppedAt).toEqual(order.map((member) => `remove ${member}`))
      expect(at).toBeGreaterThan(30)
      expect(at).toBeLessThan(mostSteps)
    },
    patience,
  )

  it('who lost the lock writes no progress; who has it never shortens it, and what diverges is an error (leases R81, R82)', async () => {
    const one = await world()
    const { value: group } = (await groups(one, 1).next()) as { value: Group }
    const worker = await startProcess(one, one.provider, lives)
    const stored = async (): Promise<RemovalRow> =>
      (await one.store.read((session) => removalsByIds(session, [group.removalId])))[0] as RemovalRow
    const untilProgress = async (length: number): Promise<RemovalRow> => {
      for (;;) {
        const row = await stored()
        if (progress(row).length >= length) return row
        await worker.pass()
      }
    }
    const early = await untilProgress(1)
    const late = await untilProgress(2)
    const [work] = await loadRemovals(one.store, [group.removalId])
    if (!work) throw new Error('it is gone already')
    const identities = identitiesOf(late)
    const write = (fence: number, removal: RemovalRow, member: number) =>
      one.store.write((tx) =>
        applyProgress(tx, {
          held: { id: group.removalId, fence, signal: new AbortController().signal },
          work: { ...work, removal },
          identity: identities[member] as ResourceIdentity,
          proof: 'not found',
        }),
      )
    const [locked] = await one.store.write((tx) => lockDue(tx, 'removals', 're_test', 10, 30_000))
    const fence = locked?.fence ?? 0
    expect(await write(fence - 1, early, 1)).toBeUndefined()
    await expect(write(fence, early, 3)).rejects.toThrow(/the stored progress has/)
    expect(progress(await stored())).toEqual(progress(late))
    // The twin: with the lock, the same again is merged into the longer one.
    expect(await write(fence, { ...early, progress: '[]' }, 0)).toEqual(progress(late))
  })
})
