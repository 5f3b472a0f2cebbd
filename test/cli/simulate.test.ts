import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSimulatedProvider } from '../../src/providers/simulated/index.ts'
import { context, createRequest } from '../conformance/request.ts'
import { startCoordinator, type FakeCoordinator } from './coordinator.ts'
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

const simulate = (...words: string[]) => box.run(['simulate', ...words])
const json = async <T>(...words: string[]): Promise<T> => {
  const { status, out, err } = await simulate(...words, '--json')
  expect([status, err]).toEqual([0, ''])
  return JSON.parse(out) as T
}
const launch = (...words: string[]) =>
  json<{ id: string; tags: Record<string, string> }>('launch', '--kind', 'machine', '--location', 'sim-a', '--name', 'box', ...words)

const commands = [['list'], ['launch'], ['copy'], ['remove'], ['fault', 'add'], ['fault', 'list'], ['fault', 'clear']]

describe('leasehold simulate', () => {
  it.each(commands.map((words) => [words.join(' '), words] as const))(
    '%s has a help page with an example, and refuses unknown flags',
    async (_name, words) => {
      const { status, out, err } = await simulate(...words, '--help')
      expect([status, err]).toEqual([0, ''])
      expect(out).toContain(`Examples:\n  $ leasehold simulate ${words.join(' ')}`)
      expect(await simulate(...words, '--no-such-flag')).toMatchObject({ status: 2, out: '' })
    },
  )

  it('launches what it is told, and lists it with every field', async () => {
    const before = Date.now()
    const made = await launch('--tag', 'team=web', '--tag', 'keep=true', '--ref', 'r0123456789a')
    expect(made).toEqual({
      id: 'i-00000001',
      kind: 'machine',
      location: 'sim-a',
      name: 'box',
      state: 'running',
      tags: { team: 'web', keep: 'true', leasehold_ref: 'r0123456789a' },
      clientToken: null,
      createdAt: expect.any(String),
      attachedTo: [],
    })
    const { createdAt } = made as unknown as { createdAt: string }
    expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(Math.floor(before))
    expect(await json('list')).toEqual([made])
    expect((await simulate('list')).out).toMatch(/i-00000001\s+machine\s+sim-a\s+box\s+running/)
    expect(existsSync(join(box.data, 'simulated.db'))).toBe(true)
    expect(coordinator.seen).toEqual([])
  })

  it('works on another file with --path; one that is not there is exit 2, and only launch makes it, in a folder that exists, and says so', async () => {
    const path = join(box.root, 'cloud.db')
    const missing = { status: 2, err: expect.stringContaining(`no such account file: ${path}`) }
    for (const words of [['list'], ['remove', 'i-00000001'], ['fault', 'list'], ['fault', 'add', '--op', 'delete', '--effect', 'ignore']])
      expect(await simulate(...words, '--path', path)).toMatchObject(missing)
    expect(existsSync(path)).toBe(false)
    const made = ['launch', '--kind', 'machine', '--location', 'sim-a', '--name', 'box']
    expect(await simulate(...made, '--path', join(box.root, 'nowhere', 'cloud.db'))).toMatchObject({ status: 2 })
    expect(existsSync(join(box.root, 'nowhere'))).toBe(false)
    expect(await simulate(...made, '--path', path)).toMatchObject({ status: 0, err: `leasehold: made a new account in ${path}\n` })
    expect(await json('list', '--path', path)).toHaveLength(1)
    expect(await json('list')).toEqual([])
  })

  it('copies a resource with its tags and without its client token', async () => {
    const provider = createSimulatedProvider({ dataFolder: box.data })
    const request = createRequest(provider, {})
    expect((await provider.create(request, context())).kind).toBe('created')
    const [original] = await json<{ id: string; clientToken: string; tags: object }[]>('list')
    expect(original?.clientToken).toBe(request.attemptToken)
    const copy = await json<{ id: string }>('copy', original?.id ?? '')
    expect(copy).toMatchObject({ tags: original?.tags, clientToken: null, kind: 'machine', attachedTo: [] })
    expect(copy.id).not.toBe(original?.id)
  })

  it('removes at once, and not what stands on something', async () => {
    const provider = createSimulatedProvider({ dataFolder: box.data })
    await provider.create(createRequest(provider, {}), context())
    expect(await simulate('remove', 'd-00000002')).toMatchObject({
      status: 1,
      err: expect.stringContaining('attached to machine i-00000001'),
    })
    expect(await simulate('remove', 'i-00000001')).toEqual({ status: 0, out: 'i-00000001 is removed\n', err: '' })
    expect((await simulate('remove', 'd-00000002')).status).toBe(0)
    expect((await json<{ id: string }[]>('list')).map((one) => one.id)).toEqual(['n-00000003', 'ip-00000004'])
  })

  it('adds faults that strike the provider, lists and clears them', async () => {
    expect(await json('fault', 'list')).toEqual([])
    const fault = await json(
      'fault',
      'add',
      '--op',
      'list',
      '--effect',
      'fail-page',
      '--page',
      '1',
      '--kind',
      'machine',
      '--location',
      'sim-a',
      '--count',
      '3',
    )
    expect(fault).toEqual({
      id: 1,
      op: 'list',
      effect: 'fail-page',
      remaining: 3,
      struck: 0,
      forMs: null,
      page: 1,
      location: 'sim-a',
      kind: 'machine',
    })
    const provider = createSimulatedProvider({ dataFolder: box.data })
    expect((await provider.find('r0123456789a' as never, {}, context())).kind).toBe('incomplete')
    expect(await json('fault', 'list')).toMatchObject([{ id: 1, remaining: 2, struck: 1 }])
    expect(await json('fault', 'clear')).toEqual({ cleared: 1 })
    expect((await provider.find('r0123456789a' as never, {}, context())).kind).toBe('complete')
    expect(await json('fault', 'add', '--op', 'delete', '--effect', 'slow', '--for', '1m30s')).toMatchObject({
      forMs: 90_000,
      remaining: null,
    })
    expect((await simulate('fault', 'list')).out).toMatch(/delete\s+slow\s+1m 30s/)
  })

  it.each([
    [['launch', '--location', 'sim-a', '--name', 'x'], /--kind must be one of machine, disk, nic, ip/],
    [['launch', '--kind', 'box', '--location', 'sim-a', '--name', 'x'], /--kind must be one of/],
    [['launch', '--kind', 'disk', '--name', 'x'], /--location/],
    [['launch', '--kind', 'disk', '--location', 'sim-a'], /--name/],
    [['launch', '--kind', 'disk', '--location', 'sim-a', '--name', 'x', '--tag', 'novalue'], /key=value/],
    [['launch', '--kind', 'disk', '--location', 'sim-a', '--name', 'x', '--tag', 'leasehold_ref=a', '--ref', 'b'], /give one/],
    [['list', '--path', ''], /--path must not be empty/],
    [['launch', '--kind', 'disk', '--location', 'sim-x', '--name', 'x'], /no location "sim-x"; there is sim-a, sim-b/],
    [['fault', 'add', '--op', 'list', '--effect', 'denied', '--location', 'sim-x'], /no location "sim-x"; there is sim-a, sim-b/],
    [['fault', 'add', '--effect', 'denied'], /--op must be one of create, list, get, delete/],
    [['fault', 'add', '--op', 'list', '--effect', 'gremlin'], /--effect must be one of/],
    [['fault', 'add', '--op', 'list', '--effect', 'slow'], /--for DURATION/],
    [['fault', 'add', '--op', 'list', '--effect', 'slow', '--for', '5'], /no unit/],
    [['fault', 'add', '--op', 'list', '--effect', 'denied', '--for', '5s'], /has no length/],
    [['fault', 'add', '--op', 'get', '--effect', 'ignore'], /ignore is for delete and wipe, not for get/],
    [['fault', 'add', '--op', 'get', '--effect', 'denied', '--page', '1'], /only a list has pages/],
    [['fault', 'add', '--op', 'list', '--effect', 'denied', '--count', '0'], /at least 1/],
    [['fault', 'add', '--op', 'list', '--effect', 'denied', '--kind', 'box'], /--kind must be one of/],
  ] as const)('%j is bad input: exit 2 and one line', async (words, message) => {
    const { status, out, err } = await simulate(...words)
    expect([status, out]).toEqual([2, ''])
    expect(err).toMatch(message)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
  })

  it('exits with 4 for what is not there, and 1 for a file that is no account', async () => {
    expect(await simulate('copy', 'i-00000009')).toMatchObject({ status: 4, err: expect.stringContaining('launch') })
    await launch()
    for (const words of [
      ['copy', 'i-00000009'],
      ['remove', 'i-00000009'],
      ['copy', 'nonsense'],
    ])
      expect(await simulate(...words)).toMatchObject({ status: 4, out: '', err: expect.stringContaining('there is no resource') })
    const path = join(box.root, 'notes.txt')
    writeFileSync(path, 'these are notes and no database, however long they may be')
    expect(await simulate('list', '--path', path)).toMatchObject({ status: 1, err: expect.stringContaining('could not be opened') })
  })
})

describe('leasehold run on a simulated machine', () => {
  it('exits with 125 and the reason, and gives the lease back', async () => {
    const why = 'i-00000001 is a simulated machine: nothing runs on it, so no command can'
    coordinator.override = ({ path }) => (path.endsWith('/access') ? { status: 200, body: { access: { kind: 'none', why } } } : null)
    expect(await box.run(['run', '--', 'true'])).toMatchObject({ status: 125, err: expect.stringContaining(why) })
    expect(coordinator.calls('POST', /\/release$/)).toHaveLength(1)
  })
})
