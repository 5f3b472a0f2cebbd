import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideFleet, decideReturned, isReady, type FleetFacts, type MemberFacts } from '../../src/model/fleet.ts'

const hour = 3_600_000
const now = 100 * hour
const fleet = (over: Partial<FleetFacts> = {}): FleetFacts => ({
  size: 2,
  ttlSeconds: 3600,
  changedAt: now - 10 * hour,
  paused: false,
  held: false,
  deleted: false,
  ...over,
})
let serial = 0
const member = (over: Partial<MemberFacts> = {}): MemberFacts => ({
  id: `in_${++serial}`,
  state: 'idle',
  taken: false,
  wiping: false,
  createdAt: now - 2 * hour,
  changedAt: now - 2 * hour,
  deadAt: now + 24 * hour,
  checkedAt: now - 60_000,
  served: 0,
  aside: false,
  ...over,
})
const taken = (over: Partial<MemberFacts> = {}): MemberFacts => member({ state: 'busy', taken: true, served: 1, ...over })
const youngEnd = (agoMs: number, over: Partial<MemberFacts> = {}): MemberFacts =>
  member({ state: 'terminated', createdAt: now - agoMs - 60_000, changedAt: now - agoMs, ...over })

describe('a fleet', () => {
  it('makes what is missing: what leases have does not count, what is under way or being wiped does', () => {
    expect(decideFleet(fleet(), [], now)).toMatchObject({ create: 2, remove: [], hold: null })
    expect(decideFleet(fleet(), [taken(), taken()], now).create).toBe(2)
    expect(decideFleet(fleet(), [member({ state: 'pending' }), taken({ wiping: true })], now).create).toBe(0)
    expect(decideFleet(fleet({ size: 50 }), [], now)).toMatchObject({ create: 20, lookMs: 0 })
  })

  it('counts nothing that is set aside, neither removes it for its age or number, nor makes more than one in the stead of each', () => {
    const aside = () => member({ aside: true, deadAt: now, changedAt: now - 20 * hour })
    expect(decideFleet(fleet(), [aside(), aside()], now)).toMatchObject({ create: 2, remove: [] })
    expect(decideFleet(fleet(), [taken({ wiping: true, aside: true })], now).create).toBe(2)
    expect(decideFleet(fleet(), [aside(), aside(), aside()], now).create).toBe(1)
    expect(decideFleet(fleet(), [aside(), aside(), aside(), aside()], now).create).toBe(0)
    expect(decideFleet(fleet({ size: 0 }), [aside()], now)).toMatchObject({ create: 0, remove: [] })
  })

  it('makes nothing while it is paused or held, and takes nothing back for its age then', () => {
    const old = member({ deadAt: now + 10 })
    for (const over of [{ paused: true }, { held: true }])
      expect(decideFleet(fleet(over), [old], now)).toMatchObject({ create: 0, remove: [] })
    expect(decideFleet(fleet(), [old], now)).toMatchObject({ create: 2, remove: [{ id: old.id, cause: 'fleet-old' }] })
  })

  it('calls nothing old by the clock of its last holder: the first look at what was given back moves that', () => {
    const back = member({ served: 1, changedAt: now - 10, checkedAt: now - 10, deadAt: now + 60_000 })
    expect(decideFleet(fleet({ size: 1 }), [back], now).remove).toEqual([])
    const looked = { ...back, checkedAt: now - 5 }
    expect(decideFleet(fleet({ size: 1 }), [looked], now).remove).toEqual([{ id: back.id, cause: 'fleet-old' }])
  })

  it('removes at once what a person asked away, the oldest first, and lets rest what came back by itself', () => {
    const [older, newer] = [member({ createdAt: now - 3 * hour }), member()]
    expect(decideFleet(fleet({ size: 1, changedAt: now }), [newer, older], now).remove).toEqual([{ id: older.id, cause: 'fleet-surplus' }])
    const back = member({ changedAt: now - 599_999, served: 1 })
    const enough = [member({ state: 'pending' }), member({ state: 'pending' })]
    expect(decideFleet(fleet(), [...enough, back], now).remove).toEqual([])
    expect(decideFleet(fleet(), [...enough, back], now + 1).remove).toEqual([{ id: back.id, cause: 'fleet-surplus' }])
  })

  it('drains when it is deleted: what nobody has goes, what is under way is settled, and it looks until nothing is left', () => {
    const [idle, pending] = [member(), member({ state: 'pending' })]
    expect(decideFleet(fleet({ deleted: true }), [idle, pending, taken()], now)).toMatchObject({
      create: 0,
      remove: [{ id: idle.id, cause: 'fleet-deleted' }],
      settle: [pending.id],
    })
    expect(decideFleet(fleet({ deleted: true }), [], now).lookMs).toBeNull()
  })

  it('holds at the third box in 30 min that ended young without having served anybody (case M2)', () => {
    const two = [youngEnd(1_000_000), youngEnd(500_000)]
    expect(decideFleet(fleet(), two, now)).toMatchObject({ create: 2, hold: null })
    expect(decideFleet(fleet(), [...two, youngEnd(0)], now)).toMatchObject({
      create: 0,
      hold: expect.stringContaining('3 of its boxes') as string,
    })
  })

  it('holds for no box that served, grew old, ended long ago, or was made before a person last had a word (case M2)', () => {
    const two = [youngEnd(1_000_000), youngEnd(500_000)]
    for (const other of [
      youngEnd(0, { served: 1 }),
      youngEnd(0, { createdAt: now - hour }),
      youngEnd(1_800_000),
      youngEnd(0, { createdAt: now - 11 * hour }),
    ])
      expect(decideFleet(fleet(), [...two, other], now).hold).toBeNull()
    expect(decideFleet(fleet({ changedAt: now }), [...two, youngEnd(0)], now).hold).toBeNull()
  })

  it('waits a minute after a box that ended young, two after the second', () => {
    expect(decideFleet(fleet(), [youngEnd(59_999)], now).create).toBe(0)
    expect(decideFleet(fleet(), [youngEnd(60_000)], now).create).toBe(2)
    expect(decideFleet(fleet(), [youngEnd(60_000), youngEnd(119_999)], now).create).toBe(0)
    expect(decideFleet(fleet(), [youngEnd(120_000), youngEnd(300_000)], now).create).toBe(2)
  })

  it('never removes what a lease has or what is being wiped, whatever its state and size (I10)', () => {
    const facts = fc.record({
      size: fc.nat(5),
      ttlSeconds: fc.constantFrom(60, 3600, 80_000),
      changedAt: fc.integer({ min: now - 20 * hour, max: now }),
      paused: fc.boolean(),
      held: fc.boolean(),
      deleted: fc.boolean(),
    })
    const members = fc.array(
      fc.record({
        id: fc.uuid(),
        state: fc.constantFrom('pending', 'provisioning', 'idle', 'busy', 'terminating', 'terminated'),
        taken: fc.boolean(),
        wiping: fc.boolean(),
        createdAt: fc.integer({ min: now - 20 * hour, max: now }),
        changedAt: fc.integer({ min: now - 20 * hour, max: now }),
        deadAt: fc.option(fc.integer({ min: now - hour, max: now + 24 * hour })),
        served: fc.nat(3),
      }),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(facts, members, (of, all) => {
        const decision = decideFleet(of, all as MemberFacts[], now)
        const byId = new Map(all.map((one) => [one.id, one]))
        for (const { id } of decision.remove) expect(byId.get(id)).toMatchObject({ state: 'idle', taken: false })
        if (of.deleted || of.paused || of.held) expect(decision.create).toBe(0)
        expect(decision.create).toBeLessThanOrEqual(of.size)
      }),
    )
  })
})

