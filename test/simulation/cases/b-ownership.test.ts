/** Class B: ownership too weak, copied, or ambiguous. */
import { afterEach, expect, it } from 'vitest'
import { addFreeze, removeFreeze } from '../../../src/engine/admin/index.ts'
import { createHeartbeat, createLease, releaseLease, settledLease } from '../../../src/engine/leases/index.ts'
import type { ListingItem } from '../../../src/providers/contract.ts'
import { ann, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, openCases, requestKey, type Case } from './support.ts'

/** A deterministic shuffle, so that what fails can be run again. */
const shuffled = <T>(items: readonly T[], seed: number): T[] => {
  const left = [...items]
  const mixed: T[] = []
  let state = seed * 2_654_435_761 + 1
  while (left.length > 0) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    mixed.push(...left.splice(state % left.length, 1))
  }
  return mixed
}

const byKey = ([a]: [string, number], [b]: [string, number]): number => (a < b ? -1 : 1)

/** Twice seen and past the grace: whatever may go, goes. */
const sweepOut = async (one: Case): Promise<void> => {
  await one.sweep()
  await one.sweep(graceSeconds + 60)
  await one.sweep()
}

eachStore('ownership', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it('another installation’s machine is foreign, whatever else it carries, and is counted as that (case B1)', async () => {
    const one = await cases.open(await open())
    const machine = await one.orphan()
    const token = (await one.attemptOf(machine)).token
    const tags = { leasehold_ref: machine.ref, leasehold_installation: 'zzzzzzzz', leasehold_attempt: token }
    const theirs = await one.launch(machine, 'machine', { tags, token: null })
    const alsoTheirs = await one.launch(machine, 'machine', { tags: { ...tags, leasehold_ref: 'r00000000001' }, token: null })
    const view = await one.sweep()
    expect(view.verdicts['foreign.other-installation']).toBe(2)
    await one.sweep(graceSeconds + 60)
    await one.gone(machine.cloudID)
    await one.sweep()
    // The twin among them, with our own installation's id, was taken back; these stand.
    expect(one.running()).toEqual([theirs.id, alsoTheirs.id])
    expect(await one.told()).toEqual([])
  })

  it('the machine that we recorded, with another installation’s tag on it, is reported and left alone (case B1)', async () => {
    const one = await cases.open(await open())
    const machine = await one.orphan()
    const tags = one.cloud.get(machine.cloudID)?.tags ?? {}
    one.cloud.setTags(machine.cloudID, { ...tags, leasehold_installation: 'zzzzzzzz' })
    await sweepOut(one)
    expect(one.isRunning(machine.cloudID)).toBe(true)
    expect(await one.told()).toEqual([`contradiction ${machine.cloudID}`])
    // The twin: with its own tag again it is taken back.
    one.cloud.setTags(machine.cloudID, tags)
    await sweepOut(one)
    await one.gone(machine.cloudID)
  })

  it('two coordinators with the same names in one account never judge each other’s machines (case B3)', async () => {
    const one = await cases.open(await open())
    const other = await cases.open(await open(), { path: one.cloud.path })
    const mine = await one.lease({ slug: 'same-name' })
    const theirs = await other.lease({ slug: 'same-name' })
    const orphan = await one.orphan()
    await sweepOut(one)
    await other.advance(2 * graceSeconds)
    await sweepOut(other)
    await one.gone(orphan.cloudID)
    expect(one.running()).toEqual([mine.cloudID, theirs.cloudID])
    expect([...(await one.told()), ...(await other.told())]).toEqual([])
    expect(other.count('remove')).toBe(0)
  })

  it('a ref counts letter by letter: what only looks like one is ignored and reported (case B4)', async () => {
    const one = await cases.open(await open())
    const { ref, cloudID } = await one.lease()
    const malformed = ['x', ` ${ref}`, ref.toUpperCase()]
    const ids = malformed.map(
      (text) =>
        one.cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'odd', tags: { 'managed-by': 'us', leasehold_ref: text } }])
          .resources[0]?.id,
    )
    await sweepOut(one)
    expect(one.running()).toEqual([cloudID, ...ids])
    expect(await one.told()).toEqual(ids.map((id) => `malformed-ref ${id}`).toSorted())
    expect(one.count('remove')).toBe(0)
    // The twin: the one that says it exactly, and is held no more, goes.
    const orphan = await one.orphan()
    await sweepOut(one)
    await one.gone(orphan.cloudID)
  })

  it('a removal that waits is for the machine with its id, never for what bears its name later (case B6, B13, leases 8)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    const before = one.cloud.get(lease.cloudID)
    await addFreeze(one.engine.context, root, { reason: 'test' })
    await releaseLease(one.engine.context, ann, lease.id, {})
    await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'held', 'the removal waits')
    one.cloud.end(lease.cloudID)
    const newcomer = await one.launch(lease, 'machine', { name: before?.name ?? '', tags: before?.tags ?? {}, token: null })
    await removeFreeze(one.engine.context, root, '*')
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'what it was for is proved gone', 60)
    await sweepOut(one)
    expect(one.count('remove')).toBe(0)
    expect(one.running()).toEqual([newcomer.id])
    expect(await one.told()).toEqual([`contradiction ${newcomer.id}`])
  })

  it('the twin: without the stop the machine itself goes', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    await releaseLease(one.engine.context, ann, lease.id, {})
    await one.gone(lease.cloudID)
    expect(one.count('remove', lease.cloudID)).toBe(1)
  })

  it('a disk that no attempt made is a contradiction in whatever order it is listed, in 100 shuffles (case B7)', async () => {
    const one = await cases.open(await open(), { mode: 'report', config: { group: 'full' } })
    const live = await one.lease()
    const ended = await one.orphan()
    const disk = await one.launch(ended, 'disk', { token: null })
    await one.advance(60)
    const plain = await one.dryRun()
    expect(plain.verdicts).toMatchObject({ 'contradiction.tags-only': 1 })
    const seen = new Set<string>()
    for (let seed = 0; seed < 100; seed++) {
      one.hooks.list = (items) =>
        shuffled(
          items.map((item): ListingItem => (item.type === 'page' ? { ...item, resources: shuffled(item.resources, seed) } : item)),
          seed,
        )
      const view = await one.dryRun()
      seen.add(JSON.stringify([Object.entries(view.verdicts).toSorted(byKey), view.orphans, view.outcome]))
    }
    expect(seen.size).toBe(1)
    one.hooks.list = undefined
    await one.sweep()
    expect(await one.told()).toContain(`contradiction ${disk.id}`)
    expect(one.running()).toContain(live.cloudID)
  })

  it('a beat counts for the lease whose token it bears: a lease whose machine is gone ends, whoever else beats (case B9)', async () => {
    const one = await cases.open(await open())
    const heartbeat = createHeartbeat(one.engine.context)
    const lease = await one.lease()
    const other = await one.lease()
    one.cloud.end(lease.cloudID)
    const holder = { name: 'box', role: 'user', project: 'default', onlyLease: other.id } as const
    await expect(heartbeat(holder as never, lease.id, {})).rejects.toMatchObject({ code: 'not_found' })
    await one.sweep()
    await one.sweep()
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'failed', failureCode: 'resource_missing' })
    // The twin: for its own lease the same beat is taken, and that lease lives.
    expect(await heartbeat(holder as never, other.id, {})).toMatchObject({ state: 'active' })
  })

  it('a name that is taken is no reason to remove what has it (case B12)', async () => {
    const one = await cases.open(await open())
    const theirs = one.cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'taken', tags: { team: 'x' } }]).resources[0]
    one.hooks.create = async () => ({ kind: 'rejected', code: 'already_exists', message: 'the name is taken' })
    const { lease } = await createLease(one.engine.context, ann, { slug: 'taken' })
    expect(await settledLease(one.engine.context, lease.id, 10_000)).toMatchObject({ state: 'failed', failureCode: 'already_exists' })
    await sweepOut(one)
    expect(one.count('remove')).toBe(0)
    expect(one.running()).toEqual([theirs?.id])
  })

  it('a machine with the right name and tags, made by another request, is never taken for the one that was asked for (case B13)', async () => {
    const one = await cases.open(await open())
    one.hooks.create = async (request) => {
      one.cloud.launch([
        {
          kind: 'machine',
          location: 'sim-a',
          name: request.name,
          tags: {
            leasehold_ref: request.ref,
            leasehold_installation: request.installation,
            leasehold_attempt: request.attemptToken,
            leasehold_mac: request.mac ?? '',
          },
        },
      ])
      return { kind: 'uncertain', message: 'the answer was lost', resource: null }
    }
    const { lease } = await createLease(one.engine.context, ann, { createAttemptID: requestKey() })
    await one.advanceUntil(async () => (await one.open()).some((row) => row.code === 'contradiction'), 'a person is told', 1)
    await one.advance(600)
    await until(() => one.count('find') >= 2, 'it is looked for again')
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'provisioning', cloudID: null })
    expect(one.running()).toHaveLength(1)
    expect(one.count('create')).toBe(1)
    expect(one.count('remove')).toBe(0)
  })

  it('creates that answer an error and make a machine each time: the confirmed one stays, the others go after their quarantine (case B15)', async () => {
    const one = await cases.open(await open())
    const hours = [1, 3]
    for (const hour of hours) {
      one.fault('create', 'lag', { count: 1, lengthMs: hour * 3_600_000 })
      one.fault('create', 'error-after', { count: 1 })
    }
    const { lease } = await createLease(one.engine.context, ann, {
      createAttemptID: requestKey(),
      ttlSeconds: 86_400,
      idleTimeoutSeconds: 86_400,
    })
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).state === 'active', 'the third attempt is confirmed', 61)
    const kept = (await one.leaseView(lease.id)).cloudID ?? ''
    expect(one.count('create')).toBe(3)
    expect(one.running()).toHaveLength(3)
    const others = one.running().filter((id) => id !== kept)
    // They surface one after the other.
    await one.advance(2 * 3_600)
    await sweepOut(one)
    await one.gone(others[0] as string)
    expect(one.isRunning(others[1] as string)).toBe(true)
    await one.advance(2 * 3_600)
    await sweepOut(one)
    await one.gone(others[1] as string)
    expect(one.running()).toEqual([kept])
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'active', cloudID: kept })
  })
})
