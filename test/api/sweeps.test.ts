/** Sweeps, findings of sweeps and explanations over HTTP: every answer is held to the published document by `call`. */
import { afterEach, expect, test } from 'vitest'
import { releaseLease } from '../../src/engine/leases/index.ts'
import type { ExplanationView, FindingView, PlanView, SweepView } from '../../src/model/wire.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { until } from '../support/until.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { makeBench, root, type Bench } from './support.ts'

eachStore('sweeps over HTTP', (open) => {
  let bench: Bench
  afterEach(() => bench.close())
  const start = async () => {
    const store = await open()
    await setClock(store, Date.UTC(2026, 5, 1, 12))
    bench = await makeBench(store)
  }
  const sweep = async (body: object = {}) => {
    await advance(bench.store, 60_000)
    return bench.call<{ sweeps: SweepView[] }>('POST', '/v1/sweeps', body)
  }

  /** An orphan: its lease has ended, its box was gone and is back. */
  const orphan = async (): Promise<{ id: string; key: string }> => {
    const { lease } = await bench.lease({ ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    const box = bench.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    await releaseLease(bench.engine.context, root, lease.id, {})
    await until(async () => (await bench.call('GET', `/v1/leases/${lease.id}`)).body['lease'].cleanup.state === 'gone', 'it is gone')
    bench.provider.boxes.set(box.resource.nativeId, box)
    return { id: lease.id, key: `process/${lease.location}/${lease.cloudID}` }
  }

  test('a sweep is asked for, answered with its certificate, listed, and read', async () => {
    await start()
    const { key } = await orphan()
    const { status, body } = await sweep()
    expect(status).toBe(200)
    expect(body.sweeps).toMatchObject([
      { state: 'ended', outcome: 'unsettled', verdicts: { 'orphan.owner-ended': 1 }, orphans: [{ target: key }] },
    ])
    const [made] = body.sweeps
    const listed = (await bench.call<{ sweeps: SweepView[] }>('GET', '/v1/sweeps?backend=local&project=default&limit=5')).body.sweeps
    expect(listed).toEqual([{ ...made, orphans: null }])
    expect((await bench.call('GET', `/v1/sweeps/${made?.id}`)).body).toEqual({ sweep: listed[0] })
    expect((await bench.call('GET', '/v1/sweeps/sw_none')).body['error']).toBe('not_found')
  })

  test('what could be taken back is planned with its proof, read by the beginning of its hash, and in mode report not approved', async () => {
    await start()
    const { key } = await orphan()
    for (let i = 0; i < 2; i++) {
      await advance(bench.store, 900_000)
      await sweep()
    }
    const { status, body } = await bench.call<{ plans: PlanView[] }>('POST', '/v1/plans', {})
    expect(status).toBe(200)
    expect(body.plans).toMatchObject([{ state: 'waiting', why: null, removals: [{ target: key, rule: 'orphan.owner-ended' }] }])
    const [plan] = body.plans
    expect((await bench.call('GET', `/v1/plans/${plan?.id.slice(3, 15)}`)).body).toEqual({ plan })
    expect((await bench.call('GET', '/v1/plans?state=waiting')).body).toEqual({ plans: [plan] })
    expect((await bench.call('GET', '/v1/plans?state=later')).status).toBe(400)
    const refused = await bench.call('POST', `/v1/plans/${plan?.id}/approve`, { reason: 'r' })
    expect({ status: refused.status, error: refused.body['error'] }).toEqual({ status: 409, error: 'plan_not_waiting' })
  })

  test('a dry run is answered and not kept', async () => {
    await start()
    await orphan()
    const { status, body } = await sweep({ dryRun: true, backend: 'local' })
    expect([status, body.sweeps[0]?.state, body.sweeps[0]?.id]).toEqual([200, 'dry-run', null])
    expect((await bench.call('GET', '/v1/sweeps')).body['sweeps']).toEqual([])
  })

  test('implausible counts are let pass by an operator, of one backend, with a reason (decisions, guard on counts)', async () => {
    await start()
    for (let i = 0; i < 5; i++) await bench.lease({ ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 })
    bench.provider.onList = () => [
      { type: 'page', location: 'here', kind: 'box', resources: [] },
      { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'complete' }, pages: 1 } },
    ]
    const pass = { backend: 'local', letPass: 'the account was emptied on purpose' }
    expect((await sweep(pass)).body).toMatchObject({ error: 'not_found', message: expect.stringContaining('no implausible counts') })
    expect((await sweep()).body.sweeps[0]?.guard).toMatch(/^tripped: of 5 refs/)
    expect((await sweep({ letPass: 'everything' })).body).toMatchObject({ error: 'bad_request' })
    expect((await sweep({ ...pass, dryRun: true })).body).toMatchObject({ error: 'bad_request' })
    expect((await sweep({ ...pass, letPass: '  ' })).body).toMatchObject({ error: 'bad_request' })
    const user = await bench.token('user', 'default')
    expect((await bench.call('POST', '/v1/sweeps', pass, { token: user })).body['error']).toBe('forbidden')
    expect((await sweep(pass)).body.sweeps[0]?.guard).toMatch(/^let pass by \S+: of 5 refs/)
    expect((await sweep()).body.sweeps[0]?.guard).toMatch(/^tripped/)
  })

  test('an account behind a backend that changed is told, not judged', async () => {
    await start()
    bench.provider.scope = async () => ({ kind: 'known', scope: 'scripted:three' as never, description: 'another account' })
    const { body } = await bench.call<{ sweeps: SweepView[] }>('POST', '/v1/sweeps', { project: 'other' })
    expect(body.sweeps).toMatchObject([{ outcome: 'unsettled', error: expect.stringContaining('scripted:three'), cells: [] }])
    const { findings } = (await bench.call<{ findings: FindingView[] }>('GET', '/v1/findings?code=scope-stranded&backend=local')).body
    expect(findings).toMatchObject([{ code: 'scope-stranded', project: 'other' }])
  })

  test('findings are filtered by several codes, and an unknown code is bad input', async () => {
    await start()
    await orphan()
    await sweep()
    const codes = async (query: string) =>
      (await bench.call<{ findings: FindingView[] }>('GET', `/v1/findings?${query}`)).body.findings.map((one) => one.code)
    expect(await codes('code=orphan,missing')).toEqual(['orphan'])
    expect(await codes('code=missing&code=stuck')).toEqual([])
    expect(await codes('backend=local')).toEqual(['orphan'])
    for (const path of ['findings', 'sweeps', 'plans'])
      expect(await bench.call('GET', `/v1/${path}?backend=nowhere`), path).toMatchObject({
        status: 400,
        body: { error: 'bad_request', message: 'backend: no backend "nowhere" is known here; there is local' },
      })
    expect(await bench.call('GET', '/v1/findings?code=moon')).toMatchObject({ status: 400, body: { error: 'bad_request' } })
  })

  test('a key with slashes is explained when it is URL-encoded', async () => {
    await start()
    const { id, key } = await orphan()
    await sweep()
    for (const name of [key, id]) {
      const { status, body } = await bench.call<{ explanation: ExplanationView }>('GET', `/v1/explain/${encodeURIComponent(name)}`)
      expect([status, body.explanation.verdict, body.explanation.key]).toEqual([200, 'orphan', name])
    }
    expect(await bench.call('GET', '/v1/explain/nothing')).toMatchObject({ status: 404, body: { error: 'not_found' } })
    const other = await bench.token('admin', 'other')
    expect(await bench.call('GET', `/v1/explain/${id}`, undefined, { token: other })).toMatchObject({ status: 404 })
  })

  test('bad input is named', async () => {
    await start()
    expect(await bench.call('POST', '/v1/sweeps', { backend: 'nope' })).toMatchObject({ status: 400, body: { error: 'bad_request' } })
    expect(await bench.call('POST', '/v1/sweeps', { dryrun: true })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('did you mean "dryRun"?') },
    })
    expect(await bench.call('GET', '/v1/sweeps?limit=0')).toMatchObject({ status: 400 })
  })
})