describe('a box', () => {
  it('is ready while it lives long enough for the lease and was seen alive within 10 min', () => {
    const box = { state: 'idle' as const, deadAt: now + hour, checkedAt: now - 599_999 }
    expect(isReady(box, 3600, now)).toBe(true)
    expect(isReady(box, 3601, now)).toBe(false)
    expect(isReady(box, 3600, now + 1)).toBe(false)
    expect(isReady({ ...box, state: 'busy' }, 3600, now)).toBe(false)
    expect(isReady({ ...box, deadAt: null }, 1, now)).toBe(false)
    expect(isReady({ ...box, checkedAt: null }, 1, now)).toBe(false)
  })

  it('goes back to its fleet only if that is there, its provider can wipe, and it would live long enough', () => {
    const living = { deleted: false, ttlSeconds: 3600 }
    const can = { wipes: true, rearms: true }
    expect(decideReturned(living, can, now, now)).toBe('wipe')
    expect(decideReturned(null, can, now, now)).toBe('remove')
    expect(decideReturned({ ...living, deleted: true }, can, now, now)).toBe('remove')
    expect(decideReturned(living, { wipes: false, rearms: true }, now, now)).toBe('remove')
    expect(decideReturned(living, { wipes: true, rearms: false }, now + hour - 1, now)).toBe('remove')
    expect(decideReturned(living, { wipes: true, rearms: false }, now + hour, now)).toBe('wipe')
  })
})
