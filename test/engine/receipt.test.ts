import { afterEach, expect, it } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { addHold } from '../../src/engine/admin/index.ts'
import type { Actor } from '../../src/engine/actor.ts'
import { silentLog } from '../../src/engine/context.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { readReceipt } from '../../src/engine/receipt/index.ts'
import { sealAll } from '../../src/engine/seal.ts'
import { LeaseholdError } from '../../src/model/errors.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { ReceiptRemovalView, ReceiptView } from '../../src/model/wire-audit.ts'
import { receiptText } from '../../src/cli/support/receipt-text.ts'
import type { Store } from '../../src/store/store.ts'
import { verify } from '../support/audit-chain.ts'
import { ann, leaseOn, leaseWhen, root } from '../support/engine.ts'
import { everything } from '../support/scripted-provider.ts'
import { long, sweepWorld, t0, type SweepWorld } from '../support/sweep-world.ts'
import { advance, eachStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

const iso = (ms: number): string => new Date(ms).toISOString()
const stranger: Actor = { name: 'eve', role: 'admin', project: 'other', onlyLease: null }

eachStore('the receipt of a deletion', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.engine.stop(0)
  })
  const start = async (given: Parameters<typeof sweepWorld>[1] = {}): Promise<SweepWorld> => {
    const world = await sweepWorld(await open(), given)
    worlds.push(world)
    return world
  }
  const seal = async (store: Store): Promise<void> => {
    await advance(store, 6_000)
    await sealAll(store, 're_test')
    await until(async () => (await verify(store)).unsealed.count === 0, 'all is sealed')
  }
  const receipt = (w: SweepWorld, key: string, actor: Actor = root): Promise<ReceiptView> => readReceipt(w.engine.context, actor, key)
  const only = async (w: SweepWorld, key: string): Promise<ReceiptRemovalView> => {
    const { removals } = await receipt(w, key)
    expect(removals).toHaveLength(1)
    return removals[0] as ReceiptRemovalView
  }
  const released = async (w: SweepWorld): Promise<LeaseView> => {
    const lease = await leaseOn(w.engine, long)
    await releaseLease(w.engine.context, ann, lease.id, {})
    return leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
  }

  it('tells who ordered it, the call with its answer, the proof, and where each stands in the chain, by every key that names it', async () => {
    const w = await start()
    w.provider.onRemove = (resource) => {
      w.provider.boxes.delete(resource.nativeId)
      return { kind: 'accepted', requestId: 'req-7' }
    }
    const lease = await leaseOn(w.engine, long)
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'verifying')
    await advance(w.store, 60_000)
    const gone = await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    await seal(w.store)
    const one = await only(w, lease.id)
    const resource = { location: 'here', kind: 'box', nativeID: lease.cloudID, immutableID: lease.cloudImmutableID }
    expect(one).toMatchObject({
      removalID: gone.cleanup.removalID,
      verdict: 'deleted',
      state: 'gone',
      cause: 'released',
      orderedBy: 'ann',
      leaseID: lease.id,
      found: null,
      resources: [resource],
      calls: [
        {
          at: iso(t0),
          resource,
          fence: 1,
          readState: 'running',
          readTags: { ref: lease.ref, attempt: one.attemptID },
          intent: { seq: 1, kind: 'intent', chain: 'verified' },
          answer: {
            at: iso(t0),
            kind: 'accepted',
            detail: null,
            requestID: 'req-7',
            record: { seq: 2, kind: 'outcome', chain: 'verified' },
          },
        },
      ],
      proofs: [{ at: iso(t0 + 60_000), resource, proof: 'not in the list', record: { seq: 3, kind: 'proof', chain: 'verified' } }],
      goneAt: iso(t0 + 60_000),
      open: [],
    })
    for (const key of [lease.slug, lease.instanceID, lease.ref, one.removalID, one.attemptID, `process/here/${lease.cloudID}`])
      expect(await only(w, key), key).toEqual(one)
    const text = receiptText(await receipt(w, lease.slug)).join('\n')
    for (const said of ['was deleted', 'by ann: released', 'request req-7', 'proved absent', 'audit 1, ', 'audit 3, '])
      expect(text).toContain(said)
    expect(text).not.toContain('open:')
  })

  it('of what was absent already it says that nothing was deleted; the twin that stood there was', async () => {
    const w = await start()
    const lease = await leaseOn(w.engine, long)
    w.provider.boxes.delete(lease.cloudID as string)
    await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
    await seal(w.store)
    expect(w.provider.count('remove')).toBe(0)
    const one = await only(w, lease.id)
    expect(one).toMatchObject({
      verdict: 'already-absent',
      orderedBy: 'ann',
      calls: [],
      proofs: [{ proof: 'not in the list', record: { chain: 'verified' } }],
      open: [],
    })
    expect(one.summary).toMatch(/^nothing was deleted: box process\/here\/.* was absent already, and nothing was called/)
    expect(receiptText(await receipt(w, lease.id)).join('\n')).toContain('no call was made')
    const twin = await only(w, (await released(w)).id)
    expect(twin).toMatchObject({ verdict: 'deleted', calls: [{ answer: { kind: 'gone' } }] })
    expect(twin.summary).not.toContain('nothing was deleted')
  })

  it('of what a sweep found it tells verdict, finding, certificate, plan and proofs, also when findings, events and sweeps are gone', async () => {
    const w = await start({ mode: 'delete', graceMs: 60_000 })
    const { lease, box, key } = await w.orphan()
    await w.sweep()
    const finding = await w.store.read(({ db }) => db.selectFrom('findings').selectAll().executeTakeFirstOrThrow())
    const sweep = await w.sweep(120)
    await until(() => !w.provider.boxes.has(box.resource.nativeId), 'the orphan is removed')
    await until(async () => (await receipt(w, key)).removals[0]?.state === 'gone', 'its removal has ended')
    await seal(w.store)
    expect(sweep.plan?.removals).toEqual([key])
    const one = (await receipt(w, key)).removals[0] as ReceiptRemovalView
    expect(one).toMatchObject({
      verdict: 'deleted',
      cause: 'orphan.owner-ended',
      orderedBy: 'system',
      found: {
        reason: 'orphan.owner-ended',
        findingID: finding.id,
        fingerprint: finding.fingerprint,
        firstSeenAt: iso(t0 + 60_000),
        lastSeenAt: iso(t0 + 180_000),
        timesSeen: 2,
        sweepID: sweep.id,
        listedAt: iso(t0 + 180_000),
        coverage: [{ location: 'here', kind: 'box', state: 'complete', resources: 1 }],
        certificate: { guard: 'passed' },
        planID: sweep.plan?.id,
        planSize: 1,
        proofs: [{ attemptID: one.attemptID, by: 'recorded-id' }],
      },
      open: [],
    })
    // The lease's own removal is told by its keys too, newest first.
    expect((await receipt(w, lease.id)).removals.map((each) => each.cause)).toEqual(['orphan.owner-ended', 'released'])
    await w.store.write(async (tx) => {
      for (const table of ['event_targets', 'events', 'findings', 'sweeps'] as const) await tx.db.deleteFrom(table).execute()
    })
    const later = (await receipt(w, key)).removals[0]
    expect(later).toEqual({ ...one, found: { ...one.found, certificate: null } })
    expect(receiptText(await receipt(w, key)).join('\n')).toContain(`found by sweep ${sweep.id}`)
  })

  it('after a crash between a call and its record it says what is not known, and does not claim the deletion', async () => {
    const w = await start()
    const lease = await leaseOn(w.engine, long)
    w.provider.onRemove = (resource) => {
      w.provider.boxes.delete(resource.nativeId)
      return new Promise<never>(() => {})
    }
    await releaseLease(w.engine.context, ann, lease.id, {})
    await until(() => w.provider.count('remove') === 1, 'it calls')
    await w.engine.stop(0)
    await advance(w.store, 60_000)
    const next = await sweepWorldOn(w)
    worlds.push(next)
    await leaseWhen(next.engine, lease.id, (view) => view.cleanup.state === 'gone')
    await seal(w.store)
    const one = await only(next, lease.id)
    expect(one).toMatchObject({ verdict: 'gone', calls: [{ answer: null }], proofs: [{ record: { chain: 'verified' } }] })
    expect(one.summary).toContain('whether one of our calls did it is not known')
    expect(one.open).toEqual([`what became of the call of ${iso(t0)} is not known: its answer was never recorded`])
    // The chain says the same: the call without an answer is shown, and the proof explains it.
    expect(await verify(w.store)).toMatchObject({
      ok: true,
      danglingCount: 1,
      dangling: [{ removalID: one.removalID, removalState: 'gone' }],
    })
  })

  it('while it is under way, held or failing it says what is open and claims nothing', async () => {
    const w = await start()
    const [failing, held, untouched] = [await leaseOn(w.engine, long), await leaseOn(w.engine, long), await leaseOn(w.engine, long)]
    w.provider.onRemove = () => ({ kind: 'denied', permission: 'boxes.delete' })
    await addHold(w.engine.context, root, { targetType: 'lease', targetID: held.id, reason: 'looking' })
    for (const lease of [failing, held]) await releaseLease(w.engine.context, ann, lease.id, {})
    await leaseWhen(w.engine, failing.id, (view) => view.cleanup.state === 'failed')
    await leaseWhen(w.engine, held.id, (view) => view.cleanup.state === 'held')
    await seal(w.store)
    const called = await only(w, failing.id)
    expect(called).toMatchObject({
      verdict: 'called',
      calls: [{ answer: { kind: 'denied', detail: 'boxes.delete' } }],
      proofs: [],
      goneAt: null,
    })
    expect(called.open).toEqual(['the removal is removing: permission denied: boxes.delete', `the next try is at ${iso(t0 + 300_000)}`])
    const stopped = await only(w, held.id)
    expect(stopped).toMatchObject({ verdict: 'not-called', calls: [] })
    expect(stopped.summary).toMatch(/^nothing was deleted: no deletion of box .* was called/)
    expect(stopped.open[1]).toMatch(/^hold hd_.* holds it back$/)
    expect(await receipt(w, untouched.id)).toMatchObject({
      removals: [],
      summary: 'nothing was deleted: no removal was ever ordered for it',
    })
  })

  it('a record that was changed since shows as one that does not hold; before, it held', async () => {
    const w = await start()
    const lease = await released(w)
    await seal(w.store)
    expect((await only(w, lease.id)).open).toEqual([])
    await w.store.write(async (tx) => {
      const row = await tx.db.selectFrom('audit').selectAll().where('kind', '=', 'outcome').executeTakeFirstOrThrow()
      await tx.db.updateTable('audit').set({ body: '{"kind":"gone","requestId":"forged"}' }).where('id', '=', row.id).execute()
    })
    const one = await only(w, lease.id)
    expect(one.calls[0]?.answer?.record.chain).toBe('broken')
    expect(one.calls[0]?.intent.chain).toBe('verified')
    expect(one.open[0]).toMatch(/^the chain does not hold at record 2 /)
    // Somebody who changes what the removal's own row says does not change what was sealed.
    await w.store.write((tx) => tx.db.updateTable('removals').set({ evidence: '{"orderedBy":"nobody"}' }).execute())
    const after = await only(w, lease.id)
    expect(after.orderedBy).toBe('ann')
    expect(after.open[0]).toMatch(/^the removal's own row says something else/)
  })

  it.each([
    ['intent', 1, /^the intent before the answer of .* is missing$/],
    ['outcome', 2, /^the provider took its removal on at .*, and the record of that answer is missing$/],
    ['proof', 3, /^the proof that .*#1 is absent is missing$/],
  ] as const)('where the %s was taken away it says so, and does not claim to know what was done (case M, I7)', async (kind, seq, said) => {
    const w = await start()
    const lease = await released(w)
    await seal(w.store)
    expect(await receipt(w, lease.id)).toMatchObject({ whole: true, removals: [{ verdict: 'deleted', missing: [] }] })
    await w.store.write((tx) => tx.db.deleteFrom('audit').where('kind', '=', kind).execute())
    const told = await receipt(w, lease.id)
    const [one] = told.removals
    expect(told).toMatchObject({ whole: false, removals: [{ verdict: 'unknown' }] })
    expect(one?.missing[0]).toMatch(said)
    expect(one?.summary).toMatch(/^what was done to box .* can not be told: audit records of its removal are missing/)
    const cut = one?.missing.some((text) => text.startsWith(`audit record ${seq}, the one before au_`))
    expect(cut).toBe(seq < 3)
    expect(receiptText(told).join('\n')).toContain('MISSING: ')
  })

  it('where all of its records were taken away it does not say that nothing was called', async () => {
    const w = await start()
    const lease = await released(w)
    const untouched = await leaseOn(w.engine, long)
    w.provider.boxes.delete(untouched.cloudID as string)
    await releaseLease(w.engine.context, ann, untouched.id, {})
    await leaseWhen(w.engine, untouched.id, (view) => view.cleanup.state === 'gone')
    await w.store.write((tx) =>
      tx.db
        .deleteFrom('audit')
        .where('ref', '=', lease.ref as never)
        .execute(),
    )
    const told = await receipt(w, lease.id)
    expect(told.whole).toBe(false)
    expect(told.removals[0]?.missing).toHaveLength(3)
    const text = receiptText(told).join('\n')
    expect(text).toContain('no call is recorded')
    expect(text).not.toMatch(/no call was made|was absent already|was deleted/)
    // The twin: where really nothing was called nothing is missing.
    expect(await receipt(w, untouched.id)).toMatchObject({ whole: true, removals: [{ verdict: 'already-absent', missing: [] }] })
  })

  it('shows no secret, whatever a provider puts into its words, and no token of an attempt', async () => {
    const w = await start({ mode: 'delete', graceMs: 0 })
    const canary = 'canary7Q'
    const { key, box } = await w.orphan()
    const leaky = { ...box, providerState: `running password=${canary}`, name: `box token=${canary}` }
    w.provider.boxes.set(box.resource.nativeId, leaky)
    w.provider.onList = () => [...everything(w.provider.boxes, 'here')]
    let calls = 0
    w.provider.onRemove = (resource) => {
      calls++
      if (calls === 1) return { kind: 'unknown', error: `500 to Authorization: Bearer ${canary}` }
      w.provider.boxes.delete(resource.nativeId)
      return { kind: 'gone', requestId: `secret=${canary}` }
    }
    w.provider.onRead = (resource) =>
      w.provider.boxes.has(resource.nativeId) ? undefined : { kind: 'absent', proof: `api_key=${canary} is gone`, contradictions: [] }
    await w.sweep()
    await w.sweep()
    await until(() => calls === 1, 'the first call is made')
    await until(async () => {
      await advance(w.store, 300_000)
      return (await receipt(w, key)).removals[0]?.state === 'gone'
    }, 'the second call went well')
    const told = await receipt(w, key)
    expect(told.removals[0]?.calls).toHaveLength(2)
    const token = await w.store.read(({ db }) => db.selectFrom('attempts').select('token').executeTakeFirstOrThrow())
    for (const text of [JSON.stringify(told), receiptText(told).join('\n')]) {
      expect(text).not.toContain(canary)
      expect(text).not.toContain(token.token)
      expect(text).toContain('***')
    }
  })

  it('is not shown to another project, to a lease’s own token, or of what nothing names', async () => {
    const w = await start()
    const lease = await released(w)
    const refused = async (key: string, actor: Actor): Promise<string> =>
      receipt(w, key, actor).then(
        () => 'shown',
        (error: unknown) => (error instanceof LeaseholdError ? error.code : String(error)),
      )
    for (const key of [lease.id, lease.slug, lease.ref, `process/here/${lease.cloudID}`, lease.cleanup.removalID as string]) {
      expect(await refused(key, stranger), key).toBe('not_found')
      expect(await refused(key, ann), key).toBe('shown')
    }
    expect(await refused('lh_0123456789ab', root)).toBe('not_found')
    expect(await refused(lease.id, { ...ann, onlyLease: lease.id as never })).toBe('forbidden')
  })
})

/** Another coordinator on the same database and provider. */
const sweepWorldOn = async (w: SweepWorld): Promise<SweepWorld> => {
  const engine = await createEngine({ store: w.store, providers: [w.provider], log: silentLog, version: 'test', watchClocks: false })
  await engine.start()
  return { ...w, engine }
}
