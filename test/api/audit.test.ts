/** The audit and receipts over HTTP: every answer is held to the published document by `call`. */
import { afterEach, expect, test } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { chainHash, chainStart } from '../../src/model/audit-chain.ts'
import { sha256 } from '../../src/lib/sha256.ts'
import type { AuditRecordView, AuditVerificationView, ReceiptView } from '../../src/model/wire-audit.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { makeBench, root, type Bench } from './support.ts'

eachStore('the audit over HTTP', (open) => {
  let bench: Bench
  afterEach(() => bench.close())
  /** Two leases of `default` and one of `other`, all taken back and sealed. */
  const start = async (): Promise<string[]> => {
    const store = await open()
    await setClock(store, Date.UTC(2026, 5, 1, 12))
    bench = await makeBench(store)
    const ids: string[] = []
    for (const project of ['default', 'default', 'other']) {
      const { lease } = await bench.lease({ project })
      ids.push(lease.id)
      await releaseLease(bench.engine.context, root, lease.id, {})
      await until(async () => (await bench.call('GET', `/v1/leases/${lease.id}`)).body['lease'].cleanup.state === 'gone', 'it is gone')
    }
    await until(async () => (await verify()).to.seq === 9, 'all of it is sealed')
    return ids
  }
  const verify = async (query = ''): Promise<AuditVerificationView> =>
    (await bench.call<{ verification: AuditVerificationView }>('GET', `/v1/admin/audit/verify${query}`)).body.verification
  const list = async (query = '', token?: string): Promise<AuditRecordView[]> =>
    (await bench.call<{ records: AuditRecordView[] }>('GET', `/v1/admin/audit${query}`, undefined, token === undefined ? {} : { token }))
      .body.records

  test('the records are listed newest first, and whoever has them can work every hash out', async () => {
    await start()
    const records = await list('?limit=500')
    expect(records.map((one) => one.kind)).toEqual([
      'proof',
      'outcome',
      'intent',
      'proof',
      'outcome',
      'intent',
      'proof',
      'outcome',
      'intent',
    ])
    let before = chainStart.hash
    for (const one of records.toReversed()) {
      const text = {
        id: one.id,
        at: Date.parse(one.at),
        kind: one.kind,
        intent_id: one.intentID,
        removal_id: one.removalID,
        project: one.project,
        scope: one.scope,
        ref: one.ref,
        actor: one.actor,
        body: JSON.stringify(one.body),
      }
      expect(one.hash).toBe(chainHash(before, text, sha256))
      before = one.hash as string
    }
    const [newest] = records
    expect(await list(`?removal=${newest?.removalID}`)).toEqual(records.slice(0, 3))
    expect(await list('?project=default&limit=2')).toEqual(records.slice(3, 5))
    // An admin of one project sees that project's.
    expect(await list('', await bench.token('admin', 'default'))).toEqual(records.slice(3))
    const { status } = await bench.call('GET', '/v1/admin/audit?project=other', undefined, {
      token: await bench.token('admin', 'default', 'two'),
    })
    expect(status).toBe(404)
  })

  test('the chain is verified in one call or in parts, and a break is an answer that names its place', async () => {
    await start()
    const whole = await verify()
    expect(whole).toMatchObject({ ok: true, complete: true, checked: 9, problem: null, to: whole.head, unsealed: { count: 0 } })
    const part = await verify('?limit=4')
    expect(part).toMatchObject({ ok: true, complete: false, checked: 4, to: { seq: 4 } })
    expect(await verify(`?from=4:${part.to.hash}`)).toMatchObject({ ok: true, complete: true, checked: 5, to: whole.to })
    expect(await verify(`?expect=9:${whole.head.hash}`)).toMatchObject({ ok: true })
    expect(await verify(`?expect=9:${'0'.repeat(64)}`)).toMatchObject({ ok: false, problem: { what: 'not-as-expected', seq: 9 } })
    for (const wrong of ['?expect=9', '?from=x', '?limit=0', '?moon=1'])
      expect(await bench.call('GET', `/v1/admin/audit/verify${wrong}`)).toMatchObject({ status: 400, body: { error: 'bad_request' } })
    await bench.store.write((tx) => tx.db.deleteFrom('audit').where('seq', '=', 5).execute())
    expect(await verify()).toMatchObject({ ok: false, complete: false, problem: { what: 'gap', seq: 5 }, to: { seq: 4 } })
  })

  test('a receipt is read by any key, and is not there for others', async () => {
    const [, mine = '', other = ''] = await start()
    const read = (key: string, token?: string) =>
      bench.call<{ receipt: ReceiptView }>(
        'GET',
        `/v1/receipts/${encodeURIComponent(key)}`,
        undefined,
        token === undefined ? {} : { token },
      )
    const { body } = await read(mine)
    expect(body.receipt).toMatchObject({ key: mine, project: 'default', removals: [{ verdict: 'deleted', orderedBy: 'root', open: [] }] })
    const user = await bench.token('user', 'default')
    expect((await read(mine, user)).status).toBe(200)
    expect(await read(other, user)).toMatchObject({ status: 404, body: { error: 'not_found' } })
    expect((await read(other)).status).toBe(200)
    const [removal] = body.receipt.removals
    const key = `process/${removal?.resources[0]?.location}/${removal?.resources[0]?.nativeID}`
    expect((await read(key)).body.receipt.removals).toEqual([removal])
    expect((await read('no-such-thing')).status).toBe(404)
  })

  test('what a sweep took back has a receipt that is what the document says', async () => {
    const store = await open()
    await setClock(store, Date.UTC(2026, 5, 1, 12))
    bench = await makeBench(store)
    bench.engine.context.sweepSettings = (provider) => {
      const of = <T>(value: T) => ({ value, origin: `test of ${provider}` })
      return { mode: of('delete' as const), intervalMs: of(900_000), graceMs: of(0), reportEveryMs: of(86_400_000) }
    }
    const { lease } = await bench.lease({ ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    const box = bench.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    await releaseLease(bench.engine.context, root, lease.id, {})
    await until(async () => (await bench.call('GET', `/v1/leases/${lease.id}`)).body['lease'].cleanup.state === 'gone', 'it is gone')
    bench.provider.boxes.set(box.resource.nativeId, box)
    for (let i = 0; i < 2; i++) {
      await advance(store, 60_000)
      await bench.call('POST', '/v1/sweeps', { project: 'default' })
    }
    await until(() => !bench.provider.boxes.has(box.resource.nativeId), 'it is taken back')
    const { body } = await bench.call<{ receipt: ReceiptView }>('GET', `/v1/receipts/${lease.id}`)
    expect(body.receipt.removals.map((one) => one.found?.reason ?? null)).toEqual(['orphan.owner-ended', null])
  })
})
