/** Worlds for the property tests of the model. */
import fc from 'fast-check'
import type { LeaseFacts } from '../../src/model/lease.ts'
import { leaseStates } from '../../src/model/wire.ts'
import { capSeconds, expiresAt } from '../../src/model/clocks.ts'

export const t0 = Date.UTC(2026, 5, 1, 12)
/** ms within three days of `t0`. */
export const time = fc.integer({ min: t0, max: t0 + 3 * 86_400_000 })
export const seconds = fc.integer({ min: 1, max: capSeconds })
/** What a client may send where a number belongs: the good, the bad, and the ugly. */
export const anyNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(0, -0, -1, Number.NaN, Infinity, -Infinity, 0.5, null, undefined),
)

export const clocks = fc
  .record({ createdAt: time, sinceTouch: fc.integer({ min: 0, max: 86_400_000 }), ttlSeconds: seconds, idleSeconds: seconds })
  .map(({ sinceTouch, ...rest }) => ({ ...rest, lastTouchedAt: rest.createdAt + sinceTouch }))

/** A lease as the store may hold it: its end is what R13 says. */
export const leaseFacts: fc.Arbitrary<LeaseFacts> = fc
  .record({
    clocks,
    state: fc.constantFrom(...leaseStates),
    keep: fc.boolean(),
    releaseDeletes: fc.constantFrom(null, true, false),
    retainUntil: fc.option(time),
    idleWarnedFor: fc.option(time),
  })
  .map(({ clocks: own, ...rest }) => ({ ...own, ...rest, expiresAt: expiresAt(own) }))
