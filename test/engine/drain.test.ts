import { afterEach, expect, it } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { createHeartbeat, getLease } from '../../src/engine/leases/index.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, makeEngine } from '../support/engine.ts'
import { scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { eachStore, setClock } from '../support/stores.ts'

const t0 = Date.UTC(2026, 5, 1, 12)

eachStore('a coordinator that starts with many expired leases', (_open, database) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  const on = async (store: Store, provider: Scripted): Promise<Engine> => {
    const engine = await makeEngine(store, provider)
    engines.push(engine)
    await engine.start()
    return engine
  }

  it('drains two thousand of them in pages, and a heartbeat gets through at once (case G10)', { timeout: 60_000 }, async () => {
    const provider = scriptedProvider()
    const db = await database()
    const store = await db.open()
    await setClock(store, t0)
    const first = await on(store, provider)
    const model = await leaseOn(first)
    await first.stop()
    engines.splice(0)
    // As many again as it takes, each with its own box.
    const count = 2000
    const { attempt, instance, lease, issued } = await store.read(async ({ db: kysely }) => ({
      issued: await kysely.selectFrom('ledger').selectAll().executeTakeFirstOrThrow(),
      attempt: await kysely.selectFrom('attempts').selectAll().executeTakeFirstOrThrow(),
      instance: await kysely.selectFrom('instances').selectAll().executeTakeFirstOrThrow(),
      lease: await kysely.selectFrom('leases').selectAll().executeTakeFirstOrThrow(),
    }))
    const box = provider.boxes.get(model.cloudID as string) as NonNullable<ReturnType<typeof provider.boxes.get>>
    await store.write(async (tx) => {
      for (let start = 0; start < count; start += 200) {
        const part = Array.from({ length: 200 }, (_, i) => {
          const n = start + i
          const ref = `z${n.toString(36).padStart(11, '0')}` as typeof instance.ref
          const ids = {
            instance: `in_x${n}` as typeof instance.id,
            attempt: `at_x${n}` as typeof attempt.id,
            lease: `lh_${(0xf00000000000 + n).toString(16)}` as typeof lease.id,
          }
          const resource = { ...box.resource, nativeId: `${ref}-1`, immutableId: `${ref}#1` }
          provider.boxes.set(resource.nativeId, {
            ...box,
            resource,
            tags: { ...box.tags, ref, attempt: `token-${n}` },
            fixedAttemptToken: `token-${n}`,
          })
          return {
            instance: { ...instance, id: ids.instance, ref, lease_id: ids.lease, attempt_id: ids.attempt },
            attempt: {
              ...attempt,
              id: ids.attempt,
              ref,
              instance_id: ids.instance,
              token: `token-${n}`,
              native_id: resource.nativeId,
              immutable_id: resource.immutableId,
            },
            lease: {
              ...lease,
              id: ids.lease,
              slug: `old-${n}`,
              instance_id: ids.instance,
              ttl_seconds: 60,
              idle_seconds: 60,
              expires_at: t0 + 60_000,
              due_at: t0 + 60_000,
            },
          }
        })
        // A ref that nobody issued would stop everything (decisions 6).
        await tx.db
          .insertInto('ledger')
          .values(part.map((one) => ({ ...issued, ref: one.instance.ref, owner_id: one.instance.id })))
          .execute()
        await tx.db
          .insertInto('instances')
          .values(part.map((one) => one.instance))
          .execute()
        await tx.db
          .insertInto('attempts')
          .values(part.map((one) => one.attempt))
          .execute()
        await tx.db
          .insertInto('leases')
          .values(part.map((one) => one.lease))
          .execute()
      }
    })
    await setClock(store, t0 + 600_000)
    let inFlight = 0
    let most = 0
    provider.onRemove = async () => {
      inFlight++
      most = Math.max(most, inFlight)
      await new Promise((resolve) => setImmediate(resolve))
      inFlight--
      return undefined
    }
    const engine = await on(store, provider)
    const beat = createHeartbeat(engine.context)
    const proved = async (): Promise<number> =>
      Number(
        (
          await store.read(({ db: kysely }) =>
            kysely
              .selectFrom('removals')
              .select((s) => s.fn.countAll().as('n'))
              .where('state', '=', 'gone')
              .executeTakeFirstOrThrow(),
          )
        ).n,
      )
    let beats = 0
    let slowest = 0
    while ((await proved()) < count) {
      const before = performance.now()
      await beat(ann, model.id, {})
      slowest = Math.max(slowest, performance.now() - before)
      beats++
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(provider.boxes.size).toBe(1)
    expect(beats).toBeGreaterThan(3)
    expect(slowest).toBeLessThan(2_000)
    expect(most).toBeLessThanOrEqual(500)
    expect((await getLease(engine.context, ann, model.id)).state).toBe('active')
    expect(
      await store.read(({ db: kysely }) => kysely.selectFrom('leases').select('id').where('state', '=', 'expired').execute()),
    ).toHaveLength(count)
  })
})
