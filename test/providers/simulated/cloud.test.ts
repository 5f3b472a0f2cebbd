/** The cloud itself: ids, attachments, ends and clocks. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/providers/contract.ts'
import { openCloud } from '../../../src/providers/simulated/cloud.ts'
import { createSimulatedProvider } from '../../../src/providers/simulated/index.ts'
import { idOf, parseId } from '../../../src/providers/simulated/resource.ts'
import { context, createRequest, rearming } from '../../conformance/request.ts'
import { type Account, openAccount } from './support.ts'

let account: Account
beforeEach(() => {
  account = openAccount()
})
afterEach(() => account.dispose())

const read = async (resource: Parameters<Account['provider']['read']>[0], of = account) => {
  const outcome = await of.provider.read(resource, of.config, context())
  return outcome.kind === 'present' ? outcome.found.providerState : outcome.kind
}
const remove = (resource: Parameters<Account['provider']['remove']>[0], of = account) => of.provider.remove(resource, of.config, context())
/** The four of one group, owner first. */
const group = async (of = account) => {
  await of.make()
  const [machine, disk, nic, ip] = (await of.list()).resources.map((one) => one.resource)
  if (!machine || !disk || !nic || !ip) throw new Error('no whole group')
  return { machine, disk, nic, ip }
}

describe('the file of an account', () => {
  it('of the format before is taken over with everything in it', async () => {
    const { resource } = await account.make()
    account.cloud.database.run('alter table resources drop column version')
    account.cloud.database.run('pragma user_version = 1')
    const cloud = openCloud(account.path, () => account.clock.now)
    expect(cloud.get(resource.nativeId)).toMatchObject({ id: resource.nativeId, version: 1 })
    cloud.setTags(resource.nativeId, {})
    expect(cloud.get(resource.nativeId)?.version).toBe(2)
    cloud.close()
  })
})

describe('ids and names', () => {
  it('an id is never used again, and a name may be (case B13)', async () => {
    const first = await account.make({ name: 'same' })
    expect((await remove(first.resource)).kind).toBe('gone')
    const second = await account.make({ name: 'same' })
    expect(second.resource.nativeId).not.toBe(first.resource.nativeId)
    expect([await read(first.resource), await read(second.resource)]).toEqual(['absent', 'running'])
  })

  it('an id is read back only in the one spelling that it is written in', () => {
    expect(parseId(idOf('machine', 255))).toEqual({ kind: 'machine', seq: 255 })
    expect(parseId(idOf('ip', 2 ** 40))).toEqual({ kind: 'ip', seq: 2 ** 40 })
    for (const wrong of ['i-ff', 'i-000000FF', 'x-000000ff', 'i-0000000000ff', 'i-000000ff ', '']) expect(parseId(wrong)).toBeNull()
  })

  it('a copy has the tags and an id of its own, and nothing that was fixed at creation', async () => {
    const { machine } = await group()
    const copy = account.cloud.copy(machine.nativeId)
    const original = account.cloud.get(machine.nativeId)
    expect(copy).toMatchObject({ kind: 'machine', tags: original?.tags, name: original?.name, clientToken: null, attachedTo: [] })
    expect(copy.id).not.toBe(machine.nativeId)
    expect(original?.clientToken).toMatch(/^[0-9a-f]{32}$/)
    expect(() => account.cloud.copy('i-0000ffff')).toThrow(/no resource/)
  })
})

describe('ends', () => {
  it('what stands on something is blocked by it until it is gone, and goes then (leases case 10)', async () => {
    const { machine, disk, nic, ip } = await group()
    expect(await remove(disk)).toEqual({ kind: 'blocked', by: 'machine i-00000001' })
    expect(await remove(ip)).toEqual({ kind: 'blocked', by: 'nic n-00000003' })
    expect((await remove(machine)).kind).toBe('gone')
    // The owner's end takes nothing with it here: the rest is listed as a group without an owner (orphans R19).
    expect((await account.list()).resources.map((one) => [one.resource.kind, one.providerState])).toEqual([
      ['disk', 'available'],
      ['nic', 'available'],
      ['ip', 'attached'],
    ])
    for (const one of [disk, nic, ip]) expect((await remove(one)).kind).toBe('gone')
    expect(account.cloud.all()).toEqual([])
  })

  it('a cascade is honoured', async () => {
    const cascading = openAccount({ cascade: 'delete' })
    const { machine } = await group(cascading)
    expect((await remove(machine, cascading)).kind).toBe('gone')
    expect(cascading.cloud.all()).toEqual([])
    cascading.dispose()
  })

  it('a deletion is accepted first and done later, and still blocks meanwhile (orphans R23, U11)', async () => {
    const slow = openAccount({ deleteSeconds: 30 })
    const { machine, disk } = await group(slow)
    expect(await remove(machine, slow)).toMatchObject({ kind: 'accepted', requestId: expect.stringMatching(/^req-\d+$/) })
    slow.advance(29)
    expect(await read(machine, slow)).toBe('terminating')
    expect((await remove(disk, slow)).kind).toBe('blocked')
    expect((await remove(machine, slow)).kind).toBe('accepted')
    slow.advance(1)
    expect(await read(machine, slow)).toBe('absent')
    expect((await remove(disk, slow)).kind).toBe('gone')
    slow.dispose()
  })

  it('what has ended is listed as gone for a while, and its exact read says absent (orphans U10, case F3)', async () => {
    const lingering = openAccount({ group: 'machine', terminatedSeconds: 3600 })
    const { request, resource } = await lingering.make()
    expect((await remove(resource, lingering)).kind).toBe('gone')
    const listed = async () => (await lingering.list()).resources.map((one) => [one.providerState, one.existence])
    expect([await listed(), await read(resource, lingering)]).toEqual([[['terminated', 'gone']], 'absent'])
    expect(await lingering.provider.find(request.ref, lingering.config, context())).toMatchObject({ kind: 'complete', found: [] })
    lingering.advance(3600)
    expect(await listed()).toEqual([])
    lingering.dispose()
  })

  it('a token makes nothing again when what it made has ended', async () => {
    const { request, resource } = await account.make()
    await remove(resource)
    expect(await account.provider.create(request, context())).toMatchObject({ kind: 'rejected', code: 'token_used' })
    expect(account.cloud.all().filter((one) => one.kind === 'machine')).toEqual([])
  })
})

