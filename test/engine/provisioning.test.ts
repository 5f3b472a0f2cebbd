import { afterEach, expect, it } from 'vitest'
import { cancelCreate, createLease, releaseLease, settledLease } from '../../src/engine/leases/index.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { hex } from '../../src/lib/ids.ts'
import type { CreateRequest } from '../../src/providers/contract.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from '../support/engine.ts'
import { gate, scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { until } from '../support/until.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const requestKey = (): string => `cat_${hex(16)}`
const findings = (store: Store) => store.read(({ db }) => db.selectFrom('findings').selectAll().execute())

eachStore('provisioning', (_open, database) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  /** Another coordinator on the same database; the ones before go on, as a stalled process would. */
  const coordinatorOn = async (store: Store, provider: Scripted): Promise<Engine> => {
    const engine = await makeEngine(store, provider)
    engines.push(engine)
    await engine.start()
    return engine
  }
  const fresh = async (): Promise<{ first: Store; second: Store }> => {
    const db = await database()
    const first = await db.open()
    await setClock(first, t0)
    return { first, second: await db.open() }
  }

  /** A coordinator that never comes back from its call to create; `made` is what the provider did all the same. */
  const interrupted = async (input: Parameters<typeof createLease>[2], made: (request: CreateRequest, provider: Scripted) => void) => {
    const { first, second } = await fresh()
    const provider = scriptedProvider()
    const answer = gate()
    let request: CreateRequest | undefined
    provider.onCreate = async (asked) => {
      request = asked
      made(asked, provider)
      await answer.promise
      return undefined
    }
    const dead = await coordinatorOn(first, provider)
    const { lease } = await createLease(dead.context, ann, input)
    await until(() => request !== undefined, 'the provider is called')
    // The dead one's lock ends (30 s), and so does the time that its call may take (60 s).
    await advance(second, 61_000)
    provider.onCreate = undefined
    const engine = await coordinatorOn(second, provider)
    return { engine, provider, lease, answer, store: second }
  }

  it('a machine that was made before the crash is found by its ref and adopted, never made twice (case orphan 1, orphans R7, leases R8)', async () => {
    const { engine, provider, lease } = await interrupted({ createAttemptID: requestKey() }, (request, one) => void one.make(request))
    const adopted = await settledLease(engine.context, lease.id, 10_000)
    expect(adopted).toMatchObject({ state: 'active', ref: lease.ref, cloudID: `${lease.ref}-1` })
    expect(provider.count('create')).toBe(1)
    expect(provider.count('remove')).toBe(0)
    expect(provider.boxes.size).toBe(1)
  })

  it('one that nobody can learn of is taken back, without a second create and without residue (case leases 5, decisions 3)', async () => {
    const { engine, provider, lease } = await interrupted({}, (request, one) => void one.make(request))
    const gone = await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    expect(gone).toMatchObject({ state: 'failed', failureCode: 'create_interrupted', provisioningResourceMayExist: false })
    expect(provider.boxes.size).toBe(0)
    expect(provider.count('create')).toBe(1)
  })

  it('an attempt that made nothing is proved absent by two looks before a second one is made (leases R8, orphans R13)', async () => {
    const { engine, provider, lease, store } = await interrupted({ createAttemptID: requestKey() }, () => {})
    await until(async () => {
      await advance(store, 500)
      return provider.count('create') === 2
    }, 'the second attempt')
    const active = await settledLease(engine.context, lease.id, 10_000)
    expect(active).toMatchObject({ state: 'active', ref: lease.ref, cloudID: `${lease.ref}-2` })
    expect(provider.count('find')).toBeGreaterThanOrEqual(2)
    expect(provider.boxes.size).toBe(1)
  })

  it('what surfaces after its absence was concluded is taken back, and the newer box stays (leases R44, orphans R10)', async () => {
    const { engine, provider, lease, store, answer } = await interrupted({ createAttemptID: requestKey() }, () => {})
    await until(async () => {
      await advance(store, 500)
      return provider.count('create') === 2
    }, 'the second attempt')
    await settledLease(engine.context, lease.id, 10_000)
    answer.open()
    await until(async () => {
      await advance(store, 500)
      return provider.count('remove') === 1
    }, 'the late one is removed')
    await until(() => !provider.boxes.has(`${lease.ref}-1`), 'the late box is gone')
    expect(provider.boxes.has(`${lease.ref}-2`)).toBe(true)
    expect((await settledLease(engine.context, lease.id, 0)).state).toBe('active')
  })

  it('an answer that was lost is looked up, and what it made is adopted (leases R7)', async () => {
    const { first } = await fresh()
    const provider = scriptedProvider()
    provider.onCreate = (request) => {
      provider.make(request)
      return { kind: 'uncertain', message: 'connection reset', resource: null }
    }
    const engine = await coordinatorOn(first, provider)
    const { lease } = await createLease(engine.context, ann, { createAttemptID: requestKey() })
    const settling = await leaseWhen(engine, lease.id, (view) => view.provisioningResourceMayExist || view.state !== 'provisioning')
    expect(settling.ref).toBe(lease.ref)
    await advance(first, 1_000)
    expect(await settledLease(engine.context, lease.id, 10_000)).toMatchObject({ state: 'active', provisioningResourceMayExist: false })
    expect(provider.count('create')).toBe(1)
  })

  it('two resources with the token of one attempt: nothing is adopted, nothing removed, a person is told (leases R9)', async () => {
    const { provider, store, engine, lease } = await interrupted({ createAttemptID: requestKey() }, (request, one) => {
      const made = one.make(request)
      const copy = one.boxes.get(made.nativeId)
      if (copy) one.boxes.set('copy', { ...copy, resource: { ...copy.resource, nativeId: 'copy', immutableId: 'copy' } })
    })
    const found = await until(async () => (await findings(store))[0], 'a finding')
    expect(found).toMatchObject({ code: 'contradiction', state: 'open' })
    expect(provider.boxes.size).toBe(2)
    expect(provider.count('remove')).toBe(0)
    expect((await settledLease(engine.context, lease.id, 0)).state).toBe('provisioning')
  })

  it('tags alone, without a fact fixed at creation, are a contradiction (orphans R103)', async () => {
    const { provider, store } = await interrupted({ createAttemptID: requestKey() }, (request, one) => {
      const made = one.make(request)
      const box = one.boxes.get(made.nativeId)
      if (box) one.boxes.set(made.nativeId, { ...box, fixedAttemptToken: null })
    })
    expect(await until(async () => (await findings(store))[0], 'a finding')).toMatchObject({ code: 'contradiction' })
    expect(provider.count('remove')).toBe(0)
  })

  it('what carries the ref and can not be told is no absence: nothing is made a second time (leases R9, I5)', async () => {
    const { provider, store, engine, lease } = await interrupted({ createAttemptID: requestKey() }, (_request, one) => {
      one.onFind = () => ({
        kind: 'complete',
        found: [],
        contradictions: [{ nativeId: 'damaged', location: 'here', why: 'its record is garbage' }],
      })
    })
    await until(async () => (await findings(store)).some((row) => row.code === 'contradiction'), 'a finding')
    for (let i = 0; i < 10; i++) await advance(store, 500)
    expect(provider.count('create')).toBe(1)
    expect((await settledLease(engine.context, lease.id, 0)).state).toBe('provisioning')
  })

  it('a provider that refuses fails the lease, and the ref stays in the ledger, closed (orphans R6, R9, U4)', async () => {
    const { first } = await fresh()
    const provider = scriptedProvider()
    provider.onCreate = () => ({ kind: 'rejected', code: 'quota', message: 'no room' })
    const engine = await coordinatorOn(first, provider)
    const lease = await leaseOn(engine)
    expect(lease).toMatchObject({ state: 'failed', failureCode: 'quota', failureError: 'no room', cleanup: { state: 'gone' } })
    const ledger = await first.read(({ db }) => db.selectFrom('ledger').selectAll().execute())
    expect(ledger).toMatchObject([{ ref: lease.ref, owner_closed_at: t0 }])
  })

  it('when the reservation cannot be committed the provider is not called (orphans R8, leases R5)', async () => {
    const { first } = await fresh()
    const provider = scriptedProvider()
    const engine = await coordinatorOn(first, provider)
    const broken: Store = {
      ...first,
      dialect: first.dialect,
      description: '',
      now: () => first.now(),
      read: (body) => first.read(body),
      close: async () => {},
      write: (body) =>
        first.write(async (tx) => {
          await body(tx)
          throw new Error('disk full')
        }),
    }
    await expect(createLease({ ...engine.context, store: broken }, ann, {})).rejects.toThrow('disk full')
    const rows = await first.read(({ db }) => db.selectFrom('leases').select('id').execute())
    expect(rows).toEqual([])
    expect(provider.count('create')).toBe(0)
    // The twin: the same engine does create when the commit stands.
    expect((await leaseOn(engine)).state).toBe('active')
  })

  it('released before the provider was asked, it ends without a call (orphans R93)', async () => {
    const { first } = await fresh()
    const provider = scriptedProvider()
    const engine = await makeEngine(first, provider)
    engines.push(engine)
    const { lease } = await createLease(engine.context, ann, {})
    await releaseLease(engine.context, ann, lease.id, {})
    await engine.start()
    expect(await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')).toMatchObject({ state: 'released' })
    expect(provider.count('create')).toBe(0)
  })

  it('past its end before it had a box, it fails; what was made meanwhile is found and removed, and it expires (leases R3, R35)', async () => {
    const { first } = await fresh()
    const provider = scriptedProvider()
    const engine = await makeEngine(first, provider)
    engines.push(engine)
    const { lease } = await createLease(engine.context, ann, { ttlSeconds: 5 })
    await advance(first, 5_000)
    await engine.start()
    expect(await leaseWhen(engine, lease.id, (view) => view.state === 'failed')).toMatchObject({
      failureCode: 'lease_expired',
      cleanup: { state: 'gone' },
    })
    expect(provider.count('create')).toBe(0)

    const hold = gate()
    provider.onCreate = async () => {
      await hold.promise
      return undefined
    }
    const late = await createLease(engine.context, ann, { ttlSeconds: 5 })
    await until(() => provider.count('create') === 1, 'the call')
    await advance(first, 5_000)
    hold.open()
    expect(await leaseWhen(engine, late.lease.id, (view) => view.cleanup.state === 'gone')).toMatchObject({ state: 'expired' })
    expect(provider.boxes.size).toBe(0)
  })

  it('a worker that lost its lock changes no state, and its answer is kept on its own attempt (I3)', async () => {
    const { engine, provider, lease, answer, store } = await interrupted(
      { createAttemptID: requestKey() },
      (request, one) => void one.make(request),
    )
    await settledLease(engine.context, lease.id, 10_000)
    const before = await store.read(({ db }) => db.selectFrom('instances').select(['state', 'lock_fence', 'attempt_id']).execute())
    answer.open()
    await until(
      async () =>
        (await store.read(({ db }) => db.selectFrom('attempts').select('outcome').execute())).every((row) => row.outcome === 'bound'),
      'the attempt is bound',
    )
    expect(await store.read(({ db }) => db.selectFrom('instances').select(['state', 'lock_fence', 'attempt_id']).execute())).toEqual(before)
    expect(provider.boxes.size).toBe(1)
    expect(provider.count('remove')).toBe(0)
  })

  it('a cancelled create that was interrupted is taken back (leases R10)', async () => {
    const leaseID = `lh_${hex(6)}`
    const createAttemptID = requestKey()
    const { engine, provider } = await interrupted({ leaseID, createAttemptID }, (request, one) => void one.make(request))
    await cancelCreate(engine.context, ann, leaseID, createAttemptID)
    await leaseWhen(engine, leaseID, (view) => view.cleanup.state === 'gone')
    expect(provider.boxes.size).toBe(0)
    expect(provider.count('create')).toBe(1)
  })
})
