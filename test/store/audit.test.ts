import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { sealAll } from '../../src/engine/seal.ts'
import { parsePoint, pointText, type ChainPoint } from '../../src/model/audit-chain.ts'
import type { AuditProblem, AuditVerificationView } from '../../src/model/wire-audit.ts'
import type { Store, Tx } from '../../src/store/store.ts'
import { append, auditRecord, chainOf, resealAll, verify } from '../support/audit-chain.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { insertRows } from './rows.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const length = 600

const setBody = (tx: Tx, seq: number, body: string) => tx.db.updateTable('audit').set({ body }).where('seq', '=', seq).execute()
const bodyAt = async (tx: Tx, seq: number): Promise<string> =>
  (await tx.db.selectFrom('audit').select('body').where('seq', '=', seq).executeTakeFirstOrThrow()).body

interface Tampering {
  name: string
  work: (tx: Tx) => Promise<unknown>
  found: { what: AuditProblem; seq: number }
}
const tamperings: readonly Tampering[] = [
  {
    name: 'one byte of a body is flipped',
    work: async (tx) => setBody(tx, 300, (await bodyAt(tx, 300)).replace('quoted', 'quoteD')),
    found: { what: 'changed', seq: 300 },
  },
  {
    name: 'its actor is another',
    work: (tx) => tx.db.updateTable('audit').set({ actor: 'nobody' }).where('seq', '=', 251).execute(),
    found: { what: 'changed', seq: 251 },
  },
  {
    name: 'its time is another',
    work: (tx) =>
      tx.db
        .updateTable('audit')
        .set({ at: t0 + 1 })
        .where('seq', '=', 250)
        .execute(),
    found: { what: 'changed', seq: 250 },
  },
  {
    name: 'one record is deleted',
    work: (tx) => tx.db.deleteFrom('audit').where('seq', '=', 301).execute(),
    found: { what: 'gap', seq: 301 },
  },
  {
    name: 'the first record is deleted',
    work: (tx) => tx.db.deleteFrom('audit').where('seq', '=', 1).execute(),
    found: { what: 'gap', seq: 1 },
  },
  {
    name: 'two records change places',
    work: async (tx) => {
      for (const [from, to] of [
        [10, 1_000_000],
        [20, 10],
        [1_000_000, 20],
      ] as const)
        await tx.db.updateTable('audit').set({ seq: to }).where('seq', '=', from).execute()
    },
    found: { what: 'changed', seq: 10 },
  },
  {
    name: 'two bodies change places',
    work: async (tx) => {
      const [one, other] = [await bodyAt(tx, 400), await bodyAt(tx, 401)]
      await setBody(tx, 400, other)
      await setBody(tx, 401, one)
    },
    found: { what: 'changed', seq: 400 },
  },
  {
    name: 'the end is cut off',
    work: (tx) => tx.db.deleteFrom('audit').where('seq', '>', 590).execute(),
    found: { what: 'truncated', seq: 591 },
  },
  {
    name: 'everything is deleted',
    work: (tx) => tx.db.deleteFrom('audit').execute(),
    found: { what: 'truncated', seq: 1 },
  },
  {
    name: "the chain's own row is set back",
    work: (tx) => tx.db.updateTable('chain').set({ seq: 500 }).execute(),
    found: { what: 'beyond-head', seq: 501 },
  },
  {
    name: 'the last record and its hash are written anew',
    work: async (tx) => {
      await setBody(tx, 600, '{}')
      await tx.db
        .updateTable('audit')
        .set({ hash: '1'.repeat(64) })
        .where('seq', '=', 600)
        .execute()
    },
    found: { what: 'changed', seq: 600 },
  },
]

