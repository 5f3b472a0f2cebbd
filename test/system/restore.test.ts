/** The restore drill with real coordinators and real boxes: a data folder that is cloned while work goes on in it. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { InstallationView, LeaseView, StatusView } from '../../src/model/wire.ts'
import { processesWith } from '../support/boxes.ts'
import { copyFileOf } from '../support/copies.ts'
import { freePort, killCoordinators, leasehold, request, startCoordinator, type Coordinator } from '../support/coordinator.ts'
import { until } from '../support/until.ts'

const undo: (() => void | Promise<void>)[] = []
afterEach(async () => {
  await killCoordinators()
  for (const step of undo.splice(0).toReversed()) await step()
})

const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'leasehold-system-'))
  undo.push(() => rmSync(made, { recursive: true, force: true }))
  return made
}
const startOn = async (data: string): Promise<{ coordinator: Coordinator; cli: (...args: string[]) => ReturnType<typeof leasehold> }> => {
  const port = await freePort()
  const env = { LEASEHOLD_DATA: data, LEASEHOLD_PORT: String(port) }
  return { coordinator: await startCoordinator({ data, port }), cli: (...args) => leasehold(args, { env, cwd: data }) }
}
const view = async (cli: (...args: string[]) => ReturnType<typeof leasehold>): Promise<InstallationView> =>
  JSON.parse((await cli('installation', '--json')).stdout) as InstallationView

it(
  'a clone beside the original ends none of its boxes: not while it is undecided, and not as a fork, which then works by itself (decisions 6)',
  { timeout: 120_000 },
  async () => {
    const data = folder()
    const { coordinator: original, cli } = await startOn(data)
    const { lease } = (await request<{ lease: LeaseView }>(original, original.token(), 'POST', '/v1/leases', { ttlSeconds: 3_600 })).body
    const lives = (): boolean => processesWith('LEASEHOLD_LEASE_ID', lease.id).length > 0
    expect(lives()).toBe(true)

    const clone = folder()
    const left = new Set(['leasehold.db', 'leasehold.db-wal', 'leasehold.db-shm', 'serve.lock', 'serve.pid', 'serve.url'])
    cpSync(data, clone, { recursive: true, filter: (path) => !left.has(basename(path)) })
    const copy = copyFileOf(join(data, 'leasehold.db'))
    cpSync(copy.target, join(clone, 'leasehold.db'))
    await copy.drop()
    const second = await startOn(clone)
    const there = second.coordinator

    const { body } = await request<{ status: StatusView }>(there, there.token(), 'GET', '/v1/status')
    expect(body.status.stops).toMatchObject([{ scope: '*', code: 'elsewhere' }])
    expect((await second.cli('status')).stdout).toMatch(/stopped\s+removals in every scope/)
    expect((await second.cli('doctor')).stdout).toContain('leasehold installation adopt')
    await request(there, there.token(), 'POST', `/v1/leases/${lease.id}/release`, {})
    await until(async () => {
      const answer = await request<{ lease: LeaseView }>(there, there.token(), 'GET', `/v1/leases/${lease.id}`)
      return answer.body.lease.cleanup.state === 'held'
    }, 'its removal is held in the clone')
    expect(lives()).toBe(true)

    const before = await view(second.cli)
    const forked = await second.cli('installation', 'fork', '--reason', 'for trying')
    expect(forked).toMatchObject({ status: 0, stdout: expect.stringContaining('holds nothing') as string })
    await until(
      async () => {
        const answer = await fetch(`${there.url}/v1/ready`).catch(() => null)
        return answer?.ok === true && there.log().includes('the coordinator begins anew')
      },
      'the clone has begun anew, under its address',
      30_000,
    )
    expect(await view(second.cli)).toMatchObject({ former: [before.installation], stops: [] })
    expect(await second.cli('run', '--', 'sh', '-c', 'echo its own; exit 3')).toMatchObject({ status: 3, stdout: 'its own\n' })
    expect(lives()).toBe(true)

    // The original never noticed.
    expect(await view(cli)).toMatchObject({ installation: before.installation, stops: [] })
    expect((await cli('stop', lease.id)).status).toBe(0)
    await until(() => !lives(), 'the original takes its box back')
  },
)

it('the twin: killed and started again, it is the same database, and takes back what is there', { timeout: 120_000 }, async () => {
  const data = folder()
  const { coordinator: first } = await startOn(data)
  const { lease } = (await request<{ lease: LeaseView }>(first, first.token(), 'POST', '/v1/leases', { ttlSeconds: 3_600 })).body
  await first.kill()
  const again = await startOn(data)
  expect((await view(again.cli)).stops).toEqual([])
  expect((await again.cli('stop', lease.id)).status).toBe(0)
  await until(() => processesWith('LEASEHOLD_LEASE_ID', lease.id).length === 0, 'its box is gone')
})
