import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { leaseOn, leaseWhen, makeEngine } from '../support/engine.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import { ann } from '../support/engine.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'
import { sweepsAs } from '../support/sweep-settings.ts'
import type { SweepMode } from '../../src/model/sweep-settings.ts'
import type { CreateRequest } from '../../src/providers/contract.ts'

eachStore('the ledger', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const world = async (mode: SweepMode) => {
    const store = await open()
    const provider = scriptedProvider()
    const asked: CreateRequest[] = []
    provider.onCreate = (request) => {
      asked.push(request)
      return undefined
    }
    const engine = await makeEngine(store, provider, { sweeps: sweepsAs({ mode }) })
    engines.push(engine)
    await engine.start()
    return { store, engine, asked, rows: () => store.read(({ db }) => db.selectFrom('ledger').selectAll().orderBy('issued_at').execute()) }
  }

  it.each(['off', 'report', 'delete'] as const)(
    'issues a ref, and gives it to the provider, in mode %s too (orphans R6, R12)',
    async (mode) => {
      const { engine, asked, rows } = await world(mode)
      const lease = await leaseOn(engine)
      expect((await rows()).map((row) => row.ref)).toEqual([lease.ref])
      expect(asked.map((request) => request.ref)).toEqual([lease.ref])
    },
  )

  it('keeps project, owner and what the owner belongs to, for instances and nothing else, when the owner is over and its row gone (orphans R2, R9, R11, R14, R104)', async () => {
    const { store, engine, rows } = await world('report')
    const lease = await leaseOn(engine)
    const [before] = await rows()
    const [instance] = await store.read(({ db }) => db.selectFrom('instances').selectAll().execute())
    expect(before).toMatchObject({
      ref: lease.ref,
      project: 'default',
      owner_kind: 'instance',
      owner_id: instance?.id,
      owner_name: instance?.name,
      owner_closed_at: null,
    })
    expect(JSON.parse(before?.parents ?? '{}')).toEqual({ lease: lease.id })
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    const [closed] = await rows()
    expect(closed).toEqual({ ...before, owner_closed_at: closed?.owner_closed_at })
    expect(closed?.owner_closed_at).not.toBeNull()
    await leaseOn(engine)
    expect((await rows()).map((row) => row.ref)).toContain(lease.ref)
  })
})
