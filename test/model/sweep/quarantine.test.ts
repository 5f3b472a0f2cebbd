import { describe, expect, it } from 'vitest'
import {
  advance,
  eligibleAt,
  fingerprintText,
  inventoriesMissing,
  isEligible,
  type Quarantine,
  type Sighting,
} from '../../../src/model/quarantine.ts'
import { groupOf, hour, internal, machine, T } from './build.ts'

const grace = 900_000
const orphan = (at: number, fingerprint = 'f1', complete = true): Sighting => ({ kind: 'orphan', fingerprint, at, complete })
const after = (...sightings: Sighting[]): Quarantine | null => {
  let current: Quarantine | null = null
  for (const sighting of sightings) {
    const step = advance(current, sighting)
    current = step.kind === 'ended' ? null : step.quarantine
  }
  return current
}
const eligible = (quarantine: Quarantine | null, graceMs = grace): boolean =>
  quarantine !== null && isEligible(quarantine, graceMs, quarantine.lastSeenAt)

describe('the quarantine of an orphan (leases R58, R59)', () => {
  it('ends with the second complete inventory at first sighting + grace, not one millisecond earlier', () => {
    expect(eligible(after(orphan(T)))).toBe(false)
    expect(eligible(after(orphan(T), orphan(T + grace - 1)))).toBe(false)
    expect(eligible(after(orphan(T), orphan(T + grace)))).toBe(true)
    expect(eligible(after(orphan(T), orphan(T + 1000), orphan(T + grace)))).toBe(true)
    expect(eligibleAt(after(orphan(T)) as Quarantine, grace)).toBe(T + grace)
  })

  it('needs two complete inventories also with a grace of 0 (case H3)', () => {
    expect(eligible(after(orphan(T)), 0)).toBe(false)
    expect(eligible(after(orphan(T), orphan(T + 1)), 0)).toBe(true)
  })

  it('the time alone does not end it: the last sighting has to be late enough', () => {
    const early = after(orphan(T), orphan(T + 1000)) as Quarantine
    expect(isEligible(early, grace, T + 10 * grace)).toBe(false)
  })

  it('one inventory never counts twice', () => {
    expect(after(orphan(T), orphan(T))).toEqual(after(orphan(T)))
    expect(advance(after(orphan(T)), orphan(T - 1)).kind).toBe('uncounted')
  })

  it('an incomplete inventory neither counts nor resets, whatever it shows (case I4)', () => {
    const one = after(orphan(T))
    for (const sighting of [
      orphan(T + 1000, 'f1', false),
      orphan(T + 1000, 'f2', false),
      { kind: 'absent', at: T + 1000, complete: false },
      { kind: 'other', at: T + 1000, complete: false },
    ] as const)
      expect(advance(one, sighting)).toEqual({ kind: 'uncounted', quarantine: one })
    expect(after(orphan(T, 'f1', false))).toBeNull()
    // I4 as it is told: seen for 23 h, once not because its page failed, and still due at 24 h.
    const seen = [
      orphan(T),
      orphan(T + 23 * hour),
      { kind: 'absent', at: T + 23.5 * hour, complete: false } as const,
      orphan(T + 24 * hour),
    ]
    expect(eligible(after(...seen), 24 * hour)).toBe(true)
  })

  it('a change starts it afresh, and its reversal again (leases R58)', () => {
    const changed = advance(after(orphan(T), orphan(T + 1000)), orphan(T + 2000, 'f2'))
    expect(changed).toEqual({
      kind: 'changed',
      quarantine: { fingerprint: 'f2', firstSeenAt: T + 2000, lastSeenAt: T + 2000, timesSeen: 1 },
    })
    const reversed = after(orphan(T), orphan(T + 1000, 'f2'), orphan(T + 2000))
    expect(reversed).toEqual({ fingerprint: 'f1', firstSeenAt: T + 2000, lastSeenAt: T + 2000, timesSeen: 1 })
    expect(eligible(after(orphan(T), orphan(T + 1000, 'f2'), orphan(T + grace)))).toBe(false)
  })

  it.each(['absent', 'other'] as const)('a complete inventory in which it is %s ends it, and it starts afresh (leases R59)', (kind) => {
    expect(advance(after(orphan(T)), { kind, at: T + 1000, complete: true })).toEqual({ kind: 'ended' })
    expect(after(orphan(T), { kind, at: T + 1000, complete: true }, orphan(T + grace))).toMatchObject({
      firstSeenAt: T + grace,
      timesSeen: 1,
    })
    expect(advance(null, { kind, at: T, complete: true }).kind).toBe('uncounted')
  })

  it('says how many complete inventories it still needs', () => {
    expect(inventoriesMissing(after(orphan(T)) as Quarantine, grace)).toBe(1)
    expect(inventoriesMissing(after(orphan(T)) as Quarantine, 0)).toBe(1)
    expect(inventoriesMissing(after(orphan(T), orphan(T + 1000)) as Quarantine, grace)).toBe(1)
    expect(inventoriesMissing(after(orphan(T), orphan(T + grace)) as Quarantine, grace)).toBe(0)
  })

  it('a sighting from the future makes nothing eligible now', () => {
    expect(isEligible(after(orphan(T), orphan(T + grace)) as Quarantine, grace, T + grace - 1)).toBe(false)
  })
})

describe('the fingerprint (leases R59, R67; leases case 16)', () => {
  const disk = internal('disk')
  const text = (...members: Parameters<typeof groupOf>) => fingerprintText('simulated', groupOf(...members))
  const base = text(machine(), disk)

  it('is the same for the same facts in another order', () => {
    expect(text(disk, machine())).toBe(base)
    expect(text(machine({ labels: { keep: 'false', leasehold: 'true' } }), disk)).toBe(base)
    expect(text(machine({ attachedTo: ['a', 'b'] }))).toBe(text(machine({ attachedTo: ['b', 'a'] })))
  })

  it('does not move with the provider’s state', () => {
    expect(text(machine({ providerState: 'stopped' }), disk)).toBe(base)
  })

  it.each([
    ['a member', [machine(), disk, internal('ip')]],
    ['the loss of a member', [machine()]],
    ['a label', [machine({ labels: { leasehold: 'true', keep: 'true' } }), disk]],
    ['unreadable labels', [machine({ labels: null }), disk]],
    ['a label of an internal', [machine(), internal('disk', { labels: {} })]],
    ['the name', [machine({ name: 'box-2' }), disk]],
    ['the immutable id', [machine({ resource: { immutableId: 'uid-9' } }), disk]],
    ['an edge', [machine(), internal('disk', { attachedTo: ['i-1', 'i-7'] })]],
    ['the time of its creation', [machine({ createdAt: T }), disk]],
    ['a shape that forbids its removal', [machine({ reportOnly: 'data disk' }), disk]],
    ['the token fixed at creation', [machine({ fixedAttemptToken: null }), disk]],
  ] as const)('changes with %s', (_, members) => {
    expect(text(...members)).not.toBe(base)
  })

  it.each([
    ['location', { location: 'sim-b' }],
    ['scope', { scope: 'simulated:two' }],
    ['kind', { kind: 'disk' }],
    ['native id', { nativeId: 'i-2' }],
  ])('changes with the %s', (_, resource) => {
    expect(text(machine({ resource }))).not.toBe(text(machine()))
  })

  it('differs by provider', () => {
    expect(fingerprintText('other', groupOf(machine(), disk))).not.toBe(base)
  })
})
