/** I5, I6 and I10 over generated worlds, each beside those who break it. */
import { describe, expect, it } from 'vitest'
import type { RefEvidence, SweepPolicy } from '../../../src/model/evidence.ts'
import { formGroups, type Group } from '../../../src/model/group.ts'
import { judge } from '../../../src/model/verdict.ts'
import type { Verdict } from '../../../src/model/verdict-case.ts'
import { clock } from '../../model/sweep/build.ts'
import { dies } from './dies.ts'
import { holdsFor, patience, tapeOf, worldsEach } from './tape.ts'
import { i10, i5, i6, real, type Decide } from './verdicts.ts'
import { tapeLength, worldOf } from './world.ts'

const withEvidence =
  (change: (evidence: RefEvidence) => RefEvidence): Decide =>
  (group, world) =>
    judge(group, change(world.evidence), world.inventory, clock, world.policy)
const withPolicy =
  (change: (policy: SweepPolicy) => SweepPolicy): Decide =>
  (group, world) =>
    judge(group, world.evidence, world.inventory, clock, change(world.policy))
const withMembers =
  (change: (group: Group) => Group): Decide =>
  (group, world) =>
    real(change(group), world)

describe('absence needs coverage (I5)', () => {
  it(`holds in ${worldsEach} worlds`, { timeout: patience }, () => holdsFor(tapeLength, i5, real, worldsEach))
  it('finds out who takes a failed page for an empty one', () =>
    dies<Decide>(tapeLength, i5, (group, world) => judge(group, world.evidence, world.blindInventory, clock, world.policy)))
})

describe('a deletion needs two proofs (I6)', () => {
  it(`holds in ${worldsEach} worlds`, { timeout: patience }, () => holdsFor(tapeLength, i6, real, worldsEach))
  it('finds out who takes a tag for a fact fixed at creation', () =>
    dies(
      tapeLength,
      i6,
      withMembers((group) => {
        const members = group.members.map((member) => ({ ...member, fixedAttemptToken: member.tags.attempt }))
        return { ...group, members, owner: group.owner && members[0]! }
      }),
    ))
  it('finds out who proves the first member only', () =>
    dies(
      tapeLength,
      i6,
      withMembers((group) => ({ ...group, members: group.members.slice(0, 1) })),
    ))
  it('finds out who does not prove the keyed tag', () =>
    dies(
      tapeLength,
      i6,
      withPolicy((policy) => ({ ...policy, own: { ...policy.own, judgeMac: () => ({ kind: 'none' }) } })),
    ))
  it('finds out who takes a keyed tag that is gone for one that never was', () =>
    dies(
      tapeLength,
      i6,
      withEvidence((evidence) => ({ ...evidence, attempts: evidence.attempts.map((attempt) => ({ ...attempt, macKey: null })) })),
    ))
  it('finds out who does not compare the tags', () =>
    dies(tapeLength, i6, (group, world) => {
      const verdict = real(group, world)
      return verdict.reason === 'contradiction.tags-disagree' ? ({ ...verdict, kind: 'orphan' } as unknown as Verdict) : verdict
    }))
})

describe('what is held outranks what is written on it (I10)', () => {
  it(`holds in ${worldsEach} worlds`, { timeout: patience }, () => holdsFor(tapeLength, i10, real, worldsEach))
  it('finds out who does not ask the lease', () =>
    dies(
      tapeLength,
      i10,
      withEvidence((evidence) => ({ ...evidence, lease: null })),
    ))
  it('finds out who does not ask for holds', () =>
    dies(
      tapeLength,
      i10,
      withPolicy((policy) => ({ ...policy, holds: [] })),
    ))
  it('finds out who reads unreadable labels as none', () =>
    dies(
      tapeLength,
      i10,
      withMembers((group) => {
        const members = group.members.map((member) => ({ ...member, labels: member.labels ?? {} }))
        return { ...group, members, owner: group.owner && members[0]! }
      }),
    ))
  it('finds out who reads the labels of one member only', () =>
    dies(
      tapeLength,
      i10,
      withMembers((group) => {
        const members = group.members.map((member, i) => (i === 0 ? member : { ...member, labels: {} }))
        return { ...group, members }
      }),
    ))
  it('finds out who takes what an active instance lost sight of', () =>
    dies<Decide>(tapeLength, i10, (group, world) => {
      const verdict = real(group, world)
      return verdict.reason === 'missing.owner' ? ({ ...verdict, kind: 'orphan' } as unknown as Verdict) : verdict
    }))
  it('finds out who takes another project’s', () =>
    dies(
      tapeLength,
      i10,
      withEvidence((evidence) => ({ ...evidence, ledger: evidence.ledger && { ...evidence.ledger, project: 'default' } })),
    ))
})

describe('the worlds themselves', () => {
  it('hold every kind of verdict that one group can get, and many orphans: nothing above is true for want of cases', () => {
    const seen = new Map<string, number>()
    const random = mulberry(7)
    for (let i = 0; i < 3000; i++) {
      const world = worldOf(tapeOf(Uint8Array.from({ length: tapeLength }, () => Math.floor(random() * 256))))
      for (const group of formGroups(world.listed, 'machine')) {
        const { kind } = real(group, world)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
      }
    }
    const expected = ['tracked', 'held', 'inFlight', 'settling', 'orphan', 'missing', 'foreign', 'contradiction', 'protected', 'unseen']
    expect([...seen.keys()].toSorted()).toEqual(expected.toSorted())
    expect(seen.get('orphan')).toBeGreaterThan(300)
  })
})

/** A small generator of numbers from 0 to 1, the same on every run. */
function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
