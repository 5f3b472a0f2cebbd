import { afterEach, expect, it } from 'vitest'
import type { Actor } from '../../src/engine/actor.ts'
import { closeRemoval, getRemoval, listRemovals, readAudit } from '../../src/engine/admin/index.ts'
import { addHold } from '../../src/engine/admin/holds.ts'
import { auditLeases } from '../../src/engine/admin/lease-audit.ts'
import { explainKey } from '../../src/engine/explain/index.ts'
import { createLease, getLease, releaseLease, type CreateInput } from '../../src/engine/leases/index.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { ListedResource, Provider, RemoveOutcome } from '../../src/providers/contract.ts'
import { ann, leaseOn, leaseWhen, root } from '../support/engine.ts'
import type { Scripted } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'
import { long, sweepWorld, type SweepWorld } from '../support/sweep-world.ts'
import { until } from '../support/until.ts'

const denied: RemoveOutcome = { kind: 'denied', permission: 'box.delete' }

/** The same provider, which can't list. */
const withoutListing = (scripted: Scripted): Provider =>
  Object.fromEntries(Object.entries(scripted).filter(([name]) => name !== 'list')) as unknown as Provider

eachStore('giving up on what no lease holds', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.engine.stop(0)
  })
  const world = async (given: Parameters<typeof sweepWorld>[1] = {}): Promise<SweepWorld> => {
    const made = await sweepWorld(await open(), given)
    worlds.push(made)
    return made
  }

  const removals = (w: SweepWorld) =>
    w.store.read(({ db }) => db.selectFrom('removals').selectAll().orderBy('opened_at').orderBy('id').execute())
  const removal = async (w: SweepWorld) => {
    const [one] = await removals(w)
    if (!one) throw new Error('there is no removal')
    return one
  }
  const instance = (w: SweepWorld) => w.store.read(({ db }) => db.selectFrom('instances').selectAll().executeTakeFirstOrThrow())
  const events = (w: SweepWorld, prefix: string) =>
    w.store.read(({ db }) => db.selectFrom('events').selectAll().where('code', 'like', `${prefix}%`).orderBy('id').execute())
  const findings = (w: SweepWorld) => w.store.read(({ db }) => db.selectFrom('findings').selectAll().where('state', '=', 'open').execute())

  /** Moves the clock, and waits until every removal that is due has been worked on. */
  const tick = async (w: SweepWorld, seconds: number): Promise<void> => {
    const now = await w.advance(seconds)
    w.engine.context.signals.wake('remove')
    await until(
      async () => (await removals(w)).every((row) => row.lock_owner === null && (row.due_at === null || row.due_at > now)),
      'all that was due was done',
    )
  }

  /** A create whose answer is lost and of which nobody can learn: it is rolled back. */
  const rollback = async (w: SweepWorld, input: CreateInput = {}): Promise<LeaseView> => {
    w.provider.onCreate = (request) => {
      w.provider.make(request)
      throw new Error('socket closed')
    }
    const { lease } = await createLease(w.engine.context, ann, { ...long, ...input })
    await until(async () => (await events(w, 'attempt.uncertain')).length > 0, 'the answer is lost')
    w.provider.onCreate = undefined
    await w.advance(30)
    w.engine.context.signals.wake('provision')
    const failed = await leaseWhen(w.engine, lease.id, (view) => view.state === 'failed')
    await until(
      async () => (await removals(w)).every((row) => row.lock_owner === null && (row.failures > 0 || row.accepted_at !== null)),
      'the first try is over',
    )
    return failed
  }
  const giveUp = async (w: SweepWorld): Promise<void> => {
    for (let i = 1; i < 30; i++) await tick(w, 30)
  }

  it('a failing termination is tried every 30 s and no sooner, the last time 14.5 min after the first failure (orphans R88, R89)', async () => {
    const w = await world()
    w.provider.onRemove = () => denied
    const lease = await rollback(w)
    expect(w.provider.count('remove')).toBe(1)
    const first = await removal(w)
    expect(first).toMatchObject({ cause: 'create-interrupted', lease_id: lease.id, failures: 1 })
    expect(first.retry_at).toBe((first.first_failed_at as number) + 30_000)
    await tick(w, 29.999)
    expect(w.provider.count('remove')).toBe(1)
    await tick(w, 0.001)
    expect(w.provider.count('remove')).toBe(2)
    for (let i = 2; i < 29; i++) await tick(w, 30)
    expect(w.provider.count('remove')).toBe(29)
    expect(await removal(w)).toMatchObject({ state: 'removing' })
    expect(await events(w, 'terminate.')).toEqual([])
    await tick(w, 30)
    expect(w.provider.count('remove')).toBe(30)
    expect(await removal(w)).toMatchObject({ state: 'gave-up', failed_at: (first.first_failed_at as number) + 870_000 })
    // Nothing calls it again, however long it stands: it is only looked at.
    for (let i = 0; i < 5; i++) await tick(w, 3600)
    expect(w.provider.count('remove')).toBe(30)
    expect(await events(w, 'terminate.')).toHaveLength(1)
  })

  it('a removal that its lease orders is never given up (leases R40, R47)', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    w.provider.onRemove = () => denied
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'failed')
    for (let i = 0; i < 6; i++) await tick(w, 300)
    expect(w.provider.count('remove')).toBe(7)
    expect(await removal(w)).toMatchObject({ state: 'removing', failures: 7 })
    expect(await instance(w)).toMatchObject({ state: 'terminating', gave_up_at: null })
    expect(await events(w, 'terminate.')).toEqual([])
  })

  it('what is given up stays terminating with its last error, and every view says so; its absence alone ends it (orphans R91, case E1)', async () => {
    const w = await world()
    w.provider.onRemove = () => ({ kind: 'unknown', error: 'connect ENETUNREACH' })
    const lease = await rollback(w)
    await giveUp(w)
    const row = await instance(w)
    expect(row).toMatchObject({ state: 'terminating', terminated_at: null, gave_up_at: await w.store.now() })
    const view = await getLease(w.engine.context, root, lease.id)
    expect(view).toMatchObject({ state: 'failed', cleanup: { state: 'gave-up', error: 'connect ENETUNREACH', retryAt: null } })
    const [audited] = await auditLeases(w.engine.context, root, { limit: 10 })
    expect(audited).toMatchObject({ leaseID: lease.id, debt: ['cleanup-error', 'gave-up'], cloudStatus: 'found' })
    expect(audited?.message).toMatch(/given up/)
    const told = await explainKey(w.engine.context, root, row.id, new AbortController().signal)
    expect(told).toMatchObject({ verdict: 'orphan', reason: 'orphan.gave-up' })
    expect(JSON.stringify(told)).toContain('ENETUNREACH')
    expect(await findings(w)).toMatchObject([{ code: 'removal-needs-person', target_id: row.id }])
    // A person ends it by hand: that is found out by a look.
    w.provider.boxes.clear()
    await tick(w, 60)
    expect(await instance(w)).toMatchObject({ state: 'terminated', gave_up_at: row.gave_up_at })
    expect((await getLease(w.engine.context, root, lease.id)).cleanup.state).toBe('gone')
    expect(await findings(w)).toEqual([])
  })

  it('a success in between stops everything (case orphan 11)', async () => {
    const w = await world()
    w.provider.onRemove = () => denied
    const lease = await rollback(w)
    for (let i = 0; i < 10; i++) await tick(w, 30)
    w.provider.onRemove = undefined
    await tick(w, 30)
    expect((await getLease(w.engine.context, root, lease.id)).cleanup.state).toBe('gone')
    const calls = w.provider.calls.length
    for (let i = 0; i < 30; i++) await tick(w, 30)
    expect(w.provider.calls).toHaveLength(calls)
    expect(await instance(w)).toMatchObject({ state: 'terminated', gave_up_at: null })
    expect(await events(w, 'terminate.')).toEqual([])
  })

  it('a deletion that is accepted and slow has the same clock, is given up without being called failed, and ends late by its absence (orphans R90, case orphan 11)', async () => {
    const w = await world()
    w.provider.onRemove = (resource) => {
      const box = w.provider.boxes.get(resource.nativeId) as ListedResource
      w.provider.boxes.set(resource.nativeId, { ...box, existence: 'going' })
      return { kind: 'accepted', requestId: null }
    }
    await rollback(w)
    for (let i = 0; i < 28; i++) await tick(w, 30)
    expect(await removal(w)).toMatchObject({ state: 'verifying', failures: 0 })
    await tick(w, 30)
    expect(await removal(w)).toMatchObject({ state: 'gave-up', failures: 0 })
    expect(w.provider.count('remove')).toBe(1)
    for (let i = 0; i < 51; i++) await tick(w, 30)
    const [told] = await events(w, 'terminate.')
    expect(told?.message).toContain('after 15 min: the provider accepted the removal, and its absence is not proved yet.')
    expect(told?.message).not.toMatch(/fail/i)
    expect(await events(w, 'removal.failed')).toEqual([])
    expect(await instance(w)).toMatchObject({ state: 'terminating' })
    w.provider.boxes.clear()
    await tick(w, 3600)
    expect(await instance(w)).toMatchObject({ state: 'terminated' })
  })

  it('acceptances and failures in turn share one clock (orphans R90)', async () => {
    const w = await world()
    // Accepted and never begun: it fails after five minutes, and is asked for again.
    w.provider.onRemove = () => ({ kind: 'accepted', requestId: null })
    await rollback(w)
    const begun = (await removal(w)).accepted_at as number
    for (let i = 0; i < 40 && (await removal(w)).state !== 'gave-up'; i++) await tick(w, 30)
    const row = await removal(w)
    expect(row).toMatchObject({ state: 'gave-up', first_failed_at: begun })
    expect((row.failed_at as number) - begun).toBeLessThanOrEqual(900_000)
    expect((row.failed_at as number) - begun).toBeGreaterThanOrEqual(870_000)
    expect(w.provider.count('remove')).toBeGreaterThan(1)
  })

  const cases = (['delete', 'report', 'off'] as const).flatMap((mode) =>
    ([true, false] as const).flatMap((lists) =>
      (['nothing', 'hold', 'keep', 'keep label'] as const)
        // The whole matrix is the model's; here a keep only where it makes the difference.
        .filter((protection) => !protection.startsWith('keep') || (mode === 'delete' && lists))
        .map((protection) => ({ mode, lists, protection })),
    ),
  )
  it.each(cases)(
    'mode $mode, listing $lists, protected by $protection: one event, which promises cleanup only where it comes (orphans R96, R97)',
    async (given) => {
      const { mode, lists, protection } = given
      const w = await world({ mode, ...(lists ? {} : { provider: withoutListing }) })
      w.provider.onRemove = () => denied
      const input = protection === 'keep' ? { keep: true } : protection === 'keep label' ? { labels: { 'team/keep': 'yes' } } : {}
      const lease = await rollback(w, input)
      // The last try is an hour late, as after an outage; a hold that comes while it is under way is too late for it, and in time for the sweeps.
      w.provider.onRemove = async () => {
        if (protection === 'hold')
          await addHold(w.engine.context, root, {
            targetType: 'instance',
            targetID: lease.instanceID,
            reason: 'evidence',
            durationSeconds: 600,
          })
        return denied
      }
      await tick(w, 3600)
      const told = await events(w, 'terminate.')
      const begin = `Gave up terminating instance ${lease.slug} (${lease.instanceID}) on local after 15 min: permission denied: box.delete.`
      const retries = mode === 'delete' && lists && protection === 'nothing'
      expect(told.map(({ code, message }) => ({ code, message }))).toEqual([
        retries
          ? { code: 'terminate.gave-up.cleanup-retries', message: `${begin} Orphan cleanup will retry deleting it.` }
          : {
              code: 'terminate.gave-up.manual',
              message: `${begin} Terminate it manually: box ${lease.ref}-1 in here of scripted:one.`,
            },
      ])
      // What nobody retries stands as a finding; what is promised to a sweep does not.
      expect((await findings(w)).map((row) => row.code)).toEqual(retries ? [] : ['removal-needs-person'])
    },
  )

  it('in delete mode sweeps pass it over within the margin, then go on with the same removal, for as long as that fails (orphans R55, R91, R98, R99)', async () => {
    const w = await world({ mode: 'delete', graceMs: 60_000 })
    w.provider.onRemove = () => denied
    const lease = await rollback(w)
    await giveUp(w)
    const key = `process/here/${lease.ref}-1`
    const before = await removals(w)
    // Nothing but the margin counted from the give-up stands against it.
    expect((await w.sweep(5)).verdicts).toEqual({ 'settling.changed': 1 })
    expect((await w.sweep(1)).verdicts).toEqual({ 'orphan.gave-up': 1 })
    expect((await w.sweep(60)).plan?.removals).toEqual([key])
    await until(async () => (await removal(w)).failures === 1, 'its removal is tried')
    const [given] = before
    expect((await removals(w)).map((row) => [row.id, row.cause, row.state])).toEqual([[given?.id, 'orphan.gave-up', 'removing']])
    expect(await events(w, 'removal.continued')).toHaveLength(1)
    for (let i = 0; i < 16; i++) await tick(w, 3600)
    expect(await removals(w)).toMatchObject([{ state: 'removing', failures: 17 }])
    expect(await events(w, 'terminate.')).toHaveLength(1)
    w.provider.onRemove = undefined
    await tick(w, 3600)
    expect((await removals(w)).map((row) => row.state)).toEqual(['gone'])
    expect(await instance(w)).toMatchObject({ state: 'terminated' })
    expect((await getLease(w.engine.context, root, lease.id)).cleanup.state).toBe('gone')
    expect(await findings(w)).toEqual([])
  })

  it('a person may close what was given up: recorded with who and why, never as proved, and what turns up later is an orphan with a removal of its own (orphans R91)', async () => {
    const w = await world({ mode: 'report' })
    const { context } = w.engine
    w.provider.onRemove = () => denied
    const lease = await rollback(w)
    const pat: Actor = { name: 'pat', role: 'approver', project: null, onlyLease: null }
    const { id } = await removal(w)
    // What is still tried can't be closed: it would go on at the provider.
    await expect(closeRemoval(context, pat, id, { reason: 'r' })).rejects.toMatchObject({ code: 'removal_not_stopped', status: 409 })
    await giveUp(w)
    expect(await listRemovals(context, root, { stuck: true, limit: 10 })).toMatchObject([
      { id, state: 'gave-up', stuck: true, owner: 'ann', nextStep: expect.stringContaining('end it by hand') },
    ])
    w.settings.mode = 'delete'
    expect((await getRemoval(context, root, id)).nextStep).toContain('a sweep that finds it goes on with it')
    w.settings.mode = 'report'
    // In report mode nobody goes on with it, however long it stands.
    for (let i = 0; i < 3; i++) await w.sweep(3600)
    expect(await removals(w)).toMatchObject([{ state: 'gave-up' }])
    for (const actor of [ann, { ...ann, role: 'operator' as const }])
      await expect(closeRemoval(context, actor, id, { reason: 'r' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(closeRemoval(context, pat, id, { reason: ' ' })).rejects.toMatchObject({ code: 'bad_request' })
    await expect(closeRemoval(context, pat, id, { reason: 'r', fingerprint: '0'.repeat(12) })).rejects.toMatchObject({
      code: 'removal_changed',
    })
    expect(await instance(w)).toMatchObject({ state: 'terminating' })
    const closed = await closeRemoval(context, pat, id, { reason: 'the account is closed' })
    expect(closed).toMatchObject({
      state: 'closed',
      closedBy: 'pat',
      closedReason: 'the account is closed',
      nextStep: 'none',
      stuck: false,
    })
    expect(await removal(w)).toMatchObject({ state: 'closed', gone_at: null, due_at: null })
    expect(await instance(w)).toMatchObject({ state: 'terminated' })
    expect(closed.left).toHaveLength(1)
    expect((await getLease(context, root, lease.id)).cleanup).toMatchObject({ state: 'closed', closedBy: 'pat', mayBeLeft: closed.left })
    const [told] = await events(w, 'removal.closed')
    expect(told?.message).toBe(
      `Removal closed by a person, nothing is proved: the account is closed; left behind: ${closed.left.join(', ')}`,
    )
    expect(await listRemovals(context, root, { limit: 10 })).toEqual([])
    expect((await findings(w)).map((row) => row.code)).not.toContain('removal-needs-person')
    expect(await events(w, 'removal.closed')).toMatchObject([{ actor: 'pat' }])
    expect(await events(w, 'removal.gone')).toEqual([])
    const records = await readAudit(context, root, { limit: 50 })
    expect(records.find((one) => one.kind === 'operator')).toMatchObject({
      actor: 'pat',
      removalID: id,
      body: { action: 'close-removal', was: 'gave-up' },
    })
    expect(records.some((one) => one.kind === 'proof')).toBe(false)
    await expect(closeRemoval(context, pat, id, { reason: 'again' })).rejects.toMatchObject({ code: 'removal_not_stopped' })
    const calls = w.provider.count('remove')
    for (let i = 0; i < 3; i++) await tick(w, 3600)
    expect(w.provider.count('remove')).toBe(calls)
    // It was there all the time: found by a sweep, it stands its quarantine like any other.
    w.provider.onRemove = undefined
    w.settings.mode = 'delete'
    await w.sweep(3600)
    await w.sweep(3600)
    await until(async () => (await removals(w)).length === 2 && (await removals(w))[1]?.state === 'gone', 'it is taken back')
    expect((await removals(w)).map((row) => row.state)).toEqual(['closed', 'gone'])
    expect((await getLease(context, root, lease.id)).cleanup).toMatchObject({ state: 'closed', mayBeLeft: null })
  })

  it('while it is still tried a sweep leaves it alone, in every mode (orphans R54)', async () => {
    const w = await world({ mode: 'delete', graceMs: 1 })
    w.provider.onRemove = () => denied
    await rollback(w)
    for (let i = 0; i < 3; i++) expect((await w.sweep(60)).verdicts).toEqual({ 'inFlight.terminating': 1 })
    expect(await removals(w)).toHaveLength(1)
  })

  it('without its backend it is given up at once, and a person is told (orphans R92)', async () => {
    const w = await world({ mode: 'delete' })
    w.provider.onRemove = () => denied
    const lease = await rollback(w)
    await w.store.write(async (tx) => void (await tx.db.deleteFrom('backends').execute()))
    const calls = w.provider.calls.length
    await tick(w, 30)
    expect((await events(w, 'terminate.')).map((row) => row.message)).toEqual([
      `Gave up terminating instance ${lease.slug} (${lease.instanceID}) on local after 0 min: backend local does not exist any more. Terminate it manually: box ${lease.ref}-1 in here of scripted:one.`,
    ])
    expect(await instance(w)).toMatchObject({ state: 'terminating', gave_up_at: await w.store.now() })
    await tick(w, 3600)
    expect(w.provider.calls).toHaveLength(calls)
  })

  it('somebody who asks for it again gets the whole budget again, and is told once more at its end', async () => {
    const w = await world()
    w.provider.onRemove = () => denied
    const lease = await rollback(w)
    await giveUp(w)
    expect(w.provider.count('remove')).toBe(30)
    await releaseLease(w.engine.context, ann, lease.id, { delete: true })
    expect(await instance(w)).toMatchObject({ state: 'terminating', gave_up_at: null })
    await tick(w, 0)
    expect(await removal(w)).toMatchObject({ state: 'removing', failures: 1 })
    await giveUp(w)
    expect(w.provider.count('remove')).toBe(60)
    expect(await events(w, 'terminate.')).toHaveLength(2)
    w.provider.onRemove = undefined
    await releaseLease(w.engine.context, ann, lease.id, { delete: true })
    await tick(w, 0)
    expect(await instance(w)).toMatchObject({ state: 'terminated' })
  })

  it('an instance is not terminated while something of an earlier attempt stands; the proof of that ends it (orphans R93)', async () => {
    const w = await world()
    w.provider.onRemove = () => denied
    // The first create leaves half a box, for a client that can still learn of it; the second is refused.
    w.provider.onCreate = (request) => {
      if (request.attemptNumber > 1) return { kind: 'rejected', code: 'quota', message: 'no more boxes' }
      const made = w.provider.make(request)
      w.provider.boxes.set(made.nativeId, { ...(w.provider.boxes.get(made.nativeId) as ListedResource), existence: 'going' })
      throw new Error('socket closed')
    }
    const { lease } = await createLease(w.engine.context, ann, { ...long, createAttemptID: `cat_${'0'.repeat(32)}` })
    await until(async () => (await events(w, 'attempt.uncertain')).length > 0, 'the answer is lost')
    await w.advance(30)
    w.engine.context.signals.wake('provision')
    await leaseWhen(w.engine, lease.id, (view) => view.state === 'failed')
    expect((await removals(w)).map((row) => [row.cause, row.lease_id])).toEqual([['leftover', null]])
    await until(async () => (await removal(w)).failures === 1, 'the first try is over')
    expect(await instance(w)).toMatchObject({ state: 'terminating', gave_up_at: null })
    await tick(w, 3600)
    expect(await instance(w)).toMatchObject({ state: 'terminating', gave_up_at: await w.store.now() })
    w.provider.boxes.clear()
    await tick(w, 60)
    expect(await instance(w)).toMatchObject({ state: 'terminated' })
  })
})
