import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  judgeLookUp,
  mostAttempts,
  nextLookMs,
  nextStep,
  provedAbsent,
  type AttemptFacts,
  type Candidate,
  type Wanted,
} from '../../src/model/provision.ts'
import { t0 } from './arbitraries.ts'

const attempt = (over: Partial<AttemptFacts> = {}): AttemptFacts => ({
  id: 'at_1',
  number: 1,
  token: 'token-1',
  outcome: 'open',
  calledAt: null,
  deadlineAt: t0 + 60_000,
  hasIdentity: false,
  absentSince: null,
  absentCount: 0,
  ...over,
})
const replayable: Wanted = { kind: 'wanted', replayable: true }
const wanted: Wanted = { kind: 'wanted', replayable: false }
const ended: Wanted = { kind: 'ended', cause: 'released', keepsBox: false }

describe('what comes next for an instance that is being made (decisions 3)', () => {
  const open = attempt()
  const called = attempt({ calledAt: t0 })
  const bound = attempt({ outcome: 'bound', calledAt: t0, hasIdentity: true })
  const absent = attempt({ outcome: 'absent', calledAt: t0 })
  const abandoned = attempt({ outcome: 'abandoned', calledAt: t0 })
  it.each([
    ['nothing was tried', undefined, replayable, 'close-unmade'],
    ['nothing was tried', undefined, ended, 'close-unmade'],
    ['not called yet', open, replayable, 'call'],
    ['not called yet', open, wanted, 'call'],
    ['not called yet', open, ended, 'close-unmade'],
    ['called, no answer', called, replayable, 'look-up'],
    ['called, no answer', called, wanted, 'look-up'],
    ['called, no answer', called, ended, 'look-up'],
    ['bound', bound, replayable, 'poll'],
    ['bound', bound, wanted, 'poll'],
    ['bound', bound, ended, 'take-back'],
    ['absent', absent, replayable, 'next-attempt'],
    ['absent', absent, wanted, 'give-up'],
    ['absent', absent, ended, 'close-unmade'],
    ['abandoned', abandoned, wanted, 'give-up'],
    ['absent, the last allowed', attempt({ outcome: 'absent', number: mostAttempts }), replayable, 'give-up'],
  ] as const)('%s (%j), %j: %s', (_what, own, want, step) => {
    expect(nextStep(own, want)).toEqual({ kind: step })
  })

  it('an attempt that was called is never called again: only a look tells what became of it (case orphan 1)', () => {
    fc.assert(
      fc.property(fc.constantFrom(replayable, wanted, ended), fc.integer({ min: 1, max: 9 }), (want, number) => {
        expect(nextStep(attempt({ calledAt: t0, number }), want)).toEqual({ kind: 'look-up' })
      }),
    )
  })
})