describe('the dead-man clock', () => {
  it('a machine ends itself at its deadline, as any later call sees', async () => {
    const { resource } = await account.make({ maximumLifetimeSeconds: 100 })
    account.advance(99)
    expect(await read(resource)).toBe('running')
    account.advance(1)
    expect(await read(resource)).toBe('absent')
    expect(account.cloud.all().map((one) => one.kind)).toEqual(['disk', 'nic', 'ip'])
  })

  it('is moved by rearm, and not for a machine that does not run', async () => {
    const { resource } = await account.make({ maximumLifetimeSeconds: 100 })
    await account.provider.rearm?.(resource, 500, account.config, rearming())
    account.advance(499)
    expect(await read(resource)).toBe('running')
    account.advance(1)
    expect(await read(resource)).toBe('absent')
    await expect(account.provider.rearm?.(resource, 500, account.config, rearming())).rejects.toThrow(/does not run/)
    const other = await account.make()
    await expect(
      account.provider.rearm?.({ ...other.resource, scope: 'simulated:x' as never }, 500, account.config, rearming()),
    ).rejects.toThrow(/does not run/)
  })

  it('can stop the machine instead: it is there, and can be removed', async () => {
    const stopping = openAccount({ atDeadline: 'stop' })
    const { resource } = await stopping.make({ maximumLifetimeSeconds: 100 })
    stopping.advance(100)
    expect(await read(resource, stopping)).toBe('stopped')
    expect((await stopping.list()).resources[0]).toMatchObject({ providerState: 'stopped', existence: 'exists' })
    expect((await remove(resource, stopping)).kind).toBe('gone')
    stopping.dispose()
  })

  it('a machine starts for as long as the backend says', async () => {
    const starting = openAccount({ startSeconds: 5 })
    const request = createRequest(starting.provider, starting.config)
    const outcome = await starting.provider.create(request, context())
    expect(outcome).toMatchObject({ kind: 'created', ready: false })
    if (outcome.kind !== 'created') return
    expect(await read(outcome.resource, starting)).toBe('pending')
    starting.advance(5)
    expect(await read(outcome.resource, starting)).toBe('running')
    starting.dispose()
  })
})

