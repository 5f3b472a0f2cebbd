import { describe, expect, it } from 'vitest'
import { isSettled, judge } from '../../../src/model/verdict.ts'
import { reasonOf, verdictReasons, type VerdictReason } from '../../../src/model/verdict-reasons.ts'
import { formGroups } from '../../../src/model/group.ts'
import {
  attempt,
  clock,
  ended,
  evidence,
  hour,
  instance,
  internal,
  inventory,
  ledger,
  location,
  machine,
  ownerGone,
  policy,
  T,
  token,
  unbound,
  verdictOn,
  type Situation,
} from './build.ts'

const reason = (situation: Situation): VerdictReason => verdictOn(situation).reason
/** The same machine as another resource. */
const double = (patch: Parameters<typeof machine>[0] = {}) =>
  machine({ ...patch, resource: { nativeId: 'i-2', immutableId: 'uid-2', ...patch.resource } })
const second = { fixedAttemptToken: 'token-2', tags: { attempt: 'token-2' } }
const failedAttempt = unbound({ id: 'at_2', number: 2, token: 'token-2' })
const live = { id: 'lh_000000000001', state: 'active', retained: false } as const
const retained = { id: 'lh_000000000001', state: 'released', retained: true } as const

describe('whose it is (orphans R48, R50)', () => {
  const bare = (tags: NonNullable<Parameters<typeof machine>[0]>['tags'] = {}) => machine({ fixedAttemptToken: null, tags })
  it.each<[string, Situation, VerdictReason]>([
    ['no ledger row: never touched (R50, orphan case 7)', { known: null, listed: [bare()] }, 'foreign.unknown-ref'],
    [
      'a ref that was looked up and not found',
      { known: evidence({ ledger: null, instance: null, attempts: [] }), listed: [bare()] },
      'foreign.unknown-ref',
    ],
    [
      'another installation’s, unknown here (case B1)',
      { known: null, listed: [bare({ installation: 'inst0002' })] },
      'foreign.other-installation',
    ],
    [
      'another installation’s on a ref of ours (case B3)',
      { listed: [double({ tags: { installation: 'inst0002' } })] },
      'foreign.other-installation',
    ],
    [
      'our recorded resource under another installation’s tag',
      { listed: [machine({ tags: { installation: 'inst0002' } })] },
      'contradiction.other-installation',
    ],
    [
      'another project of this installation (decisions 9)',
      { known: evidence({ ledger: ledger({ project: 'other' }) }) },
      'held.other-project',
    ],
    ['the same, ended long ago', { known: evidence({ ledger: ledger({ project: 'other' }), instance: ended() }) }, 'held.other-project'],
    [
      'no readable ref',
      { listed: [machine({ tags: { ref: null, installation: null, attempt: null }, labels: null })], known: null },
      'protected.labels-unreadable',
    ],
  ])('%s', (_, situation, expected) => {
    expect(reason(situation)).toBe(expected)
  })

  it.each(['x', ' r000000abcd1', 'R000000ABCD1', 'r000000abcd12', '1000000abcd1', ''])(
    'the malformed ref %j is ignored and reported (case B4)',
    (bad) => {
      const verdict = verdictOn({ listed: [machine({ tags: { ref: bad } })], known: null })
      expect(verdict).toMatchObject({ kind: 'foreign', reason: 'foreign.malformed-ref' })
      expect(reasonOf(verdict.reason).finding).toBe(true)
      expect(isSettled(verdict)).toBe(true)
    },
  )

  it('an unknown ref under our installation and a fact fixed at creation says that this database may be a copy (decisions 6)', () => {
    expect(reason({ known: null, listed: [machine()] })).toBe('contradiction.unknown-ref-of-ours')
    expect(reason({ known: null, listed: [machine({ fixedAttemptToken: null })] })).toBe('foreign.unknown-ref')
    expect(reason({ known: null, listed: [machine({ tags: { installation: null } })] })).toBe('foreign.unknown-ref')
  })
})

