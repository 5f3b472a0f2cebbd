import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Claim } from '../../src/model/claim.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { openClaims } from '../../src/store/claims.ts'
import { cleanup, leaseView, startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

let coordinator: FakeCoordinator
let box: Sandbox
beforeEach(async () => {
  coordinator = await startCoordinator()
  box = sandbox(coordinator.url)
})
afterEach(async () => {
  box.remove()
  await coordinator.close()
})

const claims = (): Claim[] => openClaims(box.data).list().claims
const only = <T>(list: T[]): T => {
  expect(list).toHaveLength(1)
  return list[0] as T
}

describe('lease create and warmup', () => {
  it.each([[['lease', 'create']], [['warmup']]])('%j prints the lease with its token, and writes a ready claim', async (words) => {
    const { status, out, err } = await box.run([
      ...words,
      '--slug',
      'nightly',
      '--ttl',
      '1h30m',
      '--idle',
      '90s',
      '--label',
      'a=b',
      '--json',
    ])
    expect([status, err]).toEqual([0, ''])
    const lease = JSON.parse(out) as LeaseView & { leaseToken: string }
    expect(lease).toMatchObject({ slug: 'nightly', ttlSeconds: 5400, idleTimeoutSeconds: 90, state: 'active', leaseToken: 'lt_secret' })
    expect(only(claims())).toMatchObject({
      leaseID: lease.id,
      slug: 'nightly',
      repoRoot: join(box.root, 'repository'),
      cloudImmutableID: 'boot:1:2:3',
      labels: { a: 'b', state: 'ready' },
      claimedAt: '2030-01-01T00:05:00Z',
      coordinator: coordinator.url,
    })
    expect(readFileSync(join(box.data, 'claims', `${lease.id}.json`), 'utf8')).not.toMatch(/lt_secret|canary/)
  })

  it('has its claim on disk, as recovery authority only, before the create is sent (leases R112)', async () => {
    let during: Claim[] = []
    coordinator.override = ({ method, path }) => {
      if (method === 'POST' && path === '/v1/leases') during = claims()
      return null
    }
    await box.run(['warmup'])
    const { leaseID, createAttemptID } = only(coordinator.calls('POST', /^\/v1\/leases$/)).body as {
      leaseID: string
      createAttemptID: string
    }
    expect(createAttemptID).toMatch(/^cat_[0-9a-f]{32}$/)
    expect(only(during)).toMatchObject({ leaseID, createAttemptID, labels: { state: 'provisioning' } })
    expect(only(claims()).labels['state']).toBe('ready')
  })

  it('asks again with the same key when the answer is lost, and gets the same lease (leases R10)', async () => {
    let dropped = 0
    coordinator.override = (seen, fake) => {
      if (seen.method !== 'POST' || seen.path !== '/v1/leases' || dropped > 0) return null
      dropped += 1
      const { leaseID, createAttemptID } = seen.body as { leaseID: string; createAttemptID: string }
      fake.leases.set(leaseID, leaseView({ id: leaseID, createAttemptID }))
      return 'drop'
    }
    const { status, out, err } = await box.run(['warmup', '--json'])
    expect(status).toBe(0)
    expect(err).toContain('asking again for the same lease')
    const bodies = coordinator.calls('POST', /^\/v1\/leases$/).map(({ body }) => body)
    expect(bodies).toHaveLength(2)
    expect(bodies[1]).toEqual(bodies[0])
    expect(coordinator.leases.size).toBe(1)
    expect(JSON.parse(out)).toMatchObject({ leaseToken: 'lt_again' })
  })

  it('waits while it is provisioning', async () => {
    coordinator.created = 'provisioning'
    const { status, out } = await box.run(['warmup', '--json'])
    expect([status, (JSON.parse(out) as LeaseView).state]).toEqual([0, 'active'])
  })

  it('says the caps that were applied, on stderr', async () => {
    coordinator.override = ({ method, path }) =>
      method === 'POST' && path === '/v1/leases'
        ? { status: 201, body: { lease: leaseView(), leaseToken: 't', warnings: ['ttl is capped at 86400 s'] } }
        : null
    const { status, err } = await box.run(['warmup', '--ttl', '100h'])
    expect(status).toBe(0)
    expect(err).toContain('warning: ttl is capped at 86400 s\n')
    // The coordinator chose an id of its own here: the claim went with it.
    expect(only(claims()).leaseID).toBe('lh_0123456789ab')
  })

  it('leaves no claim of what was refused, and exits 2 for bad input', async () => {
    coordinator.override = () => ({ status: 400, body: { error: 'bad_slug', message: 'no' } })
    expect((await box.run(['warmup'])).status).toBe(2)
    expect(claims()).toEqual([])
  })

  it('leaves no claim when nobody was there to ask', async () => {
    await coordinator.close()
    expect((await box.run(['warmup'])).status).toBe(1)
    expect(claims()).toEqual([])
  })

  it('keeps the claim when a refusal follows a lost answer: the first may have made something', async () => {
    let calls = 0
    coordinator.override = ({ path }) =>
      path !== '/v1/leases' ? null : ++calls === 1 ? 'drop' : { status: 401, body: { error: 'unauthorized', message: 'no' } }
    expect((await box.run(['warmup'])).status).toBe(1)
    expect(only(claims()).labels['state']).toBe('provisioning')
  })

  it('reports a create that failed, with what is left of it', async () => {
    coordinator.override = ({ method, path }) =>
      method === 'POST' && path === '/v1/leases'
        ? {
            status: 202,
            body: {
              lease: leaseView({
                state: 'failed',
                endedAt: '2030-01-01T00:00:01.000Z',
                failureError: 'no room',
                cleanup: cleanup('removing'),
              }),
            },
          }
        : null
    const { status, err } = await box.run(['warmup'])
    expect(status).toBe(1)
    expect(err).toContain('failed: no room; what may be left of it is being removed')
  })

  it("--id is the repeatable create by an id of one's own (leases R11)", async () => {
    const argv = ['lease', 'create', '--id', 'lh_00000000000a', '--json']
    expect((await box.run(argv)).status).toBe(0)
    expect((await box.run(argv)).status).toBe(0)
    expect(coordinator.calls('PUT', /^\/v1\/leases\/lh_00000000000a$/)).toHaveLength(2)
    expect(coordinator.calls('PUT', /./)[0]?.body).not.toHaveProperty('createAttemptID')
    expect(only(claims()).leaseID).toBe('lh_00000000000a')
  })
})

describe('lease release and stop', () => {
  const warm = async (...more: string[]): Promise<LeaseView> => JSON.parse((await box.run(['warmup', '--json', ...more])).out) as LeaseView

  it.each([
    [['lease', 'release'], {}],
    [['lease', 'release', '--delete'], { delete: true }],
    [['lease', 'release', '--no-delete'], { delete: false }],
    [['stop'], { delete: true }],
    [['release'], { delete: true }],
  ])('%j sends %j (leases R30)', async (words, body) => {
    const { id } = await warm()
    await box.run([...words, id])
    expect(coordinator.calls('POST', /\/release$/).map((seen) => seen.body)).toEqual([body])
  })

  it('stop drops the claim only after the removal is proved (leases R39)', async () => {
    const { id } = await warm()
    coordinator.removal = ['removing', 'removing', 'verifying', 'gone']
    let during: Claim[] | null = null
    coordinator.override = ({ method, path }) => {
      if (method === 'GET' && path.endsWith(id) && coordinator.leases.get(id)?.endedAt !== null) during = claims()
      return null
    }
    const { status, out } = await box.run(['stop', 'brave-otter'])
    expect([status, out]).toEqual([0, `${id} (brave-otter) is released, and its box is proved gone\n`])
    expect(during).toHaveLength(1)
    expect(claims()).toEqual([])
    expect(readdirSync(join(box.data, 'claim-locks'))).toEqual([])
  })

  it('stop is exit 5 and keeps the claim when the proof does not come in time', async () => {
    const { id } = await warm()
    coordinator.removal = ['removing']
    const { status, err } = await box.run(['stop', id, '--wait-timeout', '200ms', '--json'])
    expect([status, err]).toEqual([5, expect.stringContaining('not proved within 0.2 s')])
    expect(claims()).toHaveLength(1)
  })

  it('stop is exit 7 when the removal failed, and 0 with --no-wait', async () => {
    const { id } = await warm()
    coordinator.removal = ['failed']
    expect((await box.run(['stop', id, '--no-wait'])).status).toBe(0)
    coordinator.removal = ['failed', 'failed', 'failed', 'failed', 'failed']
    expect((await box.run(['stop', id, '--wait-timeout', '100ms'])).status).toBe(7)
    expect(claims()).toHaveLength(1)
  })

  it('never takes "released, nothing ordered" for gone: only a terminated instance proves it', async () => {
    const { id } = await warm()
    coordinator.removal = ['none', 'none', 'none', 'none', 'none']
    let state = 'terminating'
    coordinator.override = ({ path }) => (path.startsWith('/v1/instances/') ? { status: 200, body: { instance: { state } } } : null)
    expect((await box.run(['stop', id, '--wait-timeout', '100ms'])).status).toBe(5)
    expect(claims()).toHaveLength(1)
    state = 'terminated'
    expect((await box.run(['stop', id])).status).toBe(0)
    expect(claims()).toEqual([])
  })

  const id = 'lh_0123456789ab'
  it('stop says at once who closed the removal and what is left, and is exit 1 (orphans R91)', async () => {
    const closed = cleanup('closed', { removalID: 'rm_1', closedBy: 'pat', mayBeLeft: ['nic nic-2 in sim-a', 'ip ip-3 in sim-a'] })
    coordinator.leases.set(id, leaseView({ state: 'failed', endedAt: '2030-01-01T00:00:00.000Z' }))
    coordinator.override = ({ method }) =>
      method === 'POST' ? { status: 200, body: { lease: { ...coordinator.leases.get(id), cleanup: closed } } } : null
    const { status, err } = await box.run(['stop', id])
    expect(status).toBe(1)
    expect(err).toContain(
      'was closed by pat, and nothing tries it any more; end by hand what is still there of nic nic-2 in sim-a, ip ip-3',
    )
    expect(err).not.toContain('tried again')
    // At once: nobody was asked how it is by now.
    expect(coordinator.calls('GET', /leases/)).toHaveLength(1)
  })

  it('stop says at once that a try came to where a person is needed, and waits for one that may still succeed (leases R80)', async () => {
    const failed = (attempts: number) => cleanup('failed', { removalID: 'rm_1', error: 'its group is incomplete', attempts })
    coordinator.leases.set(id, leaseView({ state: 'released', endedAt: '2030-01-01T00:00:00.000Z', cleanup: failed(1) }))
    let looks = 0
    coordinator.override = ({ method }) => {
      // The failure that it waited with is not the answer; the next one is.
      const lease = { ...coordinator.leases.get(id), cleanup: method === 'POST' || ++looks < 3 ? failed(1) : failed(2) }
      return { status: 200, body: { lease } }
    }
    const { status, err } = await box.run(['stop', id])
    expect(status).toBe(7)
    expect(err).toContain('It waits for a person, and is not tried again by itself: "leasehold removal show rm_1"')
    expect(looks).toBe(3)
  })

  it('what a fork left is never said to be gone or still there: list and status name the installation that has it (decisions 6)', async () => {
    const left = leaseView({
      id,
      state: 'failed',
      endedAt: '2030-01-01T00:00:00.000Z',
      cleanup: cleanup('closed', { closedBy: 'admin', leftTo: 'other123' }),
    })
    coordinator.override = ({ path }) => ({ status: 200, body: path === '/v1/leases' ? { leases: [left] } : { lease: left } })
    const short = await box.run(['list'])
    expect(short.err).toContain('1 left to another installation by a fork, not shown (--all)')
    expect(short.err).not.toContain('gone')
    for (const args of [
      ['list', '--all'],
      ['status', id],
    ]) {
      const { out } = await box.run(args)
      expect(out).toContain('left to installation other123')
      expect(out).not.toContain('may still be there')
    }
    const { status, err } = await box.run(['stop', id])
    expect(status).toBe(1)
    expect(err).toContain('is left to installation other123 since this database was forked')
  })

  it('stop of an unknown lease is exit 4, of a claim whose create never arrived it cancels that', async () => {
    expect((await box.run(['stop', 'nobody'])).status).toBe(4)
    const store = openClaims(box.data)
    const lease = await warm()
    const { revision: _, ...claim } = only(claims())
    await store.write(null, {
      ...claim,
      leaseID: 'lh_00000000000b',
      slug: '',
      labels: { state: 'provisioning' },
      createAttemptID: `cat_${'0'.repeat(32)}`,
    })
    const { status } = await box.run(['stop', 'lh_00000000000b'])
    expect(status).toBe(0)
    expect(only(coordinator.calls('POST', /cancel-create$/)).body).toEqual({ createAttemptID: `cat_${'0'.repeat(32)}` })
    expect(only(claims()).leaseID).toBe(lease.id)
  })

  it.each([['list'], ['status'], ['lease get']])('%s drops the claim of a lease that is seen to be gone, and no other', async (words) => {
    const gone = await warm('--slug', 'gone')
    const live = await warm('--slug', 'live')
    Object.assign(coordinator.leases.get(gone.id) as LeaseView, {
      state: 'expired',
      endedAt: '2030-01-01T00:00:02.000Z',
      cleanup: cleanup('gone'),
    })
    await box.run([...words.split(' '), ...(words === 'list' ? [] : [gone.id])])
    expect(claims().map(({ leaseID }) => leaseID)).toEqual([live.id])
  })

  it('does not drop a claim on the lease of another coordinator', async () => {
    const lease = await warm()
    const store = openClaims(box.data)
    const claim = only(claims())
    await store.write(claim, { ...claim, coordinator: 'http://elsewhere' })
    Object.assign(coordinator.leases.get(lease.id) as LeaseView, {
      state: 'expired',
      endedAt: '2030-01-01T00:00:02.000Z',
      cleanup: cleanup('gone'),
    })
    await box.run(['list'])
    expect(claims()).toHaveLength(1)
  })
})

describe('reading leases', () => {
  it('the table leaves out what ended and is gone, and says so; --all and --json have it', async () => {
    coordinator.leases.set('a', leaseView())
    coordinator.leases.set(
      'b',
      leaseView({ id: 'lh_00000000000b', state: 'released', endedAt: '2030-01-01T00:00:00.000Z', cleanup: cleanup('gone') }),
    )
    coordinator.leases.set(
      'c',
      leaseView({ id: 'lh_00000000000c', state: 'released', endedAt: '2030-01-01T00:00:00.000Z', cleanup: cleanup('failed') }),
    )
    const { out, err } = await box.run(['list'])
    expect(out).toContain('lh_0123456789ab')
    expect(out).toContain('lh_00000000000c')
    expect(out).not.toContain('lh_00000000000b')
    expect(err).toContain('1 ended and gone, not shown')
    expect((await box.run(['list', '--all'])).out).toContain('lh_00000000000b')
    expect(JSON.parse((await box.run(['list', '--json'])).out)).toHaveLength(3)
  })

  it('passes its filters on', async () => {
    await box.run(['lease', 'list', '--state', 'expired', '--provider', 'process', '--owner', 'me', '--project', 'web', '--limit', '7'])
    expect(coordinator.seen[0]?.query).toEqual({ state: 'expired', provider: 'process', owner: 'me', project: 'web', limit: '7' })
  })

  it("a lease is the API's own object", async () => {
    const lease = leaseView()
    coordinator.leases.set(lease.id, lease)
    for (const words of [['lease', 'get'], ['status'], ['status', '--id']])
      expect(JSON.parse((await box.run([...words, lease.id, '--json'])).out)).toEqual(lease)
  })

  it('status --wait waits until it is ready, and is exit 5 when that takes too long', async () => {
    const lease = leaseView({ state: 'provisioning' })
    coordinator.override = ({ path }) => (path === `/v1/leases/${lease.id}` ? { status: 200, body: { lease } } : null)
    const { status, err } = await box.run(['status', lease.id, '--wait', '--wait-timeout', '150ms'])
    expect([status, err]).toEqual([5, expect.stringContaining('still provisioning')])
    let reads = 0
    coordinator.override = ({ path }) =>
      path === `/v1/leases/${lease.id}`
        ? { status: 200, body: { lease: { ...lease, state: ++reads > 2 ? 'active' : 'provisioning' } } }
        : null
    expect((await box.run(['status', lease.id, '--wait'])).status).toBe(0)
  })

  it('heartbeat passes on the idle time and the provider, and is exit 1 when the lease has ended', async () => {
    const lease = leaseView()
    coordinator.leases.set(lease.id, lease)
    expect((await box.run(['touch', lease.id, '--idle', '5m', '--provider', 'process', '--json'])).status).toBe(0)
    expect(coordinator.seen[0]?.body).toEqual({ idleTimeoutSeconds: 300, expectedProvider: 'process' })
    lease.endedAt = '2030-01-01T00:00:00.000Z'
    expect(await box.run(['heartbeat', lease.id])).toMatchObject({ status: 1, err: expect.stringContaining('lease_ended') })
  })
})

describe('claims list', () => {
  it('is the object of the specification, creates nothing, and is exit 2 with a problem (leases R115)', async () => {
    const { status, out } = await box.run(['claims', 'list', '--json'])
    expect(status).toBe(0)
    expect(JSON.parse(out)).toEqual({ version: 1, source: 'local-claims', claims: [], problems: [] })
    expect(existsSync(box.data)).toBe(false)
    await box.run(['warmup'])
    mkdirSync(join(box.data, 'claims'), { recursive: true })
    writeFileSync(join(box.data, 'claims/lh_000000000001.json'), '{')
    const bad = await box.run(['claims', 'list', '--json'])
    expect(bad.status).toBe(2)
    const list = JSON.parse(bad.out) as { claims: unknown[]; problems: unknown[] }
    expect([list.claims.length, list.problems]).toEqual([
      1,
      [{ file: join(box.data, 'claims/lh_000000000001.json'), problem: 'is not JSON' }],
    ])
    expect(await box.run(['claims', 'list'])).toMatchObject({
      status: 2,
      out: expect.stringContaining('brave-otter'),
      err: expect.stringContaining('is not JSON'),
    })
  })
})
