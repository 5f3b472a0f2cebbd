import fc from 'fast-check'
import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { applySeals, prepareSeals, sealAll, type Batch } from '../../src/engine/seal.ts'
import { canonicalText, pointText } from '../../src/model/audit-chain.ts'
import { chainRow, sealedAfter, unsealedRecords } from '../../src/store/audit-chain.ts'
import type { Store } from '../../src/store/store.ts'
import { append, auditRecord, chainOf, verify } from '../support/audit-chain.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from '../support/engine.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
let serial = 0
const fresh = () => auditRecord(`${++serial}`.padStart(8, '0'), 'operator')
const everySeal = async (store: Store) =>
  (await store.read((session) => sealedAfter(session, 0, Number.MAX_SAFE_INTEGER, 100_000))).map((row) => ({
    id: row.id,
    seq: row.seq,
    hash: row.hash,
  }))

type Step = { kind: 'append'; count: number } | { kind: 'late' } | { kind: 'prepare' | 'apply'; sealer: 0 | 1 }
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant('late' as const) }),
    fc.record({ kind: fc.constantFrom('prepare' as const, 'apply' as const), sealer: fc.constantFrom(0 as const, 1 as const) }),
  ),
  { minLength: 5, maxLength: 40 },
)

eachStore('the sealer', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })

  it('however writers and two sealers take turns, every record is chained once, without a gap, and what is chained stays as it is (I3)', async () => {
    const store = await open()
    await setClock(store, t0)
    const play = async (step: Step, prepared: (Batch | null)[]): Promise<void> => {
      if (step.kind === 'append') return append(store, ...Array.from({ length: step.count }, fresh))
      // Its time is older than what is chained already, as of a transaction that began early and committed late.
      if (step.kind === 'late')
        return store.write(async (tx) => {
          await tx.db
            .insertInto('audit')
            .values({ ...fresh(), body: '{}', at: t0 - 1000, seq: null, hash: null })
            .execute()
        })
      // Both under one name: neither keeps away for the other's sake.
      if (step.kind === 'prepare') prepared[step.sealer] = await prepareSeals(store, 're_1', 3)
      else {
        const batch = prepared[step.sealer]
        if (batch) await applySeals(store, batch, 're_1')
      }
    }
    let from: string | undefined
    await fc.assert(
      fc.asyncProperty(steps, async (played) => {
        const before = await everySeal(store)
        const prepared: (Batch | null)[] = [null, null]
        for (const step of played) await play(step, prepared)
        await sealAll(store, 're_1')
        const after = await everySeal(store)
        expect(after.slice(0, before.length)).toEqual(before)
        expect(after.map((one) => one.seq)).toEqual(after.map((_, i) => i + 1))
        expect(await store.read((session) => unsealedRecords(session, 1))).toEqual([])
        const verified = await verify(store, from === undefined ? {} : { from })
        expect(verified).toMatchObject({ ok: true, complete: true, to: { seq: after.length } })
        from = pointText(verified.to)
      }),
      { numRuns: store.dialect === 'sqlite' ? 60 : 10 },
    )
    expect(await verify(store)).toMatchObject({ ok: true, complete: true, checked: (await everySeal(store)).length })
  })

  it('writers and sealers at the same moment leave one chain', async () => {
    const store = await open()
    const writer = async () => {
      for (let i = 0; i < 20; i++) await append(store, fresh(), fresh())
    }
    const sealer = async (owner: string) => {
      for (let i = 0; i < 25; i++) await sealAll(store, owner)
    }
    await Promise.all([writer(), writer(), writer(), sealer('re_1'), sealer('re_1'), sealer('re_1')])
    await sealAll(store, 're_1')
    expect((await everySeal(store)).map((one) => one.seq)).toEqual(Array.from({ length: 120 }, (_, i) => i + 1))
    expect(await verify(store)).toMatchObject({ ok: true, checked: 120 })
  })

  it('of two that seal the same records exactly one writes', async () => {
    const store = await open()
    await append(store, fresh(), fresh())
    const batches = (await Promise.all([prepareSeals(store, 're_1'), prepareSeals(store, 're_2')])) as Batch[]
    expect(batches.map((batch) => batch.seals.length)).toEqual([2, 2])
    const wrote = await Promise.all([applySeals(store, batches[0] as Batch, 're_1'), applySeals(store, batches[1] as Batch, 're_2')])
    expect(wrote.filter((one) => one)).toHaveLength(1)
    expect(await verify(store)).toMatchObject({ ok: true, checked: 2 })
  })

  it('one that stalled while another sealed writes nothing, though its records are there still', async () => {
    const store = await open()
    await append(store, fresh(), fresh())
    const stalled = (await prepareSeals(store, 're_1', 1)) as Batch
    await append(store, fresh())
    // The other one has sealed something else in between: the first record of the stalled one it has as well.
    expect(await sealAll(store, 're_2')).toBe(3)
    const before = await everySeal(store)
    expect(await applySeals(store, stalled, 're_1')).toBe(false)
    expect(await everySeal(store)).toEqual(before)
    // Not because of the owner: with the fence of now the same one seals.
    await append(store, fresh())
    const { lock_fence: fence, seq, hash } = await store.read(chainRow)
    expect(fence).toBe(1)
    await setClock(store, (await store.now()) + 5_001)
    const again = (await prepareSeals(store, 're_1')) as Batch
    expect(again.held).toEqual({ fence, head: { seq, hash } })
    expect(await applySeals(store, again, 're_1')).toBe(true)
  })

  it('while one replica seals the others leave it to it, and take over 5 s after its last word', async () => {
    const store = await open()
    await setClock(store, t0)
    await append(store, fresh())
    expect(await sealAll(store, 're_1')).toBe(1)
    await append(store, fresh())
    await advance(store, 5_000 - 1)
    expect(await sealAll(store, 're_2')).toBe(0)
    await advance(store, 1)
    expect(await sealAll(store, 're_2')).toBe(1)
    expect(await verify(store)).toMatchObject({ ok: true, checked: 2 })
  })

  it('the same records have the same chain on both databases', async () => {
    const store = await open()
    await setClock(store, t0)
    // Worked out by another program from the description of the format.
    expect(pointText(await chainOf(store, 3))).toBe('3:8f0cbefbdabdd1b67ef32e8505580ad57548058b6ee86620a04d268fffeb144b')
    const [first] = await store.read((session) => sealedAfter(session, 0, 1, 1))
    expect(first && canonicalText(first)).toBe(
      '["au_000001",1780315200000,"operator",null,null,"default",null,null,"system","{\\"said\\":\\"ä \\\\\\"quoted\\\\\\" \\\\\\\\ line\\\\n000001\\"}"]',
    )
  })

  it('a running engine seals what its removals record, by itself', async () => {
    const store = await open()
    const provider = scriptedProvider()
    const engine = await makeEngine(store, provider)
    engines.push(engine)
    await engine.start()
    const lease = await leaseOn(engine)
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    await until(async () => (await everySeal(store)).length === 3, 'intent, outcome and proof are sealed')
    expect(await verify(store)).toMatchObject({ ok: true, complete: true, checked: 3, danglingCount: 0, unsealed: { count: 0 } })
  })

  it('what was committed just before it stops is sealed when it has stopped', async () => {
    const store = await open()
    const engine = await makeEngine(store, scriptedProvider())
    await engine.start()
    await append(store, fresh())
    await engine.stop()
    expect(await verify(store)).toMatchObject({ ok: true, checked: 1, unsealed: { count: 0 } })
  })
})
