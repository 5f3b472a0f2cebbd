import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  judgeGroup,
  memberChange,
  removalFingerprintText,
  type BoundMember,
  type GroupFacts,
  type MemberRead,
} from '../../src/model/group-removal.ts'
import { mergeProgress } from '../../src/model/progress.ts'
import { longRemoval } from '../simulation/soak/scale.ts'

const ids = ['m', 'n', 'i', 'd'] as const
const kindOf = { m: 'machine', n: 'nic', i: 'ip', d: 'disk' } as const
const edges: Record<string, string[]> = { m: [], n: ['m'], i: ['n'], d: ['m'] }
const bound = (id: (typeof ids)[number]): BoundMember => ({
  scope: 's',
  location: 'l',
  kind: kindOf[id],
  nativeId: id,
  immutableId: `${id}#1`,
  labelsHash: 'h',
  attachedTo: edges[id] ?? [],
  takesAlong: [],
})
const members = ids.map(bound)
const there = (id: string): MemberRead => ({ kind: 'present', labelsHash: 'h', attachedTo: edges[id] ?? [], takesAlong: [] })
const absent: MemberRead = { kind: 'absent', proof: 'not found' }

const facts = (given: Partial<GroupFacts> & { gone?: string[] } = {}): GroupFacts => ({
  members,
  progress: [],
  answered: new Set(),
  acknowledged: new Map(),
  reads: new Map(ids.map((id) => [`${id}#1`, given.gone?.includes(id) ? absent : there(id)])),
  ...given,
})

describe('the progress of a removal (leases R81)', () => {
  const list = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 6 })
  it('is merged into the longer of two of which one begins with the other, and never gets shorter', () => {
    fc.assert(
      fc.property(list, fc.nat(6), (whole, cut) => {
        const prefix = whole.slice(0, cut)
        for (const [stored, mine] of [
          [whole, prefix],
          [prefix, whole],
        ] as const) {
          const merged = mergeProgress(stored, mine)
          expect(merged).toEqual({ kind: 'merged', progress: whole })
        }
      }),
    )
  })
  it('of two that diverge is an error, whichever is longer', () => {
    fc.assert(
      fc.property(list, list, (stored, mine) => {
        const shorter = Math.min(stored.length, mine.length)
        const same = JSON.stringify(stored.slice(0, shorter)) === JSON.stringify(mine.slice(0, shorter))
        const merged = mergeProgress(stored, mine)
        expect(merged.kind).toBe(same ? 'merged' : 'diverged')
        if (merged.kind === 'merged') expect(merged.progress.length).toBe(Math.max(stored.length, mine.length))
      }),
    )
  })
})

