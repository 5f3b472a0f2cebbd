import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { oneMember, shapeOf, type ShapeMember, type Topology } from '../../src/model/topology.ts'

const whole: Topology = {
  order: ['machine', 'nic', 'ip', 'disk'],
  companions: ['nic', 'ip', 'disk'],
  edges: [
    ['nic', 'machine'],
    ['disk', 'machine'],
    ['ip', 'nic'],
  ],
}
const loose: Topology = { order: whole.order, companions: [] }

const member = (kind: string, attachedTo: string[] = [], more: Partial<ShapeMember> = {}): ShapeMember => ({
  kind,
  nativeId: `${kind}-1`,
  attachedTo,
  takesAlong: [],
  reportOnly: null,
  ...more,
})
const group = (): ShapeMember[] => [member('disk', ['machine-1']), member('ip', ['nic-1']), member('machine'), member('nic', ['machine-1'])]
const found = { entrance: 'found', gone: [] } as const
const ended = { entrance: 'ended', gone: [] } as const
const kinds = (members: readonly ShapeMember[]): string[] => members.map((one) => one.kind)
const change = (kind: string, more: Partial<ShapeMember>): ShapeMember[] =>
  group().map((one) => (one.kind === kind ? { ...one, ...more } : one))

describe('the shape that may be taken back', () => {
  it('is the exact group in the order of its provider, whatever order it is seen in (leases R64, R78)', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(group(), { minLength: 4 }), fc.constantFrom(found, ended), (members, question) => {
        const shape = shapeOf(whole, members, question)
        expect(shape.kind === 'exact' && kinds(shape.members)).toEqual(['machine', 'nic', 'ip', 'disk'])
      }),
    )
  })

  it('may have lost its owner, and nothing else (leases R64)', () => {
    const ownerless = change('nic', { attachedTo: [] }).filter((one) => one.kind !== 'machine')
    const rest = ownerless.map((one) => (one.kind === 'disk' ? { ...one, attachedTo: [] } : one))
    expect(shapeOf(whole, rest, found)).toMatchObject({ kind: 'exact' })
    for (const kind of whole.companions) {
      const members = group()
        .filter((one) => one.kind !== kind)
        .map((one) => ({ ...one, attachedTo: one.attachedTo.filter((id) => id !== `${kind}-1`) }))
      for (const question of [found, ended])
        expect(shapeOf(whole, members, question)).toMatchObject({ kind: 'incomplete', missing: [kind] })
      // The twin: what a removal's progress or a person explains is not missing.
      expect(shapeOf(whole, members, { entrance: 'found', gone: [{ kind, nativeId: `${kind}-1` }] })).toMatchObject({ kind: 'exact' })
    }
  })

  it('is refused with a data disk, a cascade out of the group, a foreign attachment or an odd edge (leases R66, case L5)', () => {
    const cases: [string, ShapeMember[], RegExp][] = [
      ['a data disk', [...group(), member('disk', ['machine-1'], { nativeId: 'disk-2' })], /a second disk/],
      ['a cascade', change('machine', { takesAlong: ['theirs'] }), /deletes theirs/],
      ['a foreign attachment', change('nic', { attachedTo: ['machine-1', 'their-machine'] }), /their-machine, which is not of its group/],
      ['an odd edge', change('ip', { attachedTo: ['machine-1'] }), /as no group of this provider is/],
      ['an unknown kind', [...group(), member('database')], /of a kind that no group has/],
    ]
    for (const [what, members, why] of cases)
      for (const question of [found, ended]) {
        const shape = shapeOf(whole, members, question)
        expect(shape.kind, what).toBe('refused')
        expect(shape.kind === 'refused' && shape.why, what).toMatch(why)
      }
  })

  it("the provider's word that it is report-only stops a sweep, and not what its holder gave up", () => {
    const members = change('disk', { reportOnly: 'it is deleted with machine machine-1 (cascade option)' })
    expect(shapeOf(whole, members, found)).toMatchObject({ kind: 'refused' })
    expect(shapeOf(whole, members, ended)).toMatchObject({ kind: 'exact' })
  })

  it('what stands on each other is blocked, with the names of exactly those in the ring (case L1)', () => {
    const disks = (...edges: [number, number][]): ShapeMember[] =>
      [0, 1, 2, 3].map((i) =>
        member(
          'disk',
          edges.filter(([from]) => from === i).map(([, to]) => `disk-${to}`),
          { nativeId: `disk-${i}` },
        ),
      )
    // 1 and 2 stand on each other, 0 on the ring, 3 on nothing.
    const shape = shapeOf(loose, disks([1, 2], [2, 1], [0, 1]), ended)
    expect(shape).toMatchObject({ kind: 'blocked', by: ['disk disk-1', 'disk disk-2'] })
    // The twin: a chain has an end.
    expect(shapeOf(loose, disks([1, 2], [2, 3], [0, 1]), ended)).toMatchObject({ kind: 'exact' })
  })

  it('what stands on something goes after it, in any graph without a ring', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { maxLength: 12 }),
        fc.array(fc.constantFrom(...whole.order), { minLength: 8, maxLength: 8 }),
        (edges, of) => {
          const members = of.map((kind, i) =>
            member(
              kind,
              // Only from a higher number to a lower one: no ring.
              edges.filter(([from, to]) => from === i && to < from).map(([, to]) => `m-${to}`),
              { nativeId: `m-${i}` },
            ),
          )
          const shape = shapeOf(loose, members, ended)
          if (shape.kind !== 'exact') throw new Error(shape.why)
          const at = new Map(shape.members.map((one, i) => [one.nativeId, i]))
          expect(at.size).toBe(members.length)
          for (const one of members)
            for (const target of one.attachedTo) expect(at.get(target) as number).toBeLessThan(at.get(one.nativeId) as number)
        },
      ),
    )
  })

  it('of a provider that removes a whole group in one call is its one member', () => {
    expect(shapeOf(oneMember('box'), [member('box')], found)).toMatchObject({ kind: 'exact' })
    expect(shapeOf(oneMember('box'), [member('box'), member('disk')], found)).toMatchObject({ kind: 'refused' })
  })
})