describe('what an active instance has (orphans R56-R58)', () => {
  it.each(['provisioning', 'idle', 'busy'] as const)('a %s instance’s resource is tracked (R56)', (state) => {
    expect(reason({ known: evidence({ instance: instance({ state }) }) })).toBe('tracked.bound')
  })

  it('is tracked with unreadable labels, on its way out, and just changed: nothing judges it away', () => {
    expect(reason({ listed: [machine({ labels: null })] })).toBe('tracked.bound')
    expect(reason({ listed: [machine({ existence: 'going' })] })).toBe('tracked.bound')
    expect(reason({ known: evidence({ instance: instance({ changedAt: T + 100 }) }) })).toBe('tracked.bound')
  })

  it.each([
    ['scope', { scope: 'simulated:two' }],
    ['location', { location: 'sim-b' }],
    ['immutable id', { immutableId: 'uid-2' }],
  ])('another %s is another resource, whatever its name (R57, U9, case B13)', (_, resource) => {
    const verdict = verdictOn({ listed: [machine({ resource })] })
    expect(verdict.kind).not.toBe('tracked')
  })

  it('a double of another attempt is an orphan, and the bound one tracked (R57, R60, case B15)', () => {
    const known = evidence({ attempts: [attempt(), failedAttempt] })
    expect(reason({ known, listed: [double(second)] })).toBe('orphan.not-the-bound-one')
    expect(reason({ known })).toBe('tracked.bound')
  })

  it('four creates under one ref, three of them answered 503: the bound one is kept and three are orphans (case B15)', () => {
    const tokens = ['token-1', 'token-2', 'token-3', 'token-4']
    const known = evidence({
      instance: instance({ boundAttemptId: 'at_4' }),
      attempts: tokens.map((one, i) =>
        i === 3
          ? attempt({ id: 'at_4', number: 4, token: one, nativeId: 'i-4', immutableId: 'uid-4' })
          : unbound({ id: `at_${i + 1}`, number: i + 1, token: one }),
      ),
    })
    const listed = tokens.map((one, i) =>
      machine({ fixedAttemptToken: one, tags: { attempt: one }, resource: { nativeId: `i-${i + 1}`, immutableId: `uid-${i + 1}` } }),
    )
    const verdicts = formGroups(listed, 'machine').map((group) => judge(group, known, inventory(), clock, policy).reason)
    expect(verdicts.toSorted()).toEqual([
      'orphan.not-the-bound-one',
      'orphan.not-the-bound-one',
      'orphan.not-the-bound-one',
      'tracked.bound',
    ])
  })

  it('found in this account while its owner lives in another one, it is an orphan of this one (R61, orphan case 2)', () => {
    const known = evidence({ attempts: [attempt({ scope: 'simulated:two' }), failedAttempt] })
    expect(reason({ known, listed: [double(second)] })).toBe('orphan.lives-elsewhere')
  })

  it('an active owner without provisioning data is a contradiction, and unsettled (R58, U5)', () => {
    for (const known of [
      evidence({ instance: instance({ boundAttemptId: null }) }),
      evidence({ attempts: [attempt({ immutableId: null })] }),
      evidence({ attempts: [] }),
    ]) {
      const verdict = verdictOn({ known })
      expect(verdict.reason).toBe('contradiction.no-provisioning-data')
      expect(isSettled(verdict)).toBe(false)
    }
  })

  it('a box retained by a release is held (leases R37)', () => {
    expect(reason({ known: evidence({ lease: retained }) })).toBe('held.retained')
  })

  it('a lease outranks an instance that says it has ended (I10)', () => {
    expect(reason({ known: evidence({ instance: ended(), lease: live }) })).toBe('held.live-lease')
    expect(reason({ known: evidence({ instance: ended(), lease: retained }) })).toBe('held.retained')
    expect(reason({ known: evidence({ instance: ended(), lease: { ...live, state: 'expired' } }) })).toBe('orphan.owner-ended')
  })

  it('a lease whose clock ran out, and whose removal keeps failing, contradicts nothing (leases R40, I10)', () => {
    const ending = instance({ state: 'terminating' })
    const removal = { id: 'rm_1', attemptId: 'at_1', open: true, bound: [] }
    const verdict = verdictOn({ known: evidence({ instance: ending, lease: live, removals: [removal] }) })
    expect(verdict.reason).toBe('inFlight.terminating')
    expect(reasonOf(verdict.reason).finding).toBe(false)
    // The twins: nothing takes it back, its removal is over, or was given up.
    for (const [patch, removals] of [
      [ending, []],
      [ending, [{ ...removal, open: false }]],
      [ending, [{ ...removal, attemptId: 'at_2' }]],
      [instance({ state: 'terminating', gaveUpAt: T - hour }), [removal]],
    ] as const)
      expect(reason({ known: evidence({ instance: patch, lease: live, removals }) })).toBe('held.live-lease')
  })

  it('what is attached to the bound machine is tracked with or without it in the listing', () => {
    expect(reason({ listed: [internal('disk')] })).toBe('tracked.attached')
    expect(reason({ listed: [machine(), internal('disk')] })).toBe('tracked.bound')
  })

  it('what was made with the bound machine and is left alone is never an orphan while its owner is active (R57, R66, I10)', () => {
    const alone = internal('disk', { attachedTo: [], fixedAttemptToken: token })
    const verdict = verdictOn({ listed: [alone] })
    expect(verdict.reason).toBe('missing.owner')
    expect(isSettled(verdict)).toBe(false)
    // Its negative twin: once the owner has ended, it is.
    expect(reason({ listed: [alone], known: evidence({ instance: ended() }) })).toBe('orphan.owner-ended')
  })

  it('what a failed attempt left without an owner resource is an orphan (R57, R60)', () => {
    const left = internal('disk', { attachedTo: [], ...second })
    expect(reason({ listed: [left], known: evidence({ attempts: [attempt(), failedAttempt] }) })).toBe('orphan.not-the-bound-one')
  })
})

