/** Answers that somebody who is new to the commands gets: what was changed of their input, what was there before, what is not there. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EventView, FreezeView, HoldView } from '../../src/model/wire.ts'
import { leaseView, startCoordinator, type FakeCoordinator } from './coordinator.ts'
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

describe('a create', () => {
  it('says caps in the options and units of the command line', async () => {
    coordinator.override = ({ path }) =>
      path === '/v1/leases'
        ? {
            status: 201,
            body: {
              lease: leaseView(),
              warnings: [
                'ttlSeconds 108000 is above the cap and was set to 86400',
                'idleTimeoutSeconds 90060 is above the cap and was set to 86400',
                'another',
              ],
            },
          }
        : null
    const { err } = await box.run(['warmup', '--ttl', '30h', '--idle', '25h1m'])
    expect(err).toContain('leasehold: warning: --ttl 30h is above the cap of 24h and was set to 24h\n')
    expect(err).toContain('leasehold: warning: --idle 1501m is above the cap of 24h and was set to 24h\n')
    expect(err).toContain('leasehold: warning: another\n')
  })

  it.each([
    ['My Slug!', 'my-slug', 'leasehold: warning: the slug "My Slug!" was made "my-slug": slugs are lower-case letters, digits and -\n'],
    ['nightly', 'nightly-3fa2', 'leasehold: warning: the slug "nightly" is in use: this lease got "nightly-3fa2"\n'],
    ['nightly', 'nightly', ''],
  ])('with --slug %j that became %j says %j', async (wanted, slug, said) => {
    coordinator.override = ({ path }) => (path === '/v1/leases' ? { status: 201, body: { lease: leaseView({ slug }) } } : null)
    expect((await box.run(['warmup', '--slug', wanted, '--json'])).err).toBe(said)
  })
})

describe('a lease that is not there', () => {
  const advice = 'a slug names live leases only; "leasehold list --all" shows ended ones'
  it.each([[['status']], [['stop']], [['heartbeat']], [['lease', 'release']], [['lease', 'get']]])(
    '%j by slug says that slugs name live leases only; by id it does not',
    async (words) => {
      const bySlug = await box.run([...words, 'over'])
      expect([bySlug.status, bySlug.err]).toEqual([4, expect.stringContaining(advice)])
      const byId = await box.run([...words, 'lh_00000000000f'])
      expect([byId.status, byId.err]).toEqual([4, expect.not.stringContaining(advice)])
    },
  )
})

describe('holds and freezes', () => {
  const hold = (changes: Partial<HoldView> = {}): HoldView => ({
    id: 'hd_1',
    targetType: 'lease',
    targetID: 'lh_0123456789ab',
    project: 'default',
    reason: 'looking',
    createdBy: 'admin',
    createdAt: '2030-01-01T00:00:00.000Z',
    until: null,
    removedAt: null,
    ...changes,
  })
  const freeze: FreezeView = { scope: '*', reason: 'outage', createdBy: 'alice', createdAt: '2030-01-01T00:00:00.000Z' }
  const answering = (holds: HoldView[], freezes: FreezeView[] = []): void => {
    coordinator.override = ({ method, path }) => {
      if (path === '/v1/holds') return { status: 200, body: { holds } }
      if (path === '/v1/freezes' && method === 'GET') return { status: 200, body: { freezes } }
      return { status: 200, body: { hold: holds[0], freeze } }
    }
  }

  it('a standing hold without an end says "no end"; when one was removed is a matter of --all', async () => {
    answering([hold()])
    const { out } = await box.run(['hold', 'list'])
    expect(out).toContain('no end')
    expect(out).not.toMatch(/removed/i)
    expect(coordinator.seen.at(-1)?.query).toEqual({})
    answering([hold({ removedAt: '2030-01-01T00:04:00.000Z' })])
    expect((await box.run(['hold', 'list', '--all'])).out).toMatch(/REMOVED\n.* no end +1m ago\n/)
    expect(coordinator.seen.at(-1)?.query).toEqual({ all: 'true' })
  })

  it('removing a hold a second time says so', async () => {
    answering([hold()])
    expect((await box.run(['hold', 'remove', 'hd_1'])).out).toBe('hold hd_1 is removed\n')
    answering([hold({ removedAt: '2030-01-01T00:04:00.000Z' })])
    expect((await box.run(['hold', 'remove', 'hd_1'])).out).toBe('hold hd_1 was removed already, at 2030-01-01T00:04:00.000Z\n')
  })

  it('freezing what is frozen says who had, and why', async () => {
    answering([])
    expect((await box.run(['freeze', '--reason', 'r'])).out).toContain('every scope is frozen: no removal begins')
    answering([], [freeze])
    expect((await box.run(['freeze', '--reason', 'r'])).out).toContain(
      'every scope was frozen already, by alice since 2030-01-01T00:00:00.000Z (outage)',
    )
    expect((await box.run(['freeze', '--scope', 'machine:x', '--reason', 'r'])).out).toContain('machine:x is frozen')
  })
})

describe('events as text', () => {
  const event = (seq: number, code: string, level: EventView['level']): EventView => ({
    id: `ev_${seq}`,
    seq,
    at: '2030-01-01T00:00:00.000Z',
    code,
    level,
    project: 'default',
    actor: 'admin',
    message: 'text',
    targets: [],
    payload: {},
  })

  it('show number and level, in columns', async () => {
    coordinator.events = [event(9, 'lease.created', 'info'), event(10, 'removal.needs-person', 'error')]
    const { out } = await box.run(['events'])
    const [first = '', second = ''] = out.split('\n')
    expect(first).toMatch(/^ +9 {2}2030-01-01T00:00:00\.000Z {2}info +lease\.created +text/)
    expect(second).toMatch(/^ +10 {2}2030-01-01T00:00:00\.000Z {2}error +removal\.needs-person +text/)
    expect(first.indexOf('text')).toBe(second.indexOf('text'))
  })

  it('of a target that nothing is known of are exit 4; of one that is only quiet since, none', async () => {
    const { status, out, err } = await box.run(['events', '--target', 'nope'])
    expect([status, out]).toEqual([4, ''])
    expect(err).toContain('"nope": nothing of that id or name is known')
    coordinator.events = [event(1, 'lease.created', 'info')]
    expect(await box.run(['events', '--target', 'x', '--after', '1', '--json'])).toEqual({ status: 0, out: '[]\n', err: '' })
    expect((await box.run(['events', '--after', '1'])).status).toBe(0)
  })
})
