/** Two who give one lease up at the same moment. */
import { expect, it } from 'vitest'
import { getLease, releaseLease } from '../../src/engine/leases/index.ts'
import { LeaseholdError } from '../../src/model/errors.ts'
import { ann, leaseOn, leaseWhen } from '../support/engine.ts'
import { startedEngines } from '../support/lease-suite.ts'
import { gate } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'

const code = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error: unknown) => (error instanceof LeaseholdError ? error.code : String(error)),
  )

eachStore('two releases of one lease', (open) => {
  const started = startedEngines(open)

  it('of two releases at once the second changes nothing: the same answer, or a typed conflict where it wants another thing (case G3)', async () => {
    const { engine, provider } = await started()
    const same = await leaseOn(engine)
    const differ = await leaseOn(engine)
    const hold = gate()
    provider.onRemove = async () => {
      await hold.promise
      return undefined
    }
    const both = await Promise.all([1, 2].map(() => releaseLease(engine.context, ann, same.id, { delete: true })))
    expect(both.map((view) => [view.state, view.cleanup.removalID])).toEqual(
      [1, 2].map(() => ['released', both[0]?.cleanup.removalID ?? 'a removal']),
    )
    const told = await Promise.all([
      code(releaseLease(engine.context, ann, differ.id, { delete: true })),
      code(releaseLease(engine.context, ann, differ.id, { delete: false })),
    ])
    // Whichever came first stands: kept and then taken back after all, or taken back and no longer to be kept.
    expect([
      ['no error', 'no error'],
      ['no error', 'cleanup_in_progress'],
    ]).toContainEqual(told)
    const of = async (id: string) =>
      engine.context.store.read(async ({ db }) => ({
        removals: await db
          .selectFrom('removals')
          .select('id')
          .where('lease_id', '=', id as never)
          .execute(),
        released: await db
          .selectFrom('events')
          .innerJoin('event_targets', 'event_targets.event_id', 'events.id')
          .select('events.id')
          .where('event_targets.id', '=', id)
          .where('events.code', '=', 'lease.released')
          .execute(),
      }))
    const first = await of(same.id)
    expect([first.removals.length, first.released.length]).toEqual([1, 1])
    expect((await of(differ.id)).removals).toHaveLength(1)
    // The one that comes late, with another wish, is refused and moves nothing.
    const before = await getLease(engine.context, ann, same.id)
    expect(await code(releaseLease(engine.context, ann, same.id, { delete: false }))).toBe('cleanup_in_progress')
    expect(await getLease(engine.context, ann, same.id)).toEqual(before)
    hold.open()
    for (const one of [same, differ]) await leaseWhen(engine, one.id, (view) => view.cleanup.state === 'gone')
    expect(provider.count('remove')).toBe(2)
  })
})