describe('the account', () => {
  it('is another one when its file is another one (orphans U16)', async () => {
    const { resource } = await account.make()
    const first = await account.provider.scope(account.config, context())
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${account.path}${suffix}`, { force: true })
    const second = await account.provider.scope(account.config, context())
    expect([first.kind, second.kind]).toEqual(['known', 'known'])
    expect(second).not.toEqual(first)
    expect((await account.provider.read(resource, account.config, context())).kind).toBe('replaced')
    expect((await remove(resource)).kind).toBe('blocked')
  })

  it('is readable by its owner only and holds no secret', async () => {
    await account.make({ secretEnvironment: { LEASEHOLD_LEASE_TOKEN: 'canary-5e0c7' } })
    expect(statSync(account.path).mode & 0o077).toBe(0)
    const written = ['', '-wal'].map((suffix) => readFileSync(`${account.path}${suffix}`, 'latin1')).join('')
    expect(written).toContain('leasehold_ref')
    expect(written).not.toContain('canary-5e0c7')
  })

  it('is used by several processes at once: nothing is lost, and no id is given twice', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-simulated-'))
    const path = join(folder, 'shared.db')
    const children = Array.from({ length: 4 }, (_, index) =>
      spawn(process.execPath, ['--no-warnings', join(import.meta.dirname, 'launcher.ts'), path, String(index), '40'], { stdio: 'inherit' }),
    )
    const codes = await Promise.all(children.map(async (child) => ((await once(child, 'exit')) as [number])[0]))
    expect(codes).toEqual([0, 0, 0, 0])
    const cloud = openCloud(path)
    const all = cloud.all()
    expect(all).toHaveLength(160)
    expect(new Set(all.map((one) => one.id)).size).toBe(160)
    // All four asked for the same machine once, with one token.
    expect(all.filter((one) => one.clientToken === 'shared')).toHaveLength(1)
    cloud.close()
    rmSync(folder, { recursive: true })
  })
})

describe('the configuration', () => {
  it.each([
    [{ noSuchKey: 1 }, /noSuchKey/],
    [{ locations: [] }, /locations/],
    [{ locations: ['a', 'a'] }, /locations/],
    [{ locations: ['Not A Place'] }, /locations/],
    [{ group: 'some' }, /group must be one of full, machine/],
    [{ cascade: true }, /cascade/],
    [{ pageSize: 0 }, /pageSize/],
    [{ pageSize: 1.5 }, /pageSize/],
    [{ visibilitySeconds: -1 }, /visibilitySeconds/],
    [{ deleteSeconds: Number.NaN }, /deleteSeconds/],
    [{ createDeadlineSeconds: 0 }, /createDeadlineSeconds/],
    [{ terminatedSeconds: '5' }, /terminatedSeconds/],
    [{ atDeadline: 'explode' }, /atDeadline/],
    [{ path: '' }, /path/],
    [[], /mapping/],
  ])('%j is refused, and names the key', (config, message) => {
    expect(() => account.provider.parseConfig(config)).toThrow(ConfigError)
    expect(() => account.provider.parseConfig(config)).toThrow(message)
  })

  it('takes null as missing, and a relative path as one in the data folder', () => {
    const parseConfig = (config: unknown) => account.provider.parseConfig(config)
    expect(parseConfig({ pageSize: null, locations: null, path: null })).toEqual(parseConfig({}))
    expect(parseConfig({ path: 'other.db' })).toMatchObject({ path: 'other.db' })
    expect(parseConfig({})).toMatchObject({ path: 'simulated.db', locations: ['sim-a', 'sim-b'], visibilitySeconds: 0, deleteSeconds: 0 })
  })

  it('what is kept of a path goes along with a data folder that is moved or copied', async () => {
    const kept = account.provider.parseConfig({ path: 'other.db' })
    const moved = createSimulatedProvider({ dataFolder: join(account.folder, 'moved') })
    mkdirSync(join(account.folder, 'moved'))
    expect(await moved.scope(kept, context())).toMatchObject({
      description: expect.stringContaining(join(account.folder, 'moved', 'other.db')),
    })
    // The twin: one that was given whole stays where it is.
    const whole = account.provider.parseConfig({ path: join(account.folder, 'other.db') })
    expect(await moved.scope(whole, context())).toMatchObject({
      description: expect.stringContaining(`(${join(account.folder, 'other.db')})`),
    })
  })

  it('a backend with locations of its own makes what is meant for the first one in its own first one, and refuses what it has not', async () => {
    const config = { locations: ['north', 'south'], group: 'machine' }
    const ask = (location: string) => account.provider.create(createRequest(account.provider, config, { location }), context())
    expect(await ask('sim-a')).toMatchObject({ kind: 'created', resource: { location: 'north' } })
    expect(await ask('south')).toMatchObject({ kind: 'created', resource: { location: 'south' } })
    expect(await ask('moon')).toMatchObject({ kind: 'rejected', code: 'location_unknown' })
  })

  it('tells the engine the times of the slowest backend that it has met', () => {
    expect([account.provider.visibilitySeconds, account.provider.createDeadlineSeconds]).toEqual([0, 60])
    account.provider.parseConfig({ visibilitySeconds: 20, createDeadlineSeconds: 5 })
    expect([account.provider.visibilitySeconds, account.provider.createDeadlineSeconds]).toEqual([20, 5])
    account.provider.parseConfig({})
    expect([account.provider.visibilitySeconds, account.provider.createDeadlineSeconds]).toEqual([20, 60])
  })
})

describe('a simulated machine', () => {
  it('can not be entered, and says why', async () => {
    const { resource } = await account.make()
    expect(account.provider.access(resource, account.config)).toEqual({ kind: 'none', why: expect.stringContaining('nothing runs on it') })
  })

  it('is reported by doctor with the faults that strike it, and how to clear them', async () => {
    expect(await account.provider.doctor(account.config, context())).toMatchObject([{ level: 'ok', remedy: null }])
    account.fault('list', 'denied')
    expect(await account.provider.doctor(account.config, context())).toMatchObject([
      { level: 'ok' },
      { level: 'warning', message: expect.stringContaining('list denied'), remedy: expect.stringContaining('fault clear') },
    ])
  })
})
