/** The cases of orphan cleanup, one by one. */
import { afterEach, expect, it, vi } from 'vitest'
import { requestSweep } from '../../../src/engine/admin/index.ts'
import { createLease, releaseLease } from '../../../src/engine/leases/index.ts'
import type { AttemptId } from '../../../src/model/ids.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { insertProject } from '../../../src/store/projects.ts'
import { ann, root } from '../../support/engine.ts'
import { gate } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { graceSeconds, long, marginMs, openCases, requestKey, type Case } from './support.ts'

const ec2Like = { leasehold_ref: 'r00000000001', leasehold_installation: 'zzzzzzzz' }

eachStore('orphan cleanup', (open) => {
  const cases = openCases()
  afterEach(async () => {
    vi.useRealTimers()
    await cases.close()
  })
  const cleanup = (one: Case) => one.store.read(({ db }) => db.selectFrom('cleanups').selectAll().executeTakeFirstOrThrow())
  const audit = (one: Case) => one.store.read(({ db }) => db.selectFrom('audit').selectAll().orderBy('id').execute())
  /** Twice seen and past the grace, and once more. */
  const sweepOut = async (one: Case): Promise<void> => {
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.sweep()
  }
  /** A coordinator that dies in its call to create, after the machine was made. */
  const diesInCreate = async (input: Parameters<typeof createLease>[2]): Promise<{ one: Case; leaseId: string }> => {
    const one = await cases.open(await open())
    const made = gate()
    one.hooks.create = async (_request, real) => {
      await real()
      made.open()
      return new Promise(() => {})
    }
    const { lease } = await createLease(one.engine.context, ann, { ...long, ...input })
    await made.promise
    one.hooks.create = undefined
    return { one, leaseId: lease.id }
  }

  it('killed between the provider’s success and the commit: the machine is adopted, none is deleted while pending, none is made twice (case orphan 1)', async () => {
    const { one, leaseId } = await diesInCreate({ createAttemptID: requestKey() })
    const [made] = one.running()
    const view = await one.sweep(10)
    expect(view).toMatchObject({ outcome: 'unsettled', verdicts: { 'inFlight.pending': 1 } })
    await one.restart()
    await one.advanceUntil(async () => (await one.leaseView(leaseId)).state === 'active', 'it is adopted')
    expect((await one.leaseView(leaseId)).cloudID).toBe(made)
    await sweepOut(one)
    expect(one.running()).toEqual([made])
    expect([one.count('create'), one.count('remove')]).toEqual([1, 0])
    expect(await one.told()).toEqual([])
  })

  it('the twin: what nobody can learn of is taken back after the restart, once (case orphan 1)', async () => {
    const { one, leaseId } = await diesInCreate({})
    await one.restart()
    await one.advanceUntil(async () => (await one.leaseView(leaseId)).cleanup.state === 'gone', 'it is taken back')
    expect(one.running()).toEqual([])
    expect([one.count('create'), one.count('remove')]).toEqual([1, 1])
  })

  it('a create that made a second machine: one is tracked, the other is an orphan after the promotion, and only then goes (case orphan 1)', async () => {
    const one = await cases.open(await open())
    one.fault('create', 'lag', { count: 1, lengthMs: 1_800_000 })
    one.fault('create', 'error-after', { count: 1 })
    const { lease } = await createLease(one.engine.context, ann, { ...long, createAttemptID: requestKey() })
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).state === 'active', 'the second attempt is confirmed', 61)
    const { cloudID } = await one.leaseView(lease.id)
    const [second] = one.running().filter((id) => id !== cloudID)
    await one.advance(1_800)
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${second}`])
    expect(one.running()).toHaveLength(2)
    await one.sweep(graceSeconds + 60)
    await one.gone(second ?? '')
    expect(one.running()).toEqual([cloudID])
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'active', cloudID })
  })

  it('a leftover on one account, while its owner lives on another: found there, taken back once, and the other untouched (case orphan 2)', async () => {
    const one = await cases.open(await open())
    const other = await cases.open(await open())
    const path = other.cloud.path
    await one.store.write(async (tx) => {
      const values = { project: 'default', name: 'second', provider: 'simulated', scope: null, is_default: 0 }
      await insertBackend(tx, { ...values, config: JSON.stringify({ path, group: 'machine' }) })
    })
    const lease = await one.lease({ backend: 'second' })
    const living = lease.cloudID
    // The attempt before was made on the first account, and its answer was an error.
    const bound = await one.attemptOf(lease)
    const account = await one.provider.scope({ path: one.cloud.path }, { signal: new AbortController().signal })
    if (account.kind !== 'known') throw new Error(account.error)
    const token = 'f'.repeat(32)
    await one.store.write(async (tx) => {
      await tx.db.updateTable('attempts').set({ number: 2 }).where('id', '=', bound.id).execute()
      const before = {
        ...bound,
        id: 'at_before' as AttemptId,
        token,
        backend: 'local',
        scope: account.scope,
        outcome: 'abandoned' as const,
        mac_key: null,
      }
      await tx.db
        .insertInto('attempts')
        .values({ ...before, kind: null, native_id: null, immutable_id: null, facts: null, ended_at: tx.now })
        .execute()
    })
    const tags = {
      leasehold_ref: lease.ref,
      leasehold_installation: one.engine.context.installation.installation_id,
      leasehold_attempt: token,
    }
    const leftover = await one.launch(lease, 'machine', { token, tags })
    await one.sweep()
    const [finding] = (await one.open()).filter((row) => row.code === 'orphan')
    expect(JSON.parse(finding?.evidence ?? '{}')).toMatchObject({ verdict: { reason: 'orphan.lives-elsewhere' } })
    await one.sweep(graceSeconds + 60)
    await one.gone(leftover.id)
    await one.advance(60)
    const [elsewhere] = await requestSweep(one.engine.context, root, { backend: 'second' }, 20_000, new AbortController().signal)
    expect(elsewhere?.outcome).toBe('clean')
    expect(one.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual([leftover.id])
    expect(other.cloud.get(living)?.state).toBe('running')
  })

  it('every attempt failed, one left a machine, and the owner’s row is gone: the ledger knows it, under its old id and name (case orphan 3)', async () => {
    const one = await cases.open(await open())
    one.fault('create', 'lag', { count: 1, lengthMs: 1_800_000 })
    one.fault('create', 'error-after', { count: 1 })
    const { lease } = await createLease(one.engine.context, ann, { ...long, slug: 'the-placeholder' })
    await one.advanceUntil(async () => (await one.leaseView(lease.id)).state === 'failed', 'the create has failed', 61)
    const [left] = one.running()
    // By hand: this program never deletes such a row.
    await one.store.write((tx) =>
      tx.db
        .deleteFrom('instances')
        .where('id', '=', lease.instanceID as never)
        .execute(),
    )
    await one.advance(1_800)
    await one.sweep()
    const [finding] = await one.open()
    expect(JSON.parse(finding?.evidence ?? '{}')).toMatchObject({ verdict: { reason: 'orphan.owner-gone' } })
    const [opened] = await one.events('finding.opened')
    expect(opened?.targets).toContainEqual(expect.objectContaining({ type: 'instance', id: lease.instanceID, name: 'the-placeholder' }))
    await one.sweep(graceSeconds + 60)
    await one.gone(left ?? '')
  })

  /** A create whose answer comes, and is committed, after the list was taken and before the rows are read; the list has the disks only. */
  const promotedDuringList = (one: Case, leaseId: string, answer: () => void): void => {
    one.hooks.list = async (items) => {
      answer()
      await until(async () => (await one.leaseView(leaseId)).state === 'active', 'it is promoted')
      return items.map((item) =>
        item.type === 'page' ? { ...item, resources: item.resources.filter(({ resource }) => resource.kind === 'disk') } : item,
      )
    }
  }

  it('a listing older than a promotion: the disk that it shows is left alone, and listed again without any other activity (case orphan 4)', async () => {
    const one = await cases.open(await open())
    const answer = gate()
    one.hooks.create = async (_request, real) => {
      const made = await real()
      await answer.promise
      return made
    }
    const { lease } = await createLease(one.engine.context, ann, long)
    await until(() => one.running().length === 1, 'the machine is made')
    const disk = await one.launch(lease, 'disk')
    await one.advance(20)
    promotedDuringList(one, lease.id, answer.open)
    // Within its lock: a frozen clock that jumps further would make the create look abandoned.
    await one.sweep(5)
    expect(await one.told()).toEqual([])
    one.hooks.list = undefined
    const lists = one.count('list')
    expect(await one.scheduled()).toMatchObject({ outcome: 'clean', verdicts: {} })
    expect(one.count('list')).toBe(lists + 1)
    await sweepOut(one)
    expect(one.isRunning(disk.id)).toBe(true)
    expect(one.count('remove')).toBe(0)
  })

  it('the twin: a disk of the attempt before is not judged by that listing either, and by later ones it is an orphan (case orphan 4)', async () => {
    const one = await cases.open(await open())
    const tokens: string[] = []
    const macs: string[] = []
    const answer = gate()
    one.hooks.create = async (request, real) => {
      tokens.push(request.attemptToken)
      macs.push(request.mac ?? '')
      if (tokens.length === 1) return { kind: 'uncertain', message: '503', resource: null }
      const made = await real()
      await answer.promise
      return made
    }
    const { lease } = await createLease(one.engine.context, ann, { ...long, createAttemptID: requestKey() })
    await one.advanceUntil(() => one.running().length === 1, 'the second attempt has made its machine', 2)
    const [token] = tokens
    const installation = one.engine.context.installation.installation_id
    const tags = {
      leasehold_ref: lease.ref,
      leasehold_installation: installation,
      leasehold_attempt: token ?? '',
      leasehold_mac: macs[0] ?? '',
    }
    const disk = await one.launch(lease, 'disk', { token: token ?? '', tags })
    promotedDuringList(one, lease.id, answer.open)
    expect(await one.sweep(10)).toMatchObject({ outcome: 'unsettled', verdicts: { 'settling.changed': 1 } })
    expect(await one.told()).toEqual([])
    one.hooks.list = undefined
    await one.sweep()
    expect(await one.told()).toEqual([`orphan ${disk.id}`])
    await one.sweep(graceSeconds + 60)
    await one.gone(disk.id)
    expect(await one.leaseView(lease.id)).toMatchObject({ state: 'active' })
    expect(one.running()).toHaveLength(1)
  })

  it.each([-30, 0, 30])(
    'a change just inside the margin is not judged, one millisecond later it is, also for a replica whose clock is %i s off (case orphan 4)',
    async (skew) => {
      const one = await cases.open(await open())
      const orphan = await one.orphan()
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + skew * 1000 })
      const inside = await one.sweep(marginMs / 1000)
      expect(inside).toMatchObject({ outcome: 'unsettled', verdicts: { 'settling.changed': 1 } })
      expect(await one.told()).toEqual([])
      await one.sweep(0.001)
      expect(await one.told()).toEqual([`orphan ${orphan.cloudID}`])
    },
  )

  it('a listing older than a termination: no report, no event, and the next one is clean (case orphan 5)', async () => {
    const one = await cases.open(await open())
    const lease = await one.lease()
    await one.advance(60)
    one.hooks.list = async (items) => {
      await releaseLease(one.engine.context, ann, lease.id, {})
      await until(async () => (await one.leaseView(lease.id)).cleanup.state === 'gone', 'it is terminated')
      return items
    }
    const view = await one.sweep()
    expect(view.outcome).toBe('unsettled')
    one.hooks.list = undefined
    expect((await one.sweep()).outcome).toBe('clean')
    expect(await one.told()).toEqual([])
    expect(await one.events('finding.opened')).toEqual([])
    expect(one.count('remove')).toBe(1)
  })

  it('one region of three is down: the others are handled, nothing there is missing, and the watermark waits for it (case orphan 6)', async () => {
    const regions = ['sim-b', 'sim-c', 'sim-d']
    const one = await cases.open(await open())
    const live: Record<string, string> = {}
    for (const region of regions) {
      await one.configure({ locations: [region] })
      live[region] = (await one.lease()).cloudID
    }
    const orphan = await one.orphan()
    await one.configure({ locations: regions })
    // A sweep that failed altogether before: its delay is reset by one that only missed a region.
    one.hooks.list = () => {
      throw new Error('503')
    }
    await one.sweep()
    expect((await cleanup(one)).failures).toBe(1)
    one.hooks.list = undefined
    one.fault('list', 'fail-page', { location: 'sim-c' })
    one.cloud.end(live['sim-c'] ?? '')
    const before = await cleanup(one)
    for (let i = 0; i < 3; i++) {
      const view = await one.sweep(graceSeconds)
      expect(view.outcome).toBe('unsettled')
      expect(view.cells.filter((cell) => cell.state !== 'complete').map((cell) => cell.location)).toEqual(Array(4).fill('sim-c'))
    }
    await one.gone(orphan.cloudID)
    const during = await cleanup(one)
    expect([during.clean_at, during.failures]).toEqual([before.clean_at, 0])
    expect(await one.told()).toEqual([])
    expect([one.isRunning(live['sim-b'] ?? ''), one.isRunning(live['sim-d'] ?? '')]).toEqual([true, true])
    // The twin: when the region answers again, what is not in it is missing, and the watermark moves.
    one.cloud.clearFaults()
    await one.sweep()
    await one.sweep()
    expect(await one.told()).toEqual([`missing ${live['sim-c']}`])
    expect((await one.sweep()).outcome).toBe('clean')
    expect((await cleanup(one)).clean_at).toBeGreaterThan(before.clean_at ?? 0)
  })

  it('a second server, a second project, hand-made machines: nothing of them is touched or called an orphan (case orphan 7)', async () => {
    const one = await cases.open(await open())
    const server = await cases.open(await open(), { path: one.cloud.path })
    const theirs = await server.lease()
    await one.store.write(async (tx) => {
      await insertProject(tx, 'beta')
      const values = { project: 'beta', name: 'local', provider: 'simulated', scope: null, is_default: 1 }
      await insertBackend(tx, { ...values, config: JSON.stringify({ path: one.cloud.path, group: 'machine' }) })
    })
    const bob = { ...ann, name: 'bob', project: 'beta' }
    const { lease: beta } = await createLease(one.engine.context, bob, long)
    const betas = await until(async () => (await one.leaseView(beta.id)).cloudID, 'the other project has its machine')
    const orphan = await one.orphan()
    const handMade = [
      { Name: 'build-7' },
      ec2Like,
      { leasehold_ref: 'r00000000002' },
      { leasehold_ref: 'not a ref' },
      // Somebody wrote the ref of another project's machine on his own.
      { leasehold_ref: beta.ref },
    ].map((tags) => one.cloud.launch([{ kind: 'machine', location: 'sim-a', name: 'hand-made', tags }]).resources[0]?.id ?? '')
    await sweepOut(one)
    await one.gone(orphan.cloudID)
    expect(one.running()).toEqual([theirs.cloudID, betas, ...handMade])
    // A malformed ref is told as that, and nothing else is told at all.
    expect(await one.told()).toEqual([`malformed-ref ${handMade[3]}`])
  })

  it('a deletion half done: accepted, restarted, the disk left: told once, and the same removal goes on to the disk, with its whole chain (case orphan 9, orphans R70)', async () => {
    const one = await cases.open(await open(), { config: { deleteSeconds: 600 } })
    const orphan = await one.orphan()
    const disk = await one.launch(orphan, 'disk')
    one.cloud.attach({ member: disk.id, target: orphan.cloudID, onEnd: 'keep' })
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await until(async () => (await one.events('removal.accepted')).length > 0, 'the deletion is accepted')
    await one.restart()
    for (let i = 0; i < 4; i++) await one.sweep()
    expect(await one.events('removal.accepted')).toHaveLength(1)
    expect(one.count('remove', orphan.cloudID)).toBe(1)
    expect(one.isRunning(disk.id)).toBe(true)
    expect(one.count('remove', disk.id)).toBe(0)
    await one.advance(600)
    await one.gone(disk.id)
    await until(async () => (await one.events('removal.gone')).length === 1, 'the end of both is proved')
    expect(one.isRunning(orphan.cloudID)).toBe(false)
    expect((await one.events('removal.member-gone')).length).toBe(2)
    expect((await one.sweep()).outcome).toBe('clean')
    expect(one.running()).toEqual([])
    expect(await one.told()).toEqual([])
    interface Told {
      identity?: { nativeId: string }
      absent?: { nativeId: string }
      kind?: string
    }
    const chain = (await audit(one)).map((row): [string, Told] => [row.kind, JSON.parse(row.body) as Told])
    expect(chain.map(([kind, { identity, absent, ...body }]) => [kind, (identity ?? absent)?.nativeId ?? body.kind])).toEqual([
      ['intent', orphan.cloudID],
      ['outcome', 'accepted'],
      ['proof', orphan.cloudID],
      ['intent', disk.id],
      ['outcome', 'gone'],
      ['proof', disk.id],
    ])
  })
})
