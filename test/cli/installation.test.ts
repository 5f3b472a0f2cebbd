import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { InstallationView } from '../../src/model/wire.ts'
import { startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

const view: InstallationView = {
  installation: 'k3f9a1bc',
  epoch: 12,
  createdAt: '2030-01-01T00:00:00.000Z',
  adoptedAt: null,
  former: [],
  heldSince: null,
  place: 'file inode 131 on device 2049 of machine a',
  found: 'file inode 132 on device 2049 of machine a',
  stops: [{ scope: '*', code: 'elsewhere', why: 'its file is not the one that was used last', since: '2030-01-01T00:00:00.000Z' }],
  keys: [
    { id: 'a1b2c3', createdAt: '2030-01-01T00:00:00.000Z', retiredAt: '2030-01-02T00:00:00.000Z' },
    { id: 'q4w8e1', createdAt: '2030-01-02T00:00:00.000Z', retiredAt: null },
  ],
}

describe('leasehold installation', () => {
  let coordinator: FakeCoordinator
  let box: Sandbox
  beforeEach(async () => {
    coordinator = await startCoordinator()
    box = sandbox(coordinator.url)
    coordinator.override = ({ path }) => (path.startsWith('/v1/installation') ? { status: 200, body: { installation: view } } : null)
  })
  afterEach(async () => {
    box.remove()
    await coordinator.close()
  })

  it('shows which database it is, why removals are stopped, and what a person can say', async () => {
    const { status, out } = await box.run(['installation'])
    expect(status).toBe(0)
    for (const part of ['k3f9a1bc', 'inode 131', 'inode 132', 'every scope', 'not the one that was used last', 'q4w8e1, 1 retired'])
      expect(out).toContain(part)
    expect(out).toMatch(/leasehold installation adopt --original-is-stopped --reason TEXT\n.*leasehold installation fork --reason TEXT/)
    expect(JSON.parse((await box.run(['installation', '--json'])).out)).toEqual(view)
  })

  it.each([
    [['adopt'], '/v1/installation/adopt', { reason: 'so it is' }],
    [['adopt', '--original-is-stopped'], '/v1/installation/adopt', { reason: 'so it is', original: 'stopped' }],
    [['fork'], '/v1/installation/fork', { reason: 'so it is' }],
    [['fork', '--always'], '/v1/installation/fork', { reason: 'so it is', when: 'always' }],
    [['rotate-key'], '/v1/installation/keys', { reason: 'so it is' }],
  ])('%j is sent with its reason, and refused without one', async (words, path, body) => {
    expect(await box.run(['installation', ...words])).toMatchObject({ status: 2, err: expect.stringContaining('--reason') as string })
    expect(coordinator.seen).toEqual([])
    const { status, out } = await box.run(['installation', ...words, '--reason', 'so it is', '--json'])
    expect({ status, answer: JSON.parse(out) as unknown }).toEqual({ status: 0, answer: view })
    expect(coordinator.seen).toMatchObject([{ method: 'POST', path, body }])
  })

  it('--help of each has an example', async () => {
    for (const words of [[], ['adopt'], ['fork'], ['rotate-key']])
      expect((await box.run(['installation', ...words, '--help'])).out).toContain(`$ leasehold ${['installation', ...words].join(' ')}`)
  })
})
