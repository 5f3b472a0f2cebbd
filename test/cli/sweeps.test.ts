/** The commands of sweeps against the real engine through its API. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import type { RemovalView } from '../../src/model/wire-removals.ts'
import type { ExplanationView, FindingView, SweepView } from '../../src/model/wire.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import type { Store } from '../../src/store/store.ts'
import { makeBench, root, type Bench } from '../api/support.ts'
import { sqliteDatabase } from '../support/databases.ts'
import { advance, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

describe('sweep, orphans, sweeps and explain', () => {
  const database = sqliteDatabase()
  let store: Store
  let bench: Bench
  let box: Sandbox
  let key = ''
  let leaseId = ''
  beforeAll(async () => {
    store = await database.open()
    await setClock(store, Date.UTC(2029, 11, 31, 23))
    bench = await makeBench(store)
    await bench.api.listen({ host: '127.0.0.1', port: 0 })
    const { port } = bench.api.server.address() as { port: number }
    box = sandbox(`http://127.0.0.1:${port}`)
    box.environment['LEASEHOLD_TOKEN'] = bench.admin
    const { lease } = await bench.lease({ ttlSeconds: 86_400, idleTimeoutSeconds: 86_400, slug: 'calm-otter' })
    leaseId = lease.id
    key = `process/${lease.location}/${lease.cloudID}`
    const made = bench.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    await releaseLease(bench.engine.context, root, lease.id, {})
    await until(async () => (await bench.call('GET', `/v1/leases/${lease.id}`)).body['lease'].cleanup.state === 'gone', 'it is gone')
    bench.provider.boxes.set(made.resource.nativeId, made)
    await advance(store, 60_000)
  })
  afterAll(async () => {
    box.remove()
    await bench.close()
    await store.close()
    await database.drop()
  })
  const json = async <T>(...argv: string[]): Promise<T> => JSON.parse((await box.run([...argv, '--json'])).out) as T

  it('sweep --dry-run shows coverage, verdicts with their reasons and what holds each orphan back, and keeps nothing', async () => {
    const { status, out, err } = await box.run(['sweep', '--dry-run'])
    expect([status, err]).toEqual([0, ''])
    expect(out).toContain('backend default/local (process): unsettled\n')
    expect(out).toContain('dry run: nothing was written')
    expect(out).toMatch(/^COVERAGE {2}box\nhere {6}complete \(1\)$/m)
    expect(out).toMatch(/^ +1 {2}orphan\.owner-ended {2}Its owner has ended\.$/m)
    expect(out).toMatch(/waits|WAITS FOR/)
    expect(out).toMatch(new RegExp(`^${key} .*the mode is report.*; quarantine: 1 more complete inventory .*until 2029-12-31T23:16:`, 'm'))
    expect(await json<SweepView[]>('sweeps')).toEqual([])
  })

  it('removals lists what is not proved gone, with who, why and what next; a person answers for it or closes it by its id', async () => {
    expect((await box.run(['removals'])).err).toContain('no open removals')
    bench.provider.onRead = () => ({ kind: 'unknown', error: 'HTTP 500' })
    const { lease } = await bench.lease({ slug: 'wet-heron', ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    await releaseLease(bench.engine.context, root, lease.id, {})
    const [removal] = await until(async () => {
      const open = await json<RemovalView[]>('removals')
      return open[0]?.failures === 1 ? open : undefined
    }, 'it failed')
    const id = removal?.id ?? ''
    const { out } = await box.run(['removals'])
    expect(out).toMatch(/^ID +STATE +NAME +OWNER +CAUSE +SINCE +LEFT +REASON +NEXT STEP/m)
    expect(out).toMatch(new RegExp(`^${id} .*wet-heron.*released.*HTTP 500.*the next try at 20`, 'm'))
    expect((await box.run(['removals', '--stuck'])).err).toBe('leasehold: none of 1 open removal fits the filter\n')
    const shown = await box.run(['removal', 'show', id])
    expect(shown.out).toContain(`fingerprint  ${removal?.fingerprint}`)
    for (const argv of [
      ['acknowledge-absence', id],
      ['close', id],
      ['acknowledge-absence', id, '--reason', 'r'],
    ])
      expect((await box.run(['removal', ...argv])).status, argv.join(' ')).toBe(2)
    const early = await box.run(['removal', 'acknowledge-absence', id, '--fingerprint', removal?.fingerprint ?? '', '--reason', 'r'])
    expect([early.status, early.err]).toEqual([1, expect.stringContaining('does not wait for anybody')])
    expect((await box.run(['removal', 'close', id, '--reason', 'r'])).err).toContain('is still tried by itself')
    await store.write((tx) =>
      tx.db
        .updateTable('removals')
        .set({ due_at: null })
        .where('id', '=', id as never)
        .execute(),
    )
    expect((await box.run(['list'])).out).not.toContain('may still be there')
    const left = `box ${lease.cloudID} in ${lease.location}`
    expect((await box.run(['removal', 'close', id, '--reason', 'ended by hand'])).out).toBe(
      `removal ${id} is closed; nothing is proved by that\nit leaves behind: ${left}, and perhaps more (${lease.cloudID} could not be read: HTTP 500)\n`,
    )
    // Closed is not gone: its lease stays in the list until somebody proves it.
    expect((await box.run(['list'])).out).toMatch(
      new RegExp(`^${lease.id} .*closed by \\S+, ${left}, and perhaps more \\(.*\\) may still be there`, 'm'),
    )
    expect(await json<RemovalView>('removal', 'show', id)).toMatchObject({ state: 'closed', closedReason: 'ended by hand' })
    expect((await box.run(['removal', 'show', 'rm_none'])).status).toBe(4)
    bench.provider.onRead = undefined
    bench.provider.boxes.delete(lease.cloudID ?? '')
  })

  it('sweep --plan writes down what could go with its proofs, plans lists it, and approve wants the hash and the mode', async () => {
    expect((await box.run(['sweep', '--plan'])).out).toContain('nothing could be taken back now')
    expect((await box.run(['plans'])).err).toContain('no plans')
    for (const flags of [
      ['--plan', '--dry-run'],
      ['--approve', 'pl_0123456789ab', '--backend', 'local'],
    ])
      expect((await box.run(['sweep', ...flags])).status).toBe(2)
    // What it deletes is asked about afterwards.
    for (const said of [[], ['--reason', ' ']])
      expect(await box.run(['approve', 'pl_0123456789ab', ...said])).toMatchObject({
        status: 2,
        err: expect.stringContaining('--reason TEXT'),
      })
    expect(await box.run(['approve', 'pl_0123456789ab', '--reason', 'r'])).toMatchObject({
      status: 4,
      err: expect.stringContaining('leasehold plans'),
    })
    expect((await box.run(['approve', 'pl_01', '--reason', 'r'])).err).toContain('too short')
    expect((await box.run(['plans', 'nonsense'])).status).toBe(4)
    expect((await box.run(['approve'])).status).toBe(2)
  })

  it('sweep --let-pass needs a reason, one backend and counts that were implausible', async () => {
    expect((await box.run(['sweep', '--let-pass', 'local'])).err).toContain('--reason')
    expect((await box.run(['sweep', '--reason', 'x'])).err).toContain('--let-pass')
    expect((await box.run(['sweep', '--let-pass', 'local', '--reason', 'x', '--dry-run'])).status).toBe(2)
    const { status, err } = await box.run(['sweep', '--let-pass', 'local', '--reason', 'it was emptied'])
    expect([status === 0, err]).toEqual([false, expect.stringContaining('no implausible counts stand on backend "local"')])
  })

  it('sweep prints the certificate; unsettled is exit 0, --json one array', async () => {
    const sweeps = await json<SweepView[]>('sweep', '--backend', 'local', '--project', 'default')
    expect(sweeps).toMatchObject([{ state: 'ended', outcome: 'unsettled', orphans: [{ target: key }] }])
    await advance(store, 900_000)
    const { status, out } = await box.run(['sweep', '--dry-run'])
    expect(status).toBe(0)
    expect(out).toContain(`mode report takes nothing back; delete mode would begin to take back 1:\n  ${key}\n`)
  })

  it('orphans lists what sweeps found with its quarantine, narrowed by code', async () => {
    const { status, out } = await box.run(['orphans'])
    expect(status).toBe(0)
    expect(out).toMatch(/^ID +CODE +STATE +TARGET +REASON +FIRST SEEN +TIMES +QUARANTINE +ELIGIBLE +MESSAGE$/m)
    expect(out).toMatch(new RegExp(`^fd_\\w+ +orphan +open +${key} +orphan\\.owner-ended .* 1x since .* ago +Its owner has ended\\.$`, 'm'))
    expect(await json<FindingView[]>('orphans', '--code', 'contradiction')).toEqual([])
    expect(await json<FindingView[]>('orphans', '--code', 'orphan', '--all')).toHaveLength(1)
    expect((await box.run(['orphans', '--code', 'missing'])).err).toBe('leasehold: none of 1 open finding fits the filter\n')
  })

  it('an empty list that a filter narrowed says how many there are without it, and never that all is well', async () => {
    const said = async (...argv: string[]): Promise<string> => (await box.run(argv)).err.replace('leasehold: ', '').trim()
    expect(await said('orphans', '--older-than', '2d')).toBe('none of 1 open finding fits the filter')
    expect(await said('findings', '--older-than', '2d')).toBe('none of 1 open finding fits the filter')
    expect(await said('instances', '--older-than', '2d')).toMatch(/^none of \d instances fit the filter$/)
    expect(await said('list', '--all', '--older-than', '2d')).toMatch(/^none of \d leases fit the filter$/)
    expect((await said('list', '--older-than', '2d')).split('\n')[0]).not.toContain('warmup')
    // The twin: what is empty without a filter says so.
    expect(await said('findings', '--state', 'resolved')).toBe('no resolved findings')
    expect(await said('plans', '--state', 'waiting')).toBe('no plans')
  })

  it('findings shows a resource by its key, and what is open unless another state is asked for', async () => {
    const { out } = await box.run(['findings'])
    expect(out).toMatch(new RegExp(`^fd_\\w+ +orphan +open +${key} `, 'm'))
    expect(out).not.toContain('resource:')
    const states = async (...argv: string[]) => (await json<FindingView[]>('findings', ...argv)).map((one) => one.state)
    const everything = await states('--state', 'all')
    expect(await states()).toEqual(everything.filter((state) => state === 'open'))
  })

  it('orphans, findings, list and instances take the same filters, and a misspelt one is exit 2 with what there is', async () => {
    const ids = async (...argv: string[]) => (await json<{ id: string }[]>(...argv)).length
    expect(await ids('orphans', '--owner', 'admin', '--kind', 'box', '--project', 'default')).toBe(1)
    expect(await ids('orphans', '--older-than', '2d')).toBe(0)
    expect(await ids('orphans', '--older-than', '1s')).toBe(1)
    expect(await ids('findings', '--owner', 'admin', '--state', 'open')).toBe(1)
    expect(await ids('list', '--kind', 'box', '--older-than', '1m')).toBe(2)
    expect(await ids('instances', '--owner', 'admin', '--older-than', '1m')).toBe(2)
    for (const [argv, said] of [
      [['orphans', '--backend', 'nope'], 'no backend "nope" is known here; there is local'],
      [['sweeps', '--backend', 'nope'], 'no backend "nope" is known here; there is local'],
      [['orphans', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['list', '--owner', 'nope'], 'nobody of the name "nope" is known here; there is admin'],
      [['list', '--provider', 'nope'], 'no provider "nope" is known here; there is process'],
      [['instances', '--kind', 'nope'], 'no kind "nope" is known here; there is box'],
      [['instances', '--state', 'nope'], 'state'],
      [['findings', '--state', 'nope'], 'state'],
      [['orphans', '--code', 'nope'], 'code'],
      [['orphans', '--label', 'team'], '--label must be key=value'],
      [['orphans', '--label', 'team=nobody'], 'nothing with the label "team=nobody" is known here'],
      [['admin', 'leases', '--label', 'team=nobody'], 'nothing with the label "team=nobody" is known here'],
      [['sweep', '--backend', 'nope'], 'project "default" has no backend "nope"; there is local'],
      [['sweep', '--plan', '--backend', 'nope'], 'project "default" has no backend "nope"; there is local'],
      [['sweep', '--dry-run', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['sweep', '--let-pass', 'nope', '--reason', 'r'], 'project "default" has no backend "nope"; there is local'],
      [['plans', '--backend', 'nope'], 'no backend "nope" is known here; there is local'],
      [['plans', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['removals', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['audit', 'list', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['admin', 'lease-audit', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['backend', 'list', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['backend', 'add', 'lab', '--provider', 'process', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['backend', 'remove', 'local', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['token', 'create', 'x', '--role', 'user', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['warmup', '--backend', 'nope'], 'project "default" has no backend "nope"; there is local'],
      [['warmup', '--project', 'nope'], 'no project "nope" is known here; there is default, other'],
      [['run', '--backend', 'nope', '--', 'true'], 'project "default" has no backend "nope"; there is local'],
      [['orphans', '--older-than', '2'], 'unit'],
      [['sweep', '--owner', 'admin'], 'unknown option'],
    ] as const) {
      const { status, out, err } = await box.run([...argv])
      expect([argv, status, out]).toEqual([argv, 2, ''])
      expect(err, argv.join(' ')).toContain(said)
    }
  })

  it('what a filter can not answer is in the table with what is unknown, and counted', async () => {
    await store.write((tx) =>
      tx.db
        .updateTable('instances')
        .set({ lease_id: null })
        .where('lease_id', '=', leaseId as never)
        .execute(),
    )
    const { out, err } = await box.run(['instances', '--owner', 'admin'])
    expect(out).toMatch(/ UNKNOWN *$/m)
    expect(out).toMatch(/ owner *$/m)
    expect(err).toBe('leasehold: 1 of 2 rows is shown although the owner is not known\n')
    expect(await json('instances', '--owner', 'admin')).toContainEqual(expect.objectContaining({ unknown: ['owner'] }))
    await store.write((tx) =>
      tx.db
        .updateTable('instances')
        .set({ lease_id: leaseId as never })
        .where('lease_id', 'is', null)
        .execute(),
    )
  })

  it('sweeps lists certificates, and shows one whole', async () => {
    const [sweep] = await json<SweepView[]>('sweeps', '--limit', '1')
    const { out } = await box.run(['sweeps'])
    expect(out).toMatch(new RegExp(`^${sweep?.id} +default/local +unsettled +report .* 1 +1/1 complete +1 +0 +`, 'm'))
    const one = await box.run(['sweeps', sweep?.id ?? ''])
    expect(one.out).toContain('COVERAGE')
    expect(await json<SweepView>('sweeps', sweep?.id ?? '')).toEqual(sweep)
    expect((await box.run(['sweeps', 'sw_none'])).status).toBe(4)
  })

  it('explain prints the tree, what holds it back, and in its last line what would change it', async () => {
    for (const name of [key, leaseId]) {
      const { status, out } = await box.run(['explain', name])
      const lines = out.trimEnd().split('\n')
      expect(status).toBe(0)
      expect(lines[1]).toMatch(
        /^ {2}orphan \(orphan\.owner-ended\): Its owner has ended\. \[verdict, 2029-12-31T23:01:00\.000Z, 15m ago\]$/,
      )
      for (const line of lines.slice(1).filter((one) => one.startsWith(' ')))
        expect(line).toMatch(/ \[[a-z]+, 20\d\d-.* (ago|in \S.*)\]$|in [^\]]+\]$/)
      expect(out).toContain('\nHeld back by: the mode is report')
      expect(lines.at(-1)).toBe('What would change this verdict: a hold or a keep label on it')
    }
    expect(await json<ExplanationView>('explain', key)).toMatchObject({ key, verdict: 'orphan', tree: { source: 'verdict' } })
    const { status, out, err } = await box.run(['explain', 'nothing-of-that-name'])
    expect([status, out]).toEqual([4, ''])
    expect(err).toMatch(
      /^leasehold: nothing that "nothing-of-that-name" names is visible to this token: a resource that no record names .* \(not_found\)\n$/,
    )
  })

  it('what needs a person is shown under a sweep, whatever its outcome', async () => {
    expect((await box.run(['sweep'])).out).not.toContain('NEEDS A PERSON')
    const { lease } = await bench.lease({ ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    const made = bench.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    const copy = { ...made, fixedAttemptToken: null, resource: { ...made.resource, nativeId: 'copy', immutableId: 'copy#1' } }
    bench.provider.boxes.set('copy', copy)
    await advance(store, 60_000)
    const { status, out } = await box.run(['sweep', '--backend', 'local'])
    expect(status).toBe(0)
    expect(out).toMatch(/^contradiction +process\/here\/copy .* fd_\w+ +Only its tags name us/m)
    expect(out).toContain('1 finding stands until a person decides')
    await advance(store, 1000)
    // Only of what was swept, and --json is the API's answer alone.
    expect((await box.run(['sweep', '--project', 'other'])).out).not.toContain('NEEDS A PERSON')
    expect(await json<SweepView[]>('sweep', '--backend', 'local')).toHaveLength(1)
    bench.provider.boxes.delete('copy')
  })

  it('a listing that fails is exit 7, with the error', async () => {
    bench.provider.onList = () => {
      throw new Error('the cloud is down')
    }
    await advance(store, 60_000)
    for (const argv of [['sweep'], ['sweep', '--dry-run']]) {
      const { status, out } = await box.run(argv)
      expect(status).toBe(7)
      expect(out).toContain('the cloud is down')
      await advance(store, 1_000)
    }
    bench.provider.onList = undefined
  })
})
