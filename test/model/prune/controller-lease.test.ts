import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leaseStep, leaseTtlMs, mayDelete, observe, patience, type Observation } from '../../../src/model/prune/controller-lease.ts'
import type { Registration } from '../../../src/model/prune/controller.ts'

interface World {
  version: number
  holder: string | null
  beat: number
  epoch: number
}
const registrationOf = (world: World): Registration => ({
  id: 'c1',
  version: world.version,
  epoch: world.epoch,
  holder: world.holder,
  beat: world.beat,
  body: { controllerId: 'prod', instanceUid: 'i', publicKey: 'k', clusterId: 'c', appSet: { fingerprint: 'f', source: 's' }, createdAt: 0 },
  appSet: { fingerprint: 'f', source: 's' },
  reclaims: [],
  writtenAt: '',
})

/** Three processes with one key and clocks of their own, which may run up to twice as fast as another's. @returns whether two ever might delete at once */
const twoAtOnce = (steps: readonly { who: number; ms: number; lost: boolean }[], lives: number): boolean => {
  const world: World = { version: 1, holder: null, beat: 0, epoch: 1 }
  const rates = [1, 2, 0.7]
  let now = 0
  const processes = rates.map((rate, index) => ({
    rate,
    nonce: `n${index}`,
    observed: null as Observation | null,
    renewed: null as number | null,
  }))
  for (const { who, ms, lost } of steps) {
    now += ms
    const self = processes[who]
    if (!self) continue
    const clock = (): number => now * self.rate
    self.observed = observe(self.observed, registrationOf(world), clock())
    const step = leaseStep(
      registrationOf(world),
      { nonce: self.nonce, recorded: null },
      self.observed,
      clock() * (patience / lives) - self.observed.sinceMs * (patience / lives - 1),
      leaseTtlMs,
    )
    if (step.kind === 'stand-by') self.renewed = null
    else {
      Object.assign(world, { version: world.version + 1, holder: self.nonce, beat: world.beat + 1, epoch: step.epoch })
      // Whose answer is lost does not know that it renewed.
      if (!lost) self.renewed = clock()
    }
    if (processes.filter((one) => mayDelete(one.renewed, now * one.rate, leaseTtlMs)).length > 1) return true
  }
  return false
}
const steps = fc.array(fc.record({ who: fc.nat({ max: 2 }), ms: fc.nat({ max: 400_000 }), lost: fc.boolean() }), { maxLength: 60 })

describe('the lease of a controller id', () => {
  it('never lets two processes delete at once, whatever their clocks (prune 7.3)', () => {
    fc.assert(
      fc.property(steps, (run) => {
        expect(twoAtOnce(run, patience)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  it('would, with less patience: the twin', () => {
    expect(() => {
      fc.assert(
        fc.property(steps, (run) => {
          expect(twoAtOnce(run, 0.2)).toBe(false)
        }),
        { numRuns: 2000 },
      )
    }).toThrow('Property failed')
  })

  it('begins its patience anew with every version that it sees, and with a config that was made anew', () => {
    const first = observe(null, { id: 'a', version: 1 }, 100)
    expect(observe(first, { id: 'a', version: 1 }, 900)).toBe(first)
    expect(observe(first, { id: 'a', version: 2 }, 900).sinceMs).toBe(900)
    expect(observe(first, { id: 'b', version: 1 }, 900).sinceMs).toBe(900)
  })

  it('is taken at once from a process of the same database, but not by a copy that knows less than the Swarm', () => {
    const registration = registrationOf({ version: 5, holder: 'before', beat: 9, epoch: 4 })
    const seen = observe(null, registration, 0)
    const ask = (beat: number) => leaseStep(registration, { nonce: 'me', recorded: { nonce: 'before', beat } }, seen, 0, leaseTtlMs)
    expect(ask(9)).toEqual({ kind: 'take', epoch: 5 })
    expect(ask(10)).toEqual({ kind: 'take', epoch: 5 })
    expect(ask(8)).toMatchObject({ kind: 'stand-by', holder: 'before' })
  })
})
