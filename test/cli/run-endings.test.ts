/** What `run` and `stop` say when something else than the command decides: the lease's clocks, other hands, holds. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CleanupView, EventView, LeaseView } from '../../src/model/wire.ts'
import { cleanup, startCoordinator, type FakeCoordinator } from './coordinator.ts'
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

const released = (actor: string): EventView => ({
  id: 'ev_1',
  seq: 1,
  at: '2030-01-01T00:00:00.000Z',
  code: 'lease.released',
  level: 'info',
  project: 'default',
  actor,
  message: 'Lease released, box to be removed',
  targets: [],
  payload: {},
})
const atMaximum = '2030-01-01T01:30:00.000Z'

describe('a lease that ends under its command', () => {
  /** The lease as it reads until it is released. */
  const reads = (changes: Partial<LeaseView>): void => {
    coordinator.override = ({ method, path }, fake) => {
      const lease = fake.leases.get(path.replace('/v1/leases/', ''))
      return method === 'GET' && lease?.state === 'active' ? { status: 200, body: { lease: { ...lease, ...changes } } } : null
    }
  }
  const killed = ['run', '-q', '--', 'sh', '-c', 'kill -KILL $$']

  it.each([
    ['at its maximum lifetime', { state: 'expired', expiresAt: atMaximum }],
    ['after its idle time', { state: 'expired' }],
    ['at its maximum lifetime', { expiresAt: atMaximum, cleanup: cleanup('removing') }],
    ['after its idle time', { expiresAt: '2020-01-01T00:00:00.000Z' }],
  ] satisfies [string, Partial<LeaseView>][])('is said once: ended %s (%j)', async (how, changes) => {
    reads(changes)
    const { status, err } = await box.run(killed)
    expect(status).toBe(137)
    expect(err).toMatch(new RegExp(`^leasehold: warning: lease lh_[0-9a-f]{12} \\(brave-otter\\) ended ${how}; its command was ended\\n$`))
  })

  it('says who released it', async () => {
    reads({ state: 'released' })
    coordinator.events = [released('alice')]
    expect((await box.run(killed)).err).toMatch(/\(brave-otter\) was released by alice; its command was ended\n$/)
  })

  it('says so too when the command caught the signal and chose its status', async () => {
    reads({ state: 'expired', expiresAt: atMaximum })
    const { status, err } = await box.run(['run', '-q', '--', 'sh', '-c', 'exit 2'])
    expect([status, err]).toEqual([2, expect.stringContaining('ended at its maximum lifetime')])
  })

  it('says nothing of a command that a signal ended while its lease lives, nor of one that went well', async () => {
    expect(await box.run(killed)).toMatchObject({ status: 137, err: '' })
    reads({ state: 'expired' })
    expect((await box.run(['run', '-q', '--', 'true'])).err).toBe('')
  })

  it('is said when a beat is refused, with what becomes of the command', async () => {
    coordinator.override = ({ method, path }, fake) => {
      if (path.endsWith('/heartbeat')) return { status: 409, body: { error: 'lease_expired', message: 'over' } }
      const lease = fake.leases.get(path.replace('/v1/leases/', ''))
      const held = cleanup('held', { heldBy: 'freeze' })
      return method === 'GET' && lease?.state === 'active' ? { status: 200, body: { lease: { ...lease, cleanup: held } } } : null
    }
    const { err } = await box.run(['run', '-q', '--idle', '1s', '--', 'sleep', '1.2'])
    expect(err).toMatch(/ended after its idle time; its box is held back by freeze, so the command goes on until that is lifted\n/)
    expect(err.match(/ended after/g)).toHaveLength(1)
  })
})

describe('a box that is held back', () => {
  const held: CleanupView['state'][] = Array.from({ length: 500 }, () => 'held')
  const took = async (argv: string[]) => {
    const start = performance.now()
    const result = await box.run(argv)
    return { ...result, ms: performance.now() - start }
  }

  it('ends the waiting of run at once, which says why', async () => {
    coordinator.removal = [...held]
    const { status, err, ms } = await took(['run', '--', 'true'])
    expect(status).toBe(0)
    expect(err).toMatch(/warning: lease lh_\w+ is released, its box is held back by someone: it is removed once that is lifted/)
    expect(ms).toBeLessThan(10_000)
  })

  it('ends the waiting of stop at once, with exit 7', async () => {
    await box.run(['warmup'])
    coordinator.removal = [...held]
    const { status, err, ms } = await took(['stop', 'brave-otter'])
    expect([status, err]).toEqual([7, expect.stringContaining('its box is held back by someone')])
    expect(ms).toBeLessThan(10_000)
  })

  it('is waited for when the hold was just lifted: that shows for a moment', async () => {
    await box.run(['warmup'])
    coordinator.removal = ['held', 'held', 'removing', 'gone']
    expect(await box.run(['stop', 'brave-otter'])).toMatchObject({ status: 0, err: '' })
  })
})