describe('which of what carries our ref is this attempt’s (leases R9, orphans R103)', () => {
  const mine: Candidate = {
    tags: { ref: 'rabcdefghijk', installation: 'inst0001', attempt: 'token-1' },
    fixedAttemptToken: 'token-1',
    existence: 'exists',
  }
  const judge = (...found: Candidate[]) => judgeLookUp(found, 'token-1', 'rabcdefghijk', 'inst0001')
  const other: Candidate = { ...mine, tags: { ...mine.tags, attempt: 'token-2' }, fixedAttemptToken: 'token-2' }

  it('none of nothing, and none of what another attempt made', () => {
    expect(judge()).toEqual({ kind: 'none' })
    expect(judge(other)).toEqual({ kind: 'none' })
  })

  it('the one whose tags and fixed fact both name it, whatever stands beside it', () => {
    expect(judge(mine)).toEqual({ kind: 'one', candidate: mine, adoptable: true })
    expect(judge(other, mine, { ...other, fixedAttemptToken: null })).toEqual({ kind: 'one', candidate: mine, adoptable: true })
  })

  it('two that carry the same token are a contradiction, never a guess', () => {
    expect(judge(mine, { ...mine }).kind).toBe('contradiction')
    expect(judge(mine, { ...mine, fixedAttemptToken: null }).kind).toBe('contradiction')
  })

  it.each([null, 'token-2'])('a tag alone is no proof: with the fixed fact %s it is a contradiction (orphans R103)', (fixed) => {
    expect(judge({ ...mine, fixedAttemptToken: fixed }).kind).toBe('contradiction')
  })

  it.each(['ref', 'installation', 'attempt'] as const)('a living one whose %s tag names somebody else is a contradiction', (tag) => {
    for (const value of ['other', null]) expect(judge({ ...mine, tags: { ...mine.tags, [tag]: value } }).kind).toBe('contradiction')
  })

  it.each(['going', 'gone'] as const)(
    'one that is %s has no tags left: it is ours by the fixed fact, and can not be adopted',
    (existence) => {
      const going: Candidate = { ...mine, existence, tags: { ref: null, installation: null, attempt: null } }
      expect(judge(going)).toEqual({ kind: 'one', candidate: going, adoptable: false })
      expect(judge({ ...mine, existence })).toMatchObject({ kind: 'one', adoptable: false })
    },
  )

  it('the order in which a provider lists them changes nothing', () => {
    const candidate = fc.record({
      tags: fc.record({
        ref: fc.constantFrom('rabcdefghijk', 'other', null),
        installation: fc.constantFrom('inst0001', 'other', null),
        attempt: fc.constantFrom('token-1', 'token-2', null),
      }),
      fixedAttemptToken: fc.constantFrom('token-1', 'token-2', null),
      existence: fc.constantFrom('exists' as const, 'going' as const, 'gone' as const),
    })
    fc.assert(
      fc.property(fc.array(candidate, { maxLength: 5 }), (found) => {
        const verdict = judge(...found)
        expect(judge(...found.toReversed())).toEqual(verdict)
        if (verdict.kind === 'one') expect(verdict.candidate.fixedAttemptToken).toBe('token-1')
        if (verdict.kind === 'one' && verdict.adoptable) expect(verdict.candidate).toEqual(mine)
      }),
    )
  })
})

describe('when an attempt may be called absent (decisions, Defaults)', () => {
  const looked = { absentSince: t0, absentCount: 2, deadlineAt: t0 + 60_000 }
  const visibility = 10
  const settled = t0 + visibility * 6000

  it.each([
    ['never looked for', { ...looked, absentSince: null, absentCount: 0 }, true, settled, false],
    ['looked for once', { ...looked, absentCount: 1 }, true, settled, false],
    ['twice, 1 ms before the settle time ends', looked, true, settled - 1, false],
    ['twice, when it ends', looked, true, settled, true],
    ['its caller may still live, 1 ms before the deadline', { ...looked, deadlineAt: settled + 1000 }, false, settled + 999, false],
    ['its caller may still live, at the deadline', { ...looked, deadlineAt: settled + 1000 }, false, settled + 1000, true],
    ['its caller is dead, before the deadline', { ...looked, deadlineAt: settled + 1000 }, true, settled, true],
  ] as const)('%s', (_what, own, dead, now, absent) => {
    expect(provedAbsent(own, visibility, dead, now)).toBe(absent)
  })

  it('where everything is visible at once, two looks are enough, and one is not', () => {
    expect(provedAbsent(looked, 0, true, t0)).toBe(true)
    expect(provedAbsent({ ...looked, absentCount: 1 }, 0, true, t0 + 86_400_000)).toBe(false)
  })

  it.each([
    [0, 500],
    [1, 1000],
    [10, 10_000],
    [300, 300_000],
    [900, 300_000],
  ])('with a visibility of %d s it is looked for again after %d ms', (seconds, ms) => {
    expect(nextLookMs(seconds)).toBe(ms)
  })
})
