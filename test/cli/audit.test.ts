/** The commands of the audit against the real engine through its API. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import type { AuditRecordView, AuditVerificationView, ReceiptView } from '../../src/model/wire-audit.ts'
import type { Store } from '../../src/store/store.ts'
import { makeBench, root, type Bench } from '../api/support.ts'
import { sqliteDatabase } from '../support/databases.ts'
import { setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { startCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

describe('audit and receipt', () => {
  const database = sqliteDatabase()
  let store: Store
  let bench: Bench
  let box: Sandbox
  let leaseId = ''
  beforeAll(async () => {
    store = await database.open()
    await setClock(store, Date.UTC(2029, 11, 31, 23))
    bench = await makeBench(store)
    await bench.api.listen({ host: '127.0.0.1', port: 0 })
    const { port } = bench.api.server.address() as { port: number }
    box = sandbox(`http://127.0.0.1:${port}`)
    box.environment['LEASEHOLD_TOKEN'] = bench.admin
    const { lease } = await bench.lease({ slug: 'calm-otter' })
    leaseId = lease.id
    await releaseLease(bench.engine.context, root, lease.id, {})
    await until(async () => (await json<AuditVerificationView>('audit', 'verify')).to.seq === 3, 'it is gone and sealed')
  })
  afterAll(async () => {
    box.remove()
    await bench.close()
    await store.close()
    await database.drop()
  })
  const json = async <T>(...argv: string[]): Promise<T> => JSON.parse((await box.run([...argv, '--json'])).out) as T

  it('audit verify says that the chain is whole, and prints the head for a person to keep', async () => {
    const { head } = await json<AuditVerificationView>('audit', 'verify')
    const { status, out, err } = await box.run(['audit', 'verify'])
    expect([status, err]).toEqual([0, ''])
    expect(out).toMatch(/^chain +whole$/m)
    expect(out).toMatch(/^verified +3 records, from the first to 3$/m)
    expect(out).toContain(`leasehold audit verify --expect 3:${head.hash}\n`)
    expect((await box.run(['audit', 'verify', '--expect', `3:${head.hash}`])).status).toBe(0)
    expect((await box.run(['audit', 'verify', '--from', `3:${head.hash}`])).out).toMatch(/^verified +0 records, after 3 to 3$/m)
  })

  it('another head than was kept is exit 1, and one that is none is exit 2 and asks nobody', async () => {
    const { status, out, err } = await box.run(['audit', 'verify', '--expect', `3:${'0'.repeat(64)}`])
    expect(status).toBe(1)
    expect(out).toMatch(/^chain +broken at 3$/m)
    expect(err).toMatch(/^leasehold: record 3 has another hash than expected/)
    expect(await box.run(['audit', 'verify', '--expect', '3'])).toMatchObject({ status: 2, out: '' })
  })

  it('a wrong hash to go on from is told as that, not as a change of the record after it', async () => {
    const { status, err } = await box.run(['audit', 'verify', '--from', `2:${'0a'.repeat(32)}`])
    expect(status).toBe(1)
    expect(err).toMatch(
      /^leasehold: record 2 has another hash than the one given to go on from: .*copied wrong.*nothing after it was looked at/,
    )
    expect(err).not.toContain('record 3')
  })

  it('audit list has a line per record, of one removal if asked, and one array with --json', async () => {
    const records = await json<AuditRecordView[]>('audit', 'list')
    expect(records.map((one) => one.kind)).toEqual(['proof', 'outcome', 'intent'])
    const { status, out } = await box.run(['audit', 'list', '--removal', records[0]?.removalID as string, '--limit', '2'])
    expect(status).toBe(0)
    expect(out.split('\n')).toHaveLength(4)
    expect(out).toMatch(/^ +3 {2}2029-12-31T23:00:00.000Z {2}proof +rm_\w+ +\w+ +system +.* is absent: not in the list$/m)
  })

  it('receipt prints the evidence by the slug of a lease that has ended, and --json the object of the API', async () => {
    const { status, out, err } = await box.run(['receipt', 'calm-otter'])
    expect([status, err]).toEqual([0, ''])
    expect(out).toMatch(
      /^everything named calm-otter\n\nremoval rm_\w+: box process\/here\/.* was deleted \(1 call, the first at 2029-12-31T23:00:00.000Z\); its absence was proved/,
    )
    expect(out).toMatch(/^ {2}ordered 2029-12-31T23:00:00.000Z by root: released, its holder gave the lease up$/m)
    expect(out).toMatch(/^ {4}2029-12-31T23:00:00.000Z {2}answered gone \[audit 2, [0-9a-f]{16}…: holds\]$/m)
    expect((await json<ReceiptView>('receipt', leaseId)).removals).toMatchObject([{ leaseID: leaseId, verdict: 'deleted' }])
    expect(await box.run(['receipt', 'no-such-thing'])).toMatchObject({ status: 4, out: '' })
  })

  it('a chain that was tampered with is exit 1 with the first place, also with --json', async () => {
    await store.write((tx) => tx.db.updateTable('audit').set({ actor: 'nobody' }).where('seq', '=', 2).execute())
    const { status, out, err } = await box.run(['audit', 'verify'])
    expect(status).toBe(1)
    expect(out).toMatch(/^chain +broken at 2$/m)
    expect(out).not.toContain('--expect')
    expect(err).toMatch(/^leasehold: record 2 \(au_\w+\) is not what was sealed/)
    const machine = await box.run(['audit', 'verify', '--json'])
    expect(machine.status).toBe(1)
    expect(JSON.parse(machine.out)).toMatchObject({ ok: false, problem: { what: 'changed', seq: 2 } })
    const receipt = await box.run(['receipt', leaseId])
    expect(receipt).toMatchObject({ status: 1, out: expect.stringContaining('DOES NOT HOLD') })
    expect(receipt.err).toContain('this receipt proves nothing')
  })

  it('a receipt of which records are missing is exit 1 and says so, also with --json', async () => {
    await store.write((tx) => tx.db.deleteFrom('audit').where('kind', '=', 'intent').execute())
    const { status, out, err } = await box.run(['receipt', leaseId])
    expect(status).toBe(1)
    expect(out).toContain('MISSING: the intent before the answer of')
    expect(err).toContain('audit records are missing, or were changed')
    const machine = await box.run(['receipt', leaseId, '--json'])
    expect(machine.status).toBe(1)
    expect(JSON.parse(machine.out)).toMatchObject({ whole: false, removals: [{ verdict: 'unknown' }] })
  })

  it('audit list says of a hold that was removed what it was on', async () => {
    const { id } = await json<{ id: string }>('hold', 'add', 'default', '--type', 'project', '--reason', 'mine')
    await box.run(['hold', 'remove', id])
    expect((await box.run(['audit', 'list', '--limit', '1'])).out).toContain(`hold.remove ${id} on project default`)
  })
})

describe('audit verify of a long chain', () => {
  it('goes on from where each answer ends until the end, and shows its progress on a terminal only', async () => {
    const coordinator = await startCoordinator()
    const box = sandbox(coordinator.url)
    const hash = (seq: number): string => `${seq}`.padStart(64, '0')
    const length = 45_000
    coordinator.override = ({ path, query }) => {
      if (path !== '/v1/admin/audit/verify') return null
      const from = Number(query['from']?.split(':')[0] ?? 0)
      const to = Math.min(length, from + Number(query['limit']))
      const verification: AuditVerificationView = {
        ok: true,
        complete: to === length,
        from: { seq: from, hash: hash(from) },
        to: { seq: to, hash: hash(to) },
        head: { seq: length, hash: hash(length) },
        sealedAt: null,
        checked: to - from,
        problem: null,
        dangling: [{ seq: to, recordID: `au_${to}`, at: '2030-01-01T00:00:00.000Z', removalID: 'rm_1', removalState: 'gone' }],
        danglingCount: 1,
        unsealed: { count: 0, oldestAt: null },
      }
      return { status: 200, body: { verification } }
    }
    try {
      const shown = await box.run(['audit', 'verify'], { terminal: true })
      expect(shown.err.split('\r')).toEqual(['', '20000 of 45000 records verified', '40000 of 45000 records verified', '\x1b[K'])
      expect(shown.out).toMatch(/^verified +45000 records, from the first to 45000$/m)
      expect(shown.out).toContain('3 calls without a recorded answer')
      expect(coordinator.seen.map(({ query }) => query['from'] ?? null)).toEqual([null, `20000:${hash(20_000)}`, `40000:${hash(40_000)}`])
      const piped = await box.run(['audit', 'verify'])
      expect([piped.status, piped.out, piped.err]).toEqual([0, shown.out, ''])
      expect((await box.run(['audit', 'verify', '--json'], { terminal: true })).err).toBe('')
    } finally {
      box.remove()
      await coordinator.close()
    }
  })
})
