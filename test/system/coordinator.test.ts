/** The coordinator and its commands as a user runs them: real processes, real boxes, on both databases. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, inject, it } from 'vitest'
import type { LeaseView } from '../../src/model/wire.ts'
import { openStore } from '../../src/store/open.ts'
import { listPids } from '../../src/lib/host.ts'
import { boxFolders, processesWith } from '../support/boxes.ts'
import {
  executable,
  freePort,
  killCoordinators,
  leasehold,
  request,
  startCoordinator,
  type Coordinator,
  type CoordinatorOptions,
} from '../support/coordinator.ts'
import { serviceOr } from '../support/services/skip.ts'
import { postgresDatabase, sqliteDatabase, type TestDatabase } from '../support/databases.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000

const commandLine = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}
const running = (text: string): number[] => (listPids() ?? []).filter((pid) => commandLine(pid) === text)

const suite = (make: () => Promise<TestDatabase>, postgres: boolean) => () => {
  const undo: (() => void | Promise<void>)[] = []
  afterEach(async () => {
    await killCoordinators()
    for (const step of undo.splice(0).toReversed()) await step()
  })
  const world = async () => {
    const data = mkdtempSync(join(tmpdir(), 'leasehold-system-'))
    undo.push(() => rmSync(data, { recursive: true, force: true }))
    const database = await make()
    undo.push(() => database.drop())
    // The SQLite file of a coordinator lies in its own data folder.
    const target = postgres ? database.target : join(data, 'leasehold.db')
    const options: CoordinatorOptions = { data, port: await freePort(), ...(postgres ? { databaseUrl: target } : {}) }
    const env = { LEASEHOLD_DATA: data, LEASEHOLD_PORT: String(options.port) }
    return { data, options, target, cli: (...args: string[]) => leasehold(args, { env, cwd: data }) }
  }
  const leaseOf = async (coordinator: Coordinator, id: string): Promise<LeaseView> =>
    (await request<{ lease: LeaseView }>(coordinator, coordinator.token(), 'GET', `/v1/leases/${id}`)).body.lease
  const moveClock = async (target: string, ms: number): Promise<void> => {
    const store = await openStore(target)
    await store.write((tx) => tx.db.updateTable('clock').set({ offset_ms: ms }).where('id', '=', 1).execute())
    await store.close()
  }

  it('run passes output and status through, and nothing of the box is left alive (leases R29, R39)', async () => {
    const { data, options, cli } = await world()
    await startCoordinator(options)
    const [one, two] = ['31.0417', '31.0418']
    const ran = await cli('run', '--', 'sh', '-c', `setsid sleep ${one} & env -i setsid sleep ${two} & echo hi; exit 7`)
    expect(ran).toMatchObject({ status: 7, stdout: 'hi\n' })
    await until(
      () => running(`sleep ${one}`).length + running(`sleep ${two}`).length === 0 && boxFolders(data).length === 0,
      'nothing is left',
      10_000,
    )
    const [lease] = JSON.parse((await cli('lease', 'list', '--json')).stdout) as LeaseView[]
    expect(lease).toMatchObject({ state: 'released', cleanup: { state: 'gone' } })
    expect(JSON.parse((await cli('claims', 'list', '--json')).stdout)).toMatchObject({
      version: 1,
      source: 'local-claims',
      claims: [],
      problems: [],
    })
  })

  it('a command outlives the coordinator: killed and started again, the run ends with its own status', async () => {
    const { options, cli } = await world()
    const first = await startCoordinator(options)
    const fifo = join(options.data, 'go')
    execFileSync('mkfifo', [fifo])
    const run = cli('run', '--ttl', '10m', '--', 'sh', '-c', `echo started; read word < ${fifo}; echo "$word"; exit 3`)
    const [lease] = await until(async () => {
      const rows = JSON.parse((await cli('lease', 'list', '--json')).stdout) as LeaseView[]
      return rows[0]?.state === 'active' ? rows : undefined
    }, 'the lease is active')
    await until(() => processesWith('LEASEHOLD_LEASE_ID', lease?.id ?? '').length > 1, 'the command runs')
    await first.kill()
    const second = await startCoordinator(options)
    const handle = openSync(fifo, 'w')
    writeSync(handle, 'onwards\n')
    closeSync(handle)
    expect(await run).toMatchObject({ status: 3, stdout: 'started\nonwards\n' })
    expect(await leaseOf(second, lease?.id ?? '')).toMatchObject({ state: 'released', cleanup: { state: 'gone' } })
  })

  it('an hour without a coordinator ends nothing that was beating before, and what had ended before it ends (decisions 1)', async () => {
    const { options, target } = await world()
    const first = await startCoordinator(options)
    const token = first.token()
    const create = async (idleTimeoutSeconds: number): Promise<LeaseView> =>
      (await request<{ lease: LeaseView }>(first, token, 'POST', '/v1/leases', { ttlSeconds: 86_400, idleTimeoutSeconds })).body.lease
    const beating = await create(600)
    await request(first, token, 'POST', `/v1/leases/${beating.id}/heartbeat`, {})
    await first.kill()
    await moveClock(target, hourMs)
    const second = await startCoordinator(options)
    const kept = await leaseOf(second, beating.id)
    expect(kept.state).toBe('active')
    const left = Date.parse(kept.expiresAt) - (Date.now() + hourMs)
    expect(left).toBeGreaterThan(90_000)
    expect(left).toBeLessThanOrEqual(121_000)
    expect((await request(second, token, 'POST', `/v1/leases/${beating.id}/heartbeat`, {})).status).toBe(200)
    // The twin: the same hour with a coordinator that watched it pass without a beat ends the lease.
    await second.kill()
    const store = await openStore(target)
    await store.write(async (tx) => {
      await tx.db
        .updateTable('leases')
        .set({ expires_at: tx.now - 1, due_at: tx.now - 1 })
        .where('id', '=', beating.id as never)
        .execute()
      await tx.db.updateTable('replicas').set({ alive_at: tx.now }).execute()
    })
    await store.close()
    const third = await startCoordinator(options)
    await until(async () => (await leaseOf(third, beating.id)).state === 'expired', 'the lease expires')
  })

  it("a lease's token works inside its box, and the box ends by its own clock when no coordinator is left", async () => {
    const { data, options, cli } = await world()
    const first = await startCoordinator(options)
    const made = JSON.parse((await cli('lease', 'create', '--ttl', '4s', '--json')).stdout) as LeaseView & { leaseToken: string }
    expect((await request(first, made.leaseToken, 'POST', `/v1/leases/${made.id}/heartbeat`, {})).status).toBe(200)
    expect((await request(first, made.leaseToken, 'GET', '/v1/leases')).status).toBe(403)
    const processes = processesWith('LEASEHOLD_REF', made.ref)
    expect(processes.length).toBeGreaterThan(0)
    await first.kill()
    await until(() => processesWith('LEASEHOLD_REF', made.ref).length === 0, 'the box ends itself', 20_000)
    const second = await startCoordinator(options)
    await until(async () => (await leaseOf(second, made.id)).cleanup.state === 'gone', 'the lease is settled')
    expect(boxFolders(data)).toEqual([])
  })

  if (!postgres)
    it('a second coordinator on one data folder is refused, naming the pid', async () => {
      const { options, cli } = await world()
      const first = await startCoordinator(options)
      const second = await cli('serve', '--port', String(await freePort()))
      expect(second.status).not.toBe(0)
      expect(second.stderr).toContain(`pid ${first.process.pid}`)
      expect(executable).toContain('bin/leasehold')
    })
}

describe('the coordinator on SQLite', () => {
  suite(async () => sqliteDatabase(), false)()
})
const { url } = inject('postgres')
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)(
  'the coordinator on PostgreSQL',
  suite(() => postgresDatabase(url as string), true),
)