eachStore('the chain over the audit', (open) => {
  const undone = new Error('undone')
  /** Works on the same database again afterwards: a transaction of its own, taken back. */
  const within = async (store: Store, work: (tx: Tx) => Promise<unknown>, look: (store: Store) => Promise<void>): Promise<void> => {
    await store
      .write(async (tx) => {
        await work(tx)
        await look({
          ...store,
          dialect: store.dialect,
          now: async () => tx.now,
          read: (body) => body(tx),
          write: (body) => body(tx),
        } as Store)
        throw undone
      })
      .catch((error: unknown) => {
        if (error !== undone) throw error
      })
  }

  it('every way of tampering is found, at its first place, and taken back the chain is whole again', async () => {
    const store = await open()
    await setClock(store, t0)
    await chainOf(store, length)
    for (const { name, work, found } of tamperings) {
      await within(store, work, async (tampered) => {
        const verified = await verify(tampered)
        expect(verified, name).toMatchObject({ ok: false, problem: found })
        expect(verified.problem?.message, name).toMatch(new RegExp(`\\b${found.seq}\\b`))
        expect(verified.to.seq, name).toBe(found.what === 'beyond-head' ? length : found.seq - 1)
      })
      expect(await verify(store), name).toMatchObject({ ok: true, complete: true, checked: length, problem: null })
    }
  })

  it('who writes the whole chain anew is found by a head that was kept elsewhere, and by nothing else', async () => {
    const store = await open()
    const head = await chainOf(store, 30)
    const kept = pointText(head)
    const cut: [string, (store: Store) => Promise<unknown>, number][] = [
      ['cut', (tampered) => tampered.write((tx) => tx.db.deleteFrom('audit').where('seq', '>', 20).execute()), 21],
      ['changed', (tampered) => tampered.write((tx) => setBody(tx, 7, '{}')), 30],
    ]
    for (const [name, change, seq] of cut)
      await within(
        store,
        async () => {},
        async (tampered) => {
          await change(tampered)
          await resealAll(tampered)
          expect(await verify(tampered), name).toMatchObject({ ok: true, complete: true })
          expect(await verify(tampered, { expect: kept }), name).toMatchObject({ ok: false, problem: { what: 'not-as-expected', seq } })
        },
      )
    expect(await verify(store, { expect: kept })).toMatchObject({ ok: true })
    await append(store, auditRecord('later', 'operator'))
    await sealAll(store, 're_1')
    expect(await verify(store, { expect: kept })).toMatchObject({ ok: true, checked: 31 })
  })

  it('in parts it says the same as in one go, and goes on from where it was', async () => {
    const store = await open()
    const head = await chainOf(store, length)
    let last: AuditVerificationView | undefined
    let checked = 0
    while (!last?.complete) {
      last = await verify(store, { limit: 170, ...(last ? { from: pointText(last.to) } : {}) })
      expect(last.ok).toBe(true)
      checked += last.checked
    }
    expect([checked, last.to]).toEqual([length, head])
    // Somebody who goes on from a hash that never stood there is told so at once.
    expect(await verify(store, { from: `300:${'a'.repeat(64)}` })).toMatchObject({
      ok: false,
      problem: { what: 'not-as-expected', seq: 300 },
    })
    expect(await verify(store, { from: `900:${'a'.repeat(64)}` })).toMatchObject({
      ok: false,
      problem: { what: 'not-as-expected', seq: 601 },
    })
  })

  it('a call without an answer is told, and fails only where its removal is gone without a word on how', async () => {
    const store = await open()
    await setClock(store, t0)
    const states = ['removing', 'gone', 'gone', 'gone', 'gone'] as const
    await store.write(async (tx) => {
      await insertRows(tx, 'removals', 5, (n) => ({ state: states[n - 1], attempt_id: n === 5 ? 'at_4' : `at_${n}` }))
    })
    const intent = (n: number, body: Record<string, unknown> = { evidence: null }) =>
      auditRecord(`${n}-intent`, 'intent', { removal_id: `rm_${n}` as never, body })
    // 1 is under way, 2 has a proof, 3 is of an older version, 4 is gone by the proof of 5, which is of the same attempt.
    await append(
      store,
      intent(1),
      intent(2),
      auditRecord('2-proof', 'proof', { removal_id: 'rm_2' as never }),
      intent(3, { call: 'remove' }),
      intent(4),
      auditRecord('5-proof', 'proof', { removal_id: 'rm_5' as never }),
      auditRecord('6-intent', 'intent', { removal_id: 'rm_2' as never }),
      auditRecord('6-outcome', 'outcome', { removal_id: 'rm_2' as never, intent_id: 'au_6-intent' }),
    )
    await sealAll(store, 're_1')
    const verified = await verify(store)
    expect(verified).toMatchObject({ ok: true, danglingCount: 4 })
    expect(verified.dangling.map((one) => [one.recordID, one.removalState])).toEqual([
      ['au_1-intent', 'removing'],
      ['au_2-intent', 'gone'],
      ['au_3-intent', 'gone'],
      ['au_4-intent', 'gone'],
    ])
    // The twin: the same without the proof.
    await within(
      store,
      (tx) => tx.db.updateTable('audit').set({ kind: 'operator' }).where('id', '=', 'au_2-proof').execute(),
      async (tampered) => {
        await resealAll(tampered)
        await tampered.write((tx) => tx.db.deleteFrom('audit').where('kind', '=', 'outcome').execute())
        await resealAll(tampered)
        expect(await verify(tampered)).toMatchObject({ ok: false, problem: { what: 'gone-without-outcome', recordID: 'au_2-intent' } })
      },
    )
  })

  it('an outcome that names no intent is found', async () => {
    const store = await open()
    await append(store, auditRecord('1', 'operator'), auditRecord('2', 'outcome', { intent_id: 'au_1' }))
    await sealAll(store, 're_1')
    expect(await verify(store)).toMatchObject({ ok: false, problem: { what: 'outcome-without-intent', seq: 2, recordID: 'au_2' } })
  })

  it('what waits for its seal for longer than a minute is found, and a minute is not longer', async () => {
    const store = await open()
    await setClock(store, t0)
    await chainOf(store, 2)
    await append(store, auditRecord('waits', 'operator'))
    await advance(store, 60_000)
    expect(await verify(store)).toMatchObject({ ok: true, unsealed: { count: 1, oldestAt: new Date(t0).toISOString() } })
    await advance(store, 1)
    expect(await verify(store)).toMatchObject({ ok: false, problem: { what: 'unsealed', seq: null } })
  })

  it('on a large audit every look of the sealer goes by an index', async () => {
    const store = await open()
    if (store.dialect !== 'sqlite') return
    await chainOf(store, 1)
    const plan = async (text: string): Promise<string> =>
      (await store.read(({ db }) => sql.raw<{ detail: string }>(`explain query plan ${text}`).execute(db))).rows
        .map((row) => row.detail)
        .join(' ')
    expect(await plan('select * from audit where seq is null order by at, id limit 250')).toMatch(/USING INDEX audit_unsealed/)
    expect(await plan('select * from audit where seq > 5 and seq <= 9 order by seq limit 250')).toMatch(/USING INDEX audit_seq/)
    expect(await plan('select max(audit.seq) from audit where audit.seq is not null')).toMatch(/audit_seq/)
    expect(await plan("select intent_id from audit where kind = 'outcome' and intent_id in (select value from json_each('[]'))")).toMatch(
      /audit_outcome/,
    )
  })
})

describe('a point of the chain as people write it', () => {
  it('is read as it was written, and anything else is none', () => {
    const point: ChainPoint = { seq: 12, hash: '0a'.repeat(32) }
    expect(parsePoint(pointText(point))).toEqual(point)
    expect(parsePoint(` 12:${'0A'.repeat(32)} `)).toEqual(point)
    for (const wrong of ['', '12', `12:${'0a'.repeat(31)}`, `-1:${'0a'.repeat(32)}`, `12:${'0g'.repeat(32)}`, `12:${'0a'.repeat(32)}0`])
      expect(parsePoint(wrong)).toBeNull()
  })
})
