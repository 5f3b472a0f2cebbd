/** Listings of a cloud that lies. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Listed } from '../../../src/providers/simulated/cloud.ts'
import { type Page, readCell } from '../../../src/providers/simulated/list.ts'
import { context } from '../../conformance/request.ts'
import { listAll } from '../../conformance/listing.ts'
import { type Account, openAccount } from './support.ts'

let account: Account
beforeEach(() => {
  account = openAccount({ group: 'machine', pageSize: 2 })
})
afterEach(() => account.dispose())

const makeMany = async (count: number): Promise<string[]> => {
  const ids: string[] = []
  for (let made = 0; made < count; made += 1) ids.push((await account.make()).resource.nativeId)
  return ids
}
const machines = async () => {
  const { resources, coverage } = await account.list()
  const cell = coverage.find(({ location, kind }) => location === 'sim-a' && kind === 'machine')
  return { ids: resources.map((one) => one.resource.nativeId), state: cell?.state, pages: cell?.pages, coverage }
}

describe('a listing', () => {
  it('reads all pages (case J1, J2)', async () => {
    const ids = await makeMany(5)
    expect(await machines()).toMatchObject({ ids, state: { kind: 'complete' }, pages: 3 })
  })

  it('is partial from a page that fails on, keeps the pages before, and the other cells are complete (case I1, orphans 6)', async () => {
    const ids = await makeMany(5)
    account.fault('list', 'fail-page', { page: 2 })
    const seen = await machines()
    expect(seen).toMatchObject({ ids: ids.slice(0, 2), state: { kind: 'partial', why: expect.stringContaining('page 2') }, pages: 1 })
    expect(seen.coverage.filter(({ state }) => state.kind === 'complete')).toHaveLength(7)
  })

  it('may be asked for cheaply: one resource tells whether a kind may be listed, and an error tells nothing (orphans R102)', async () => {
    await makeMany(3)
    const may = (kind: string) => account.provider.mayList?.('sim-a', kind, account.config, context())
    expect(await may('machine')).toBe(true)
    account.fault('list', 'denied', { kind: 'machine' })
    expect([await may('machine'), await may('disk'), await may('volume')]).toEqual([false, true, false])
    account.cloud.clearFaults()
    expect(await may('machine')).toBe(true)
    account.fault('list', 'throttle', {})
    await expect(may('machine')).rejects.toThrow('too many requests')
  })

  it('goes on behind an empty page that asks for a next one', async () => {
    const ids = await makeMany(5)
    account.fault('list', 'empty-page')
    expect(await machines()).toMatchObject({ ids, state: { kind: 'complete' }, pages: 6 })
  })

  it('lists what a repeated page shows once', async () => {
    const ids = await makeMany(5)
    account.fault('list', 'repeat-page')
    expect(await machines()).toMatchObject({ ids, state: { kind: 'complete' }, pages: 6 })
  })

  it('is partial when its pages go round in a circle, and ends', async () => {
    const listed = (seq: number): Listed => ({ seq, neighbours: [], resource: {} as never })
    const circle: Record<string, Page> = {
      null: { listed: [listed(1)], next: 'a' },
      a: { listed: [listed(2)], next: 'b' },
      b: { listed: [listed(3)], next: 'a' },
    }
    const items = []
    for await (const item of readCell({ location: 'sim-a', kind: 'machine' }, async (token) => circle[String(token)] as Page))
      items.push(item)
    expect(items.flatMap((item) => ('listed' in item ? item.listed.map(({ seq }) => seq) : []))).toEqual([1, 2, 3])
    expect(items.at(-1)).toMatchObject({ coverage: { state: { kind: 'partial', why: expect.stringContaining('read before') } } })
  })

  it('is denied with the name of the permission where a kind may not be listed (orphans R102, case I7)', async () => {
    const ids = await makeMany(1)
    account.fault('list', 'denied', { kind: 'ip' })
    const { ids: seen, coverage } = await machines()
    expect(seen).toEqual(ids)
    expect(coverage.filter(({ state }) => state.kind === 'denied')).toEqual(
      ['sim-a', 'sim-b'].map((location) => ({
        location,
        kind: 'ip',
        state: { kind: 'denied', permission: 'simulated:list:ip' },
        pages: 0,
      })),
    )
  })

  it.each(['error-before', 'error-after', 'throttle', 'hang'] as const)(
    'is partial and not empty with the fault %s (case I1)',
    async (effect) => {
      await makeMany(3)
      account.fault('list', effect, { location: 'sim-a', kind: 'machine' })
      expect(await machines()).toMatchObject({ ids: [], state: { kind: 'partial', why: expect.stringMatching(/machine in sim-a/) } })
    },
  )

  it('is bounded where one kind never answers, and the other kinds settle (case I10)', async () => {
    await makeMany(1)
    account.fault('list', 'hang', { kind: 'disk' })
    const { coverage } = await machines()
    expect(coverage.filter(({ state }) => state.kind === 'partial').map(({ kind }) => kind)).toEqual(['disk', 'disk'])
    expect(account.clock.slept).toEqual([30_000, 30_000])
  })

  it('that lags does not show what is younger', async () => {
    const [old] = await makeMany(1)
    account.advance(60)
    const [young] = await makeMany(1)
    account.fault('list', 'lag', { lengthMs: 30_000 })
    expect((await machines()).ids).toEqual([old])
    account.advance(30)
    expect((await machines()).ids).toEqual([old, young])
  })

  it('shows a resource after the seconds that the backend says', async () => {
    const late = openAccount({ visibilitySeconds: 10 })
    const { resource } = await late.make()
    expect((await late.list()).resources).toEqual([])
    expect((await late.provider.read(resource, late.config, context())).kind).toBe('present')
    late.advance(10)
    expect((await late.list()).resources).toHaveLength(4)
    expect(late.provider.visibilitySeconds).toBe(10)
    late.dispose()
  })

  it('lists the locations that it is asked for and those of its backend (orphans U8)', async () => {
    account.cloud.launch([{ kind: 'machine', location: 'old-place', name: 'x', tags: { leasehold_ref: 'r00000000001' } }])
    expect((await account.list()).resources).toEqual([])
    const { resources, coverage } = await account.list(['old-place'])
    expect(resources).toHaveLength(1)
    expect(new Set(coverage.map(({ location }) => location))).toEqual(new Set(['old-place', 'sim-a', 'sim-b']))
  })

  it('survives deletions while it is read: what was not deleted is listed (case J4)', async () => {
    const ids = await makeMany(8)
    const seen: string[] = []
    for await (const item of account.provider.list?.(['sim-a'], account.config, context()) ?? []) {
      if (item.type !== 'page') continue
      seen.push(...item.resources.map((one) => one.resource.nativeId))
      account.cloud.end(ids[seen.length === 2 ? 0 : 7] as string)
    }
    expect(seen).toEqual(ids.slice(0, 7))
  })

  it('throws where the account is another program’s file, and does not look empty (orphans R22)', async () => {
    const { DatabaseSync } = await import('node:sqlite')
    const path = `${account.folder}/other.db`
    const other = new DatabaseSync(path)
    other.exec('create table theirs (a)')
    other.close()
    const config = { path }
    await expect(listAll(account.provider, config)).rejects.toThrow(/another program/)
    expect(await account.provider.find('r00000000001' as never, config, context())).toMatchObject({ kind: 'incomplete' })
    expect(await account.provider.scope(config, context())).toMatchObject({ kind: 'unknown' })
    expect((await account.provider.doctor(config, context()))[0]).toMatchObject({ level: 'error', remedy: expect.any(String) })
  })
})

describe('what stands on something', () => {
  const group = async (config: Record<string, unknown> = {}) => {
    const full = openAccount({ ...config })
    const { resource } = await full.make()
    return { full, resource, list: async () => (await full.list()).resources }
  }

  it('is listed with its attachments, and may be removed with its group', async () => {
    const { full, list } = await group()
    const seen = await list()
    const [machine, disk, nic, ip] = seen.map((one) => one.resource.nativeId)
    expect(seen.map((one) => one.attachedTo)).toEqual([[], [machine], [machine], [nic]])
    expect([machine, disk, nic, ip]).toEqual(['i-00000001', 'd-00000002', 'n-00000003', 'ip-00000004'])
    expect(seen.map((one) => one.reportOnly)).toEqual([null, null, null, null])
    full.dispose()
  })

  it('is report-only, with what it stands on, where a cascade would delete it (leases R66, case L5)', async () => {
    const { full, list } = await group({ cascade: 'delete' })
    expect((await list()).map((one) => one.reportOnly)).toEqual([
      'deleting it deletes disk d-00000002 (cascade option)',
      'it is deleted with machine i-00000001 (cascade option)',
      'it is deleted with machine i-00000001 (cascade option)',
      'it is deleted with nic n-00000003 (cascade option)',
    ])
    full.dispose()
  })

  it('is report-only where it is not of the same group (leases case 16)', async () => {
    const { full, resource, list } = await group()
    const [data] = full.cloud.launch([{ kind: 'disk', location: 'sim-a', name: 'data', tags: {} }]).resources
    full.cloud.attach({ member: data?.id ?? '', target: resource.nativeId, onEnd: 'keep' })
    const [machine, ...others] = await list()
    expect(machine?.reportOnly).toBe(`attached to it is disk ${data?.id}, which is not of its group`)
    expect(others.map((one) => one.reportOnly)).toEqual([null, null, null])
    full.dispose()
  })
})
