/** I8 over generated days, beside those who break it. */
import { describe, it } from 'vitest'
import { allowedPerSweep, defaultLimits } from '../../../src/model/limits.ts'
import { dies } from './dies.ts'
import { i8, limitsTape, right, type Decide } from './limits.ts'
import { holdsFor, patience, worldsEach } from './tape.ts'

describe('no sweep goes past its limits, in one run or over a day (I8)', () => {
  it(`holds in ${worldsEach} worlds`, { timeout: patience }, () => holdsFor(limitsTape, i8, right, worldsEach))
  it('finds out who forgets what was begun today', () =>
    dies<Decide>(limitsTape, i8, (eligible, approved, now, context) => right(eligible, approved, now, { ...context, begunInLastDay: 0 })))
  it('finds out who begins the part of a plan that fits', () =>
    dies<Decide>(limitsTape, i8, (eligible, approved, now, context) =>
      right(eligible.slice(0, allowedPerSweep(context.oursInScope, defaultLimits)), approved, now, context),
    ))
  it('finds out who takes any approval for this one', () =>
    dies<Decide>(limitsTape, i8, (eligible, approved, now, context) =>
      right(
        eligible,
        approved.map((plan) => ({ ...plan, pending: eligible })),
        now,
        context,
      ),
    ))
})