describe('one step of a removal of several members', () => {
  it('is the first survivor in order, when every survivor is as it was bound (leases R78)', () => {
    expect(judgeGroup(facts())).toMatchObject({ kind: 'next', member: { nativeId: 'm' } })
    expect(judgeGroup(facts({ progress: ['m#1', 'n#1'] }))).toMatchObject({ kind: 'next', member: { nativeId: 'i' } })
    expect(judgeGroup(facts({ progress: members.map((one) => one.immutableId) }))).toEqual({ kind: 'done' })
  })

  it('a missing member is explained by a recorded answer or a person, and by nothing else (leases R80, R91)', () => {
    expect(judgeGroup(facts({ gone: ['n'] }))).toMatchObject({ kind: 'unexplained', members: [{ nativeId: 'n' }] })
    expect(judgeGroup(facts({ gone: ['n'], answered: new Set(['m#1']) }))).toMatchObject({ kind: 'unexplained' })
    expect(judgeGroup(facts({ gone: ['n'], answered: new Set(['n#1']) }))).toMatchObject({ kind: 'append', proof: 'not found' })
    expect(judgeGroup(facts({ gone: ['n'], acknowledged: new Map([['n#1', 'ann: moved it']]) }))).toMatchObject({
      kind: 'append',
      proof: 'not found; its absence was acknowledged by ann: moved it',
    })
    // Of one member alone the exact not-found is the proof.
    expect(judgeGroup({ ...facts({ gone: ['m'] }), members: [bound('m')] })).toMatchObject({ kind: 'append', member: { nativeId: 'm' } })
  })

  it('what goes with a member that is gone is explained by it, and not before', () => {
    const cascading = members.map((one) => (one.nativeId === 'm' ? { ...one, takesAlong: ['d'] } : one))
    expect(judgeGroup(facts({ members: cascading, gone: ['d'] }))).toMatchObject({ kind: 'unexplained' })
    expect(judgeGroup(facts({ members: cascading, gone: ['d'], progress: ['m#1'] }))).toMatchObject({
      kind: 'append',
      proof: 'not found; it went with machine m',
    })
  })

  it('what goes with a member is explained by the recorded answer for that one, once it is on its way out; by no intent, and by nothing that stands (leases R80)', () => {
    const cascading = members.map((one) => (one.nativeId === 'm' ? { ...one, takesAlong: ['n', 'd'] } : one))
    const answered = new Set(['m#1'])
    const reads = (m: MemberRead) => new Map(facts({ gone: ['n'] }).reads).set('m#1', m)
    const going: MemberRead = { kind: 'present', attachedTo: [], takesAlong: [], going: true }
    const judged = (given: Partial<GroupFacts>) => judgeGroup(facts({ members: cascading, ...given }))
    expect(judged({ reads: reads(going), answered })).toMatchObject({ kind: 'append', proof: 'not found; it went with machine m' })
    expect(judged({ reads: reads(absent), answered })).toMatchObject({ kind: 'append', member: { nativeId: 'm' } })
    expect(judged({ reads: reads(going) })).toMatchObject({ kind: 'unexplained', members: [{ nativeId: 'n' }] })
    expect(judged({ reads: reads(there('m')), answered })).toMatchObject({ kind: 'unexplained' })
    // Accepted just now, and a read that lags: it is looked at again, and nothing else is touched meanwhile.
    expect(judged({ reads: reads(there('m')), answered, underWay: 'm#1' })).toMatchObject({ kind: 'next', member: { nativeId: 'm' } })
    expect(judged({ reads: reads(there('m')), underWay: 'm#1' })).toMatchObject({ kind: 'unexplained' })
  })

  it("a person's word that something is gone lapses once it is read again, and explains nothing then (leases R91)", () => {
    const acknowledged = new Map([['n#1', 'ann: moved it']])
    expect(judgeGroup(facts({ acknowledged }))).toMatchObject({ kind: 'lapsed', members: [{ nativeId: 'n' }] })
    expect(judgeGroup(facts({ acknowledged, gone: ['n'] }))).toMatchObject({ kind: 'append' })
    const reads = new Map(facts().reads).set('n#1', { kind: 'unknown', error: 'HTTP 500' })
    expect(judgeGroup(facts({ acknowledged, reads }))).toMatchObject({ kind: 'failed' })
  })

  it('a stale reference is tolerated to what is in the progress only (leases R84)', () => {
    const stale = (progress: string[], now: string[]) =>
      memberChange(bound('i'), { kind: 'present', attachedTo: now }, { members, progress })
    expect(stale(['m#1', 'n#1'], ['n'])).toBeNull()
    expect(stale(['m#1', 'n#1'], [])).toBeNull()
    expect(stale(['m#1'], [])).toMatch(/no longer attached to n/)
    expect(stale(['m#1', 'n#1'], ['x'])).toMatch(/now attached to x/)
  })

  it('labels that changed on any survivor stop it, not only those of the next (leases R70, R78)', () => {
    const reads = new Map(facts().reads).set('d#1', { kind: 'present', labelsHash: 'other' })
    expect(judgeGroup(facts({ reads }))).toMatchObject({ kind: 'changed', member: { nativeId: 'd' } })
  })

  it('never goes on to a member while one is unread, unexplained, contradicted or changed, in any world', () => {
    const read = fc.constantFrom<MemberRead>(
      absent,
      { kind: 'unknown', error: 'HTTP 500' },
      { kind: 'contradiction', why: 'another id' },
      { kind: 'present', labelsHash: 'other' },
      { kind: 'present', labelsHash: 'h' },
    )
    fc.assert(
      fc.property(fc.tuple(read, read, read, read), fc.subarray([...ids]), fc.subarray([...ids]), (answers, inProgress, answered) => {
        const reads = new Map(ids.map((id, i) => [`${id}#1`, answers[i] as MemberRead]))
        const given = facts({ reads, progress: inProgress.map((id) => `${id}#1`), answered: new Set(answered.map((id) => `${id}#1`)) })
        const judged = judgeGroup(given)
        const survivors = members.filter((one) => !given.progress.includes(one.immutableId))
        switch (judged.kind) {
          case 'next':
            expect(judged.member).toBe(survivors[0])
            for (const one of survivors) expect(reads.get(one.immutableId)).toEqual({ kind: 'present', labelsHash: 'h' })
            break
          case 'append':
            expect(reads.get(judged.member.immutableId)?.kind).toBe('absent')
            expect(given.answered.has(judged.member.immutableId)).toBe(true)
            expect(given.progress).not.toContain(judged.member.immutableId)
            break
          case 'done':
            expect(survivors).toEqual([])
            break
          case 'changed':
          case 'failed':
          case 'lapsed':
          case 'unexplained':
            expect(survivors.length).toBeGreaterThan(0)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('the fingerprint that a person confirms (leases R91)', () => {
  const removal = { id: 'rm_1', version: 2, identity: '[]', progress: '["a"]', missing: ['n#1'] }
  it('changes with the progress, the members and what is missing, and with nothing else', () => {
    const text = removalFingerprintText(removal)
    for (const other of [{ progress: '["a","b"]' }, { identity: '[1]' }, { missing: [] }, { id: 'rm_2' }, { version: 1 }])
      expect(removalFingerprintText({ ...removal, ...other })).not.toBe(text)
    expect(removalFingerprintText({ ...removal, missing: ['n#1'] })).toBe(text)
  })
})

describe('a removal of very many members', () => {
  it('shows how far it is after each of them, and whoever goes on begins where it is, not anew (case M6, leases R79)', () => {
    // Workers that die in the middle: an odd number of steps, two a member.
    const { stored, calls } = longRemoval(60, 7)
    expect(stored).toEqual(Array.from({ length: 60 }, (_, i) => i + 1))
    expect(calls.size).toBe(60)
    expect([...calls.values()].every((times) => times === 1)).toBe(true)
  })
})
