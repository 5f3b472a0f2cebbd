import { afterEach, expect, test } from 'vitest'
import type { EventView } from '../../src/model/wire.ts'
import { eachStore } from '../support/stores.ts'
import { makeBench, type Bench } from './support.ts'

eachStore('the feed of events over HTTP', (open) => {
  let bench: Bench
  afterEach(() => bench.close())
  const read = async (query: string, token = bench.admin): Promise<{ events: EventView[]; next: number }> =>
    (await bench.call<{ events: EventView[]; next: number }>('GET', `/v1/events${query}`, undefined, { token })).body

  test('read in pages it is the same as at once, without a gap and without a repetition', async () => {
    bench = await makeBench(await open())
    await bench.lease()
    await bench.lease()
    const all = await read('')
    expect(all.events.length).toBeGreaterThan(5)
    expect(all.next).toBe(all.events.at(-1)?.seq)
    const paged: EventView[] = []
    for (let after = 0; ;) {
      const page = await read(`?after=${after}&limit=2`)
      if (page.events.length === 0) break
      paged.push(...page.events)
      after = page.next
    }
    expect(paged.map((event) => event.seq)).toEqual(all.events.map((event) => event.seq))
  })

  test('target finds the events of a lease by id and by name, also after its end (orphans R84)', async () => {
    bench = await makeBench(await open())
    const { lease } = await bench.lease({ slug: 'findable' })
    await bench.lease({ slug: 'another' })
    await bench.call('POST', `/v1/admin/leases/${lease.id}/delete`)
    for (const target of [lease.id, 'findable', lease.instanceID]) {
      const { events } = await read(`?target=${target}`)
      expect(events.length).toBeGreaterThan(2)
      expect(events.every((event) => event.targets.some((one) => [one.id, one.name].includes(target)))).toBe(true)
      expect(events.map((event) => event.code)).toContain('removal.gone')
    }
  })

  test('backwards it is the newest ones, in the order of time, page after page', async () => {
    bench = await makeBench(await open())
    const { lease } = await bench.lease({ slug: 'findable' })
    await bench.lease()
    const { events: all } = await read('')
    const last = await read('?before=newest&limit=2')
    expect(last.events).toEqual(all.slice(-2))
    expect(last.next).toBe(all.at(-1)?.seq)
    expect((await read(`?before=${last.events[0]?.seq}&limit=3`)).events).toEqual(all.slice(-5, -2))
    expect((await read('?before=1')).events).toEqual([])
    const own = (await read(`?target=${lease.id}`)).events
    expect((await read(`?target=${lease.id}&before=newest&limit=1`)).events).toEqual(own.slice(-1))
    for (const wrong of ['before=x', 'before=5&after=2']) expect((await bench.call('GET', `/v1/events?${wrong}`)).status, wrong).toBe(400)
  })

  test('a cursor moves on past events of others, so that nobody reads them over and over', async () => {
    bench = await makeBench(await open())
    await bench.lease()
    const { next: end } = await read('')
    const { events, next } = await read('?target=nobody')
    expect(events).toEqual([])
    expect(next).toBeGreaterThanOrEqual(end)
  })

  test('after=newest with waitSeconds answers with the first event that comes', async () => {
    bench = await makeBench(await open(), { start: false })
    const from = await read('?after=newest')
    expect(from.events).toEqual([])
    const waiting = read(`?after=${from.next}&waitSeconds=50`)
    await bench.call('POST', '/v1/projects', { name: 'fresh' })
    const { events } = await waiting
    expect(events.map((event) => event.code)).toEqual(['project.created'])
  })

  test('a waiting reader is not woken for good by events that are not for it, and is answered empty at the end of its time', async () => {
    bench = await makeBench(await open(), { start: false })
    const token = await bench.token('user', 'default')
    const { next } = await read('', token)
    const waiting = read(`?after=${next}&waitSeconds=1`, token)
    await bench.call('POST', '/v1/projects', { name: 'fresh' })
    const answer = await waiting
    expect(answer.events).toEqual([])
    expect(answer.next).toBeGreaterThan(next)
  })

  test('a reader of one project sees that project and nothing of others', async () => {
    bench = await makeBench(await open())
    await bench.lease({ project: 'other', slug: 'secretive' })
    const { lease } = await bench.lease({ slug: 'open' })
    const { events } = await read('', await bench.token('admin', 'default'))
    expect(new Set(events.map((event) => event.project))).toEqual(new Set(['default']))
    expect(events.some((event) => event.targets.some((target) => target.id === lease.id))).toBe(true)
    expect(JSON.stringify(events)).not.toContain('secretive')
    expect(JSON.stringify((await read('')).events)).toContain('secretive')
  })
})