describe('the copy of a live box', () => {
  it('with all tags copied is a contradiction, never an orphan (R103, leases R57)', () => {
    const verdict = verdictOn({ listed: [double({ fixedAttemptToken: null })] })
    expect(verdict).toMatchObject({ kind: 'contradiction', reason: 'contradiction.tags-only' })
    expect(isSettled(verdict)).toBe(true)
    expect(reasonOf(verdict.reason).finding).toBe(true)
  })

  it('under the token of an attempt that recorded another identity is one too', () => {
    expect(reason({ listed: [double()] })).toBe('contradiction.another-identity')
  })

  it('stays one after its original’s end', () => {
    expect(reason({ listed: [double({ fixedAttemptToken: null })], known: evidence({ instance: ended() }) })).toBe(
      'contradiction.tags-only',
    )
    expect(reason({ listed: [double({ fixedAttemptToken: null })], known: ownerGone() })).toBe('contradiction.tags-only')
  })

  it('a copied disk is one also when it hangs on nothing', () => {
    expect(reason({ listed: [internal('disk', { attachedTo: [] })] })).toBe('contradiction.tags-only')
  })
})

describe('owners that are gone, ended or given up (orphans R51, R55, R91)', () => {
  it.each<[string, Situation, VerdictReason]>([
    ['the row is gone, the ledger’s is not (R51, R9, R10, orphan case 3)', { known: ownerGone() }, 'orphan.owner-gone'],
    ['the row was deleted by hand, so its end is not recorded (U4)', { known: ownerGone({ ledger: ledger() }) }, 'orphan.owner-gone'],
    ['it is terminated (R55)', { known: evidence({ instance: ended() }) }, 'orphan.owner-ended'],
    [
      'its removal was given up (R91, R98)',
      { known: evidence({ instance: instance({ state: 'terminating', gaveUpAt: T - hour }) }) },
      'orphan.gave-up',
    ],
  ])('%s', (_, situation, expected) => {
    const verdict = verdictOn(situation)
    expect(verdict.reason).toBe(expected)
    expect(verdict).toMatchObject({ proofs: [{ immutableId: 'uid-1', attemptId: 'at_1', by: 'recorded-id' }] })
  })

  it('proves by the token fixed at creation where the id never reached us (leases R57)', () => {
    const known = ownerGone({ attempts: [unbound()] })
    expect(verdictOn({ known })).toMatchObject({ kind: 'orphan', proofs: [{ by: 'fixed-token', attemptId: 'at_1' }] })
  })

  it('names what it rests on: each fact with its source', () => {
    const facts = verdictOn({ known: ownerGone() }).facts
    expect(facts.map((one) => one.source)).toEqual(['listing', 'ledger', 'attempt'])
    expect(facts[1]?.fact).toContain('box-1')
    expect(facts[0]?.at).toBe(T)
  })
})

