import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { inspect } from '../../src/engine/sweep/run.ts'
import { loadSweep } from '../../src/engine/sweep/load.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { enrol } from '../../src/store/cleanups.ts'
import { seedLeases } from '../support/seed.ts'
import { makeEngine } from '../support/engine.ts'
import { scriptedProvider, testScope } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'

const pages = 12
const pageSize = 50

eachStore('a listing of very many resources', (open) => {
  it('is asked for its next page only when the slow database is through with the one before, and ends (case M4)', async () => {
    const store = await open()
    const provider = scriptedProvider('process')
    const engine = await makeEngine(store, provider)
    const place = { owner: 'admin', provider: 'process', backend: 'local', scope: testScope }
    await seedLeases(store, { count: pages * pageSize, ...place, createdAgoMs: 7_200_000, endsInMs: 3_600_000 })
    await store.write((tx) => enrol(tx, 'default', 'local', tx.now))
    const attempts = await store.read(({ db }) => db.selectFrom('attempts').selectAll().orderBy('id').execute())
    const installation = engine.context.installation.installation_id
    const listed = attempts.map((row): ListedResource => ({
      resource: {
        scope: testScope,
        location: 'local',
        kind: 'box',
        nativeId: row.native_id ?? '',
        immutableId: row.immutable_id ?? '',
        facts: {},
      },
      tags: { ref: row.ref, installation, attempt: row.token, mac: null },
      fixedAttemptToken: row.token,
      providerState: 'running',
      existence: 'exists',
      name: row.ref,
      createdAt: null,
      labels: {},
      attachedTo: [],
      reportOnly: null,
    }))
    let reading = 0
    let longest = 0
    const slow: typeof store = {
      dialect: store.dialect,
      description: store.description,
      now: () => store.now(),
      write: (body) => store.write(body),
      close: () => store.close(),
      async read(body) {
        reading++
        await sleep(5)
        try {
          return await store.read(body)
        } finally {
          reading--
        }
      },
    }
    const underWay: number[] = []
    provider.locationsOf = () => ['local']
    provider.list = async function* () {
      for (let page = 0; page < pages; page++) {
        underWay.push(reading)
        const resources = listed.slice(page * pageSize, (page + 1) * pageSize)
        longest = Math.max(longest, resources.length)
        yield { type: 'page', location: 'local', kind: 'box', resources }
      }
      yield { type: 'coverage', coverage: { location: 'local', kind: 'box', state: { kind: 'complete' }, pages } }
    }
    const context = { ...engine.context, store: slow }
    const work = await loadSweep(context, 'default/local')
    if (!work) throw new Error('not enrolled')
    const inspection = await inspect(context, work, new AbortController().signal)
    expect(inspection).toMatchObject({ kind: 'inspected', seen: pages * pageSize })
    expect(underWay).toEqual(Array.from({ length: pages }, () => 0))
    expect(longest).toBe(pageSize)
    // What is plainly tracked is let go page by page: nothing of it is kept.
    expect(inspection.kind === 'inspected' && inspection.listing.kept).toEqual([])
  })
})
