import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { createLease, putLease, releaseLease } from '../../src/engine/leases/index.ts'
import { hex } from '../../src/lib/ids.ts'
import { noCaps, type AdmissionCaps } from '../../src/model/admission.ts'
import { LeaseholdError } from '../../src/model/errors.ts'
import { ann, leaseOn, makeEngine } from '../support/engine.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'

const bob = { ...ann, name: 'bob' }

eachStore('caps on leases', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const begin = async (caps: Partial<AdmissionCaps>): Promise<Engine> => {
    const engine = await makeEngine(await open(), scriptedProvider())
    engine.context.caps = { ...noCaps, ...caps }
    engines.push(engine)
    await engine.start()
    return engine
  }
  const codeOf = async (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'created',
      (error: unknown) => (error instanceof LeaseholdError ? error.code : String(error)),
    )

  it('are for live leases of an owner, refuse one more with nothing reserved, and let it in when one has ended', async () => {
    const engine = await begin({ leasesPerOwner: 1 })
    const first = await leaseOn(engine)
    expect(await codeOf(createLease(engine.context, ann, {}))).toBe('cap_reached')
    const count = await engine.context.store.read(({ db }) =>
      db
        .selectFrom('ledger')
        .select(({ fn }) => fn.countAll().as('n'))
        .executeTakeFirstOrThrow(),
    )
    expect(Number(count.n)).toBe(1)
    // Another owner is not held up, and the released one makes room.
    expect(await codeOf(createLease(engine.context, bob, {}))).toBe('created')
    await releaseLease(engine.context, ann, first.id, {})
    expect(await codeOf(createLease(engine.context, ann, {}))).toBe('created')
  })

  it('answer a request again that was answered before, however full it is by now', async () => {
    const engine = await begin({ leasesPerProject: 1 })
    const createAttemptID = `cat_${hex(16)}`
    const made = await createLease(engine.context, ann, { createAttemptID })
    expect((await createLease(engine.context, ann, { createAttemptID })).lease.id).toBe(made.lease.id)
    expect(await codeOf(putLease(engine.context, ann, `lh_${hex(6)}`, {}))).toBe('cap_reached')
  })

  it('hold for many creates at the same moment', async () => {
    const engine = await begin({ leasesPerProject: 3 })
    const codes = await Promise.all(Array.from({ length: 12 }, () => codeOf(createLease(engine.context, ann, {}))))
    expect(codes.filter((code) => code === 'created')).toHaveLength(3)
    expect(new Set(codes)).toEqual(new Set(['created', 'cap_reached']))
  })
})