describe('what is under way (orphans R52-R54, R87)', () => {
  const pending = instance({ state: 'pending', boundAttemptId: null })
  const open = attempt({ outcome: 'open', openedAt: T - 40_000, deadlineAt: T + 20_000, kind: null, nativeId: null, immutableId: null })

  it('a pending owner’s resource is left alone, and the sweep unsettled (R52, case A2)', () => {
    const verdict = verdictOn({ known: evidence({ instance: pending, attempts: [attempt({ ...open, number: 2 })] }) })
    expect(verdict).toMatchObject({ reason: 'inFlight.pending', until: T - 40_000 + 120_000 })
    expect(isSettled(verdict)).toBe(false)
  })

  it.each([
    [119_999, 'inFlight.pending'],
    [120_000, 'inFlight.stuck'],
  ] as const)('%d ms after an attempt of 60 s was opened its owner is %s (R53)', (age, expected) => {
    const known = evidence({ instance: pending, attempts: [{ ...open, openedAt: clock.now - age, deadlineAt: clock.now - age + 60_000 }] })
    expect(reason({ known })).toBe(expected)
    expect(reasonOf('inFlight.stuck').level).toBe('error')
  })

  it('a pending owner without an open attempt is stuck after twice the time of one', () => {
    const known = (age: number) => evidence({ instance: { ...pending, changedAt: clock.now - age }, attempts: [unbound()] })
    expect(reason({ known: known(119_999) })).toBe('inFlight.pending')
    expect(reason({ known: known(120_000) })).toBe('inFlight.stuck')
  })

  it('a pending owner’s leftovers wait too: no deletes while pending (orphan case 1)', () => {
    const known = evidence({ instance: pending, attempts: [unbound(), { ...open, id: 'at_2', number: 2, token: 'token-2' }] })
    expect(reason({ known })).toBe('inFlight.pending')
  })

  it('a terminating owner’s resource is in flight unless its removal was given up (R54)', () => {
    expect(reason({ known: evidence({ instance: instance({ state: 'terminating' }) }) })).toBe('inFlight.terminating')
  })

  it('an open removal of this attempt, or of this very resource, is in flight; one of another attempt, or a closed one, is not', () => {
    const removal = { id: 'rm_1', attemptId: 'at_1', open: true, bound: [] }
    const known = (one: typeof removal | object) => evidence({ instance: ended(), removals: [{ ...removal, ...one }] })
    expect(reason({ known: known({}) })).toBe('inFlight.removal-open')
    const bound = [{ scope: policy.scope, location, kind: 'machine', immutableId: 'uid-1' }]
    expect(reason({ known: known({ attemptId: 'at_9', bound }) })).toBe('inFlight.removal-open')
    expect(reason({ known: known({ attemptId: 'at_9' }) })).toBe('orphan.owner-ended')
    expect(reason({ known: known({ open: false }) })).toBe('orphan.owner-ended')
  })

  it('an attempt that is still open may yet surface, until it is stuck, although its owner is gone (R40)', () => {
    const known = (age: number) => ownerGone({ attempts: [{ ...open, openedAt: clock.now - age, deadlineAt: clock.now - age + 60_000 }] })
    expect(reason({ known: known(119_999) })).toBe('inFlight.attempt-open')
    expect(reason({ known: known(120_000) })).toBe('orphan.owner-gone')
  })

  it('what the provider calls going is no candidate (U10, case E4)', () => {
    expect(reason({ listed: [machine({ existence: 'going' })], known: evidence({ instance: ended() }) })).toBe('inFlight.going')
  })
})

describe('the registry of reasons', () => {
  it('gives each a text, a level and what would change it', () => {
    for (const [code, entry] of Object.entries(verdictReasons)) {
      expect(code).toMatch(/^[a-zA-Z]+\.[a-z-]+$/)
      expect(entry.text).toMatch(/\.$/)
      expect(entry.change).not.toBe('')
    }
  })

  it('never touches R75’s groups: only an orphan carries proofs', () => {
    expect(verdictOn({})).not.toHaveProperty('proofs')
    expect(verdictOn({ known: ownerGone() })).toHaveProperty('proofs')
  })
})
