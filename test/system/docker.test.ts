/** Boxes on a real Engine as a user meets them: `backend add`, `run`, a fleet, and a sweep that deletes beside strangers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { DoctorCheck, FindingView, FleetView, LeaseView } from '../../src/model/wire.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { byHand, pathsOf, sweepUp, type Hand, type Parts } from '../providers/docker/support.ts'
import { freePort, killCoordinators, leasehold, startCoordinator } from '../support/coordinator.ts'
import type { DockerEngine } from '../support/services/docker.ts'
import { dockerEngine, withDocker } from '../support/services/docker-suite.ts'
import { until } from '../support/until.ts'

// An Engine takes its time where others work beside it.
vi.setConfig({ hookTimeout: 180_000 })

const none = { containers: [], networks: [], volumes: [] }
const hourMs = 3_600_000

withDocker('boxes on an Engine, with a coordinator and its commands', () => {
  let engine: DockerEngine
  let hand: Hand
  let data: string
  let known: string | null = null
  let options: { data: string; port: number; env: Record<string, string> }
  beforeEach(async () => {
    engine = await dockerEngine()
    hand = byHand(engine)
    data = mkdtempSync(join(tmpdir(), 'leasehold-docker-system-'))
    options = { data, port: await freePort(), env: {} }
  })
  afterEach(async () => {
    await killCoordinators()
    await sweepUp(hand, [...hand.made, ...(known === null ? [] : pathsOf(await hand.parts(`leasehold.installation=${known}`)))])
    known = null
    hand.close()
    rmSync(data, { recursive: true, force: true })
  })
  const cli = (...args: string[]) => leasehold(args, { env: { LEASEHOLD_DATA: data, LEASEHOLD_PORT: String(options.port) }, cwd: data })
  const json = async <T>(...args: string[]): Promise<T> => {
    const ran = await cli(...args, '--json')
    expect(ran, args.join(' ')).toMatchObject({ status: 0 })
    return JSON.parse(ran.stdout) as T
  }
  const addBackend = async (): Promise<void> => {
    const ran = await cli(
      'backend',
      'add',
      'engine',
      '--provider',
      'docker',
      '--host',
      engine.host,
      '--image',
      engine.image,
      '--set',
      'graceSeconds=1',
    )
    expect(ran, ran.stderr).toMatchObject({ status: 0 })
    await installation()
  }
  const installation = async (): Promise<string> => (known = (await json<{ installationID: string }>('installation')).installationID)
  const ours = async (): Promise<Parts> => hand.parts(`leasehold.installation=${await installation()}`)

  it('run passes output and status through, and nothing of the box is left (leases R29, R39)', { timeout: 240_000 }, async () => {
    await startCoordinator(options)
    await addBackend()
    const ran = await cli(
      'run',
      '--provider',
      'docker',
      '--',
      'sh',
      '-c',
      'setsid sleep 3000 & echo "$LEASEHOLD_LEASE_ID"; pwd; echo err >&2; exit 7',
    )
    expect(ran, ran.stderr).toMatchObject({
      status: 7,
      stdout: expect.stringMatching(/^lh_[0-9a-f]{12}\n\/work\n$/),
      stderr: expect.stringContaining('err\n'),
    })
    expect(await cli('run', '--provider', 'docker', '--', 'no-such-command')).toMatchObject({ status: 127 })
    await until(async () => JSON.stringify(await ours()) === JSON.stringify(none), 'nothing is left', 20_000)
    const leases = await json<LeaseView[]>('lease', 'list')
    expect(leases.map((lease) => [lease.state, lease.cleanup.state])).toEqual([
      ['released', 'gone'],
      ['released', 'gone'],
    ])
  })

  it('a command outlives the coordinator, and the box ends by its own clock when none is left', { timeout: 240_000 }, async () => {
    const first = await startCoordinator(options)
    await addBackend()
    const run = cli('run', '--provider', 'docker', '--', 'sh', '-c', 'while [ ! -e go ]; do sleep 0.1; done; echo onwards; exit 3')
    const lease = await until(
      async () => (await json<LeaseView[]>('lease', 'list')).find((one) => one.state === 'active'),
      'the lease is active',
      30_000,
    )
    const [container = ''] = (await hand.parts(`leasehold.ref=${lease.ref}`)).containers
    await until(
      async () => JSON.stringify(await hand.call('GET', `/containers/${container}/top`)).includes('while'),
      'the command runs',
      30_000,
    )
    await first.kill()
    const second = await startCoordinator(options)
    await hand.sh(container, 'touch /work/go')
    expect(await run).toMatchObject({ status: 3, stdout: 'onwards\n' })
    const short = await json<LeaseView>('lease', 'create', '--provider', 'docker', '--ttl', '4s')
    const [box = ''] = (await hand.parts(`leasehold.ref=${short.ref}`)).containers
    await second.kill()
    await until(async () => !(await hand.exists(box)), 'the box ends itself', 30_000)
    await startCoordinator(options)
    await until(async () => (await json<LeaseView>('lease', 'get', short.id)).cleanup.state === 'gone', 'the lease is settled', 60_000)
    expect(await ours()).toEqual(none)
  })

  it('says what to do where the image is missing, in the lease and in doctor', { timeout: 240_000 }, async () => {
    await startCoordinator(options)
    expect(await cli('backend', 'add', 'bad', '--provider', 'docker', '--host', engine.host, '--image', 'no/such:1')).toMatchObject({
      status: 0,
    })
    const ran = await cli('run', '--backend', 'bad', '--', 'true')
    expect(ran.status).toBe(125)
    expect(ran.stderr).toContain('docker pull no/such:1')
    const doctor = await cli('doctor', '--json')
    const checks = JSON.parse(doctor.stdout) as DoctorCheck[]
    expect(checks.find((check) => check.name.includes('docker: image'))).toMatchObject({
      level: 'error',
      remedy: expect.stringContaining('docker pull no/such:1'),
    })
    expect(await cli('backend', 'add', 'open', '--provider', 'docker', '--host', 'tcp://127.0.0.1:2375')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('without TLS'),
    })
    expect(await cli('backend', 'add', 'odd', '--provider', 'process', '--image', 'x')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--image'),
    })
  })

  it('a fleet gives one box to one command after the other, with nothing of the last one left in it', { timeout: 300_000 }, async () => {
    await startCoordinator(options)
    await addBackend()
    expect(await cli('fleet', 'create', 'ci', '--size', '1', '--backend', 'engine')).toMatchObject({ status: 0 })
    const ready = () =>
      until(async () => (await json<FleetView[]>('fleet', 'list')).some((fleet) => fleet.ready === 1), 'a box is ready', 60_000)
    await ready()
    expect(await cli('fleet', 'scale', 'ci', '--pause')).toMatchObject({ status: 0 })
    const { containers } = await ours()
    const script = 'ls -A /work; echo "$LEASEHOLD_LEASE_ID"; echo secret > left; echo x > /dev/shm/left; setsid sleep 3000 & exit 3'
    const told: string[] = []
    for (let i = 0; i < 2; i++) {
      await ready()
      const ran = await cli('run', '--fleet', 'ci', '--', 'sh', '-c', script)
      expect(ran, ran.stderr).toMatchObject({ status: 3, stdout: expect.stringMatching(/^lh_[0-9a-f]{12}\n$/) })
      told.push(ran.stdout)
      expect((await ours()).containers).toEqual(containers)
    }
    expect(told[0]).not.toBe(told[1])
  })

  it(
    'a sweep that deletes takes what nobody holds, and no container of others, with a copied label, or renamed (cases orphan 3, B1)',
    { timeout: 300_000 },
    async () => {
      options.env = { LEASEHOLD_ORPHAN_CLEANUP_MODE: 'delete', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '1' }
      const first = await startCoordinator(options)
      await addBackend()
      const lease = () => json<LeaseView>('warmup', '--backend', 'engine', '--ttl', '24h', '--idle-timeout', '24h')
      const [held, unheld] = [await lease(), await lease()]
      const [box = ''] = (await hand.parts(`leasehold.ref=${held.ref}`)).containers
      const own = await installation()
      const { Config } = await hand.call<{ Config: { Labels: Record<string, string> } }>('GET', `/containers/${box}/json`)
      const copy = await hand.stranger({ Labels: Config.Labels })
      const strangers = [
        copy,
        await hand.stranger(),
        await hand.stranger({}, `leasehold-${unheld.ref}-2`),
        await hand.stranger({ Labels: { 'leasehold.ref': 'r00000000abc', 'leasehold.installation': own } }),
        await hand.stranger({ Labels: { 'leasehold.ref': held.ref, 'leasehold.installation': 'zzzzzzzz' } }),
      ]
      await first.stop()
      const inDatabase = async (work: (store: Store) => Promise<unknown>): Promise<void> => {
        const store = await openStore(join(data, 'leasehold.db'))
        await work(store)
        await store.close()
      }
      // The owner's rows are deleted by hand; its ref stays in the ledger.
      await inDatabase((store) =>
        store.write(async (tx) => {
          await tx.db
            .deleteFrom('leases')
            .where('id', '=', unheld.id as never)
            .execute()
          await tx.db
            .deleteFrom('instances')
            .where('ref', '=', unheld.ref as never)
            .execute()
          await tx.db
            .updateTable('ledger')
            .set({ owner_closed_at: tx.now })
            .where('ref', '=', unheld.ref as never)
            .execute()
          await tx.db.updateTable('clock').set({ offset_ms: hourMs }).where('id', '=', 1).execute()
        }),
      )
      await startCoordinator(options)
      await until(
        async () => {
          await json('sweep')
          return (await hand.parts(`leasehold.ref=${unheld.ref}`)).volumes.length === 0
        },
        'what nobody holds is taken back',
        90_000,
      )
      await json('sweep')
      for (const id of [box, ...strangers]) expect(await hand.exists(id), id).toBe(true)
      expect(await json('receipt', unheld.ref)).toMatchObject({ whole: true, removals: [{ cause: 'orphan.owner-gone', state: 'gone' }] })
      const findings = await json<FindingView[]>('orphans')
      expect(findings.filter((one) => one.code === 'contradiction').map((one) => one.target.id)).toContain(
        `docker/engine/container:${copy.slice(0, 12)}`,
      )
    },
  )
})
