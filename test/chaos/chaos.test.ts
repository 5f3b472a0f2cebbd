/** One seed of the chaos suite; `npm run chaos` plays more of them. */
import { describe, expect, it } from 'vitest'
import { postgresPrograms } from '../support/services/postgres.ts'
import { serviceOr } from '../support/services/skip.ts'
import { findBefore, unpackBefore } from './before.ts'
import { play } from './play.ts'
import { fakeTimeLibrary } from './replica.ts'
import { describePlan, planOf, type Plan } from './schedule.ts'

const before = findBefore()
const timeout = 900_000

const holds = async (plan: Plan, again: string, leases: number): Promise<void> => {
  const played = await play(plan, { before, leases })
  const told = `${describePlan(plan)}\nlogs: ${played.logs}\nonce more: ${again}`
  expect(played.problems, told).toEqual([])
  expect(played.leases, told).toBeGreaterThanOrEqual(leases / 2)
}

serviceOr(
  'PostgreSQL',
  postgresPrograms() !== null,
  'apt-get install postgresql',
)('three coordinators on one PostgreSQL', () => {
  serviceOr(
    'libfaketime',
    fakeTimeLibrary() !== null,
    'apt-get install libfaketime',
  )('under load', () => {
    serviceOr(
      'the version before',
      before.kind === 'found',
      before.kind === 'missing' ? before.why : '',
    )('of two versions', () => {
      it(
        'end each lease exactly once and none early, leave nothing, and lose and repeat no event, while they are killed, stand still, are cut off, and have a wrong clock (cases H8, M11)',
        { timeout },
        () => holds(planOf(1, 50_000), 'npm run chaos -- --seed 1 --seconds 50', 30),
      )
    })
  })
})

describe.runIf(before.kind === 'found')('the version before', () => {
  it('is unpacked with its program, and taken away again', () => {
    if (before.kind !== 'found') return
    expect(before.commit).toMatch(/^[0-9a-f]{40}$/)
    const unpacked = unpackBefore(before)
    expect(unpacked.program).toMatch(/bin\/leasehold$/)
    unpacked.remove()
  })
})
