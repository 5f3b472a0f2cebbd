import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formGroups } from '../../../src/model/group.ts'
import { judge } from '../../../src/model/verdict.ts'
import type { Verdict } from '../../../src/model/verdict-case.ts'
import type { VerdictReason } from '../../../src/model/verdict-reasons.ts'
import {
  attempt,
  clock,
  ended,
  evidence,
  hour,
  internal,
  inventory,
  location,
  machine,
  ownerGone,
  policy,
  scope,
  T,
  token,
  unbound,
  verdictOn,
  type Situation,
} from './build.ts'

const reason = (situation: Situation): VerdictReason => verdictOn({ known: evidence({ instance: ended() }), ...situation }).reason
const orphan = 'orphan.owner-ended'

describe('ownership by two facts, one of them fixed at creation (I6, orphans R103, leases R57)', () => {
  it.each<[string, Situation, VerdictReason]>([
    ['recorded id and agreeing tags', {}, orphan],
    ['recorded id, no token of its own', { listed: [machine({ fixedAttemptToken: null })] }, orphan],
    ['recorded id, but no installation tag', { listed: [machine({ tags: { installation: null } })] }, 'contradiction.tags-disagree'],
    ['recorded id, but no attempt tag', { listed: [machine({ tags: { attempt: null } })] }, 'contradiction.tags-disagree'],
    [
      'recorded id, but another attempt’s tag',
      { listed: [machine({ fixedAttemptToken: null, tags: { attempt: 'token-2' } })] },
      'contradiction.tags-disagree',
    ],
    [
      'recorded id, but a token fixed at creation that says otherwise',
      { listed: [machine({ fixedAttemptToken: 'token-2' })] },
      'contradiction.tags-disagree',
    ],
    ['fixed token of an attempt whose id never reached us', { known: evidence({ instance: ended(), attempts: [unbound()] }) }, orphan],
    [
      'fixed token and a tag that says otherwise',
      { known: evidence({ instance: ended(), attempts: [unbound()] }), listed: [machine({ tags: { attempt: 'token-2' } })] },
      'contradiction.tags-disagree',
    ],
    [
      'fixed token of an attempt of another location (U9)',
      { known: evidence({ instance: ended(), attempts: [unbound({ location: 'sim-b' })] }) },
      'contradiction.attempt-elsewhere',
    ],
    [
      'fixed token of an attempt in another account (U16)',
      { known: evidence({ instance: ended(), attempts: [unbound({ scope: 'simulated:two' })] }) },
      'contradiction.attempt-elsewhere',
    ],
    [
      'a token that no attempt of the ref has',
      { known: evidence({ instance: ended(), attempts: [unbound({ token: 'token-7' })] }) },
      'contradiction.unknown-attempt',
    ],
    [
      'fixed token of an attempt that recorded another id',
      { known: evidence({ instance: ended(), attempts: [attempt({ immutableId: 'uid-0' })] }) },
      'contradiction.another-identity',
    ],
    [
      'tags alone',
      { known: evidence({ instance: ended(), attempts: [unbound()] }), listed: [machine({ fixedAttemptToken: null })] },
      'contradiction.tags-only',
    ],
    [
      'a name alone: the recorded native id with another immutable id (case B6, B13)',
      { listed: [machine({ fixedAttemptToken: null, resource: { immutableId: 'uid-9' } })] },
      'contradiction.tags-only',
    ],
    [
      'listed in another account than the one swept (U16)',
      { listed: [machine({ resource: { scope: 'simulated:two' } })] },
      'contradiction.other-scope',
    ],
  ])('%s', (_, situation, expected) => {
    expect(reason(situation)).toBe(expected)
  })
})

describe('internal resources (orphans R18, R24)', () => {
  const created = attempt().openedAt + 10_000
  const disk = (patch: Parameters<typeof internal>[1] = {}) => internal('disk', { createdAt: created, ...patch })

  it('attached to a proved owner and made in its attempt’s time, they are part of the orphan', () => {
    const verdict = verdictOn({ known: evidence({ instance: ended() }), listed: [machine(), disk()] })
    expect(verdict).toMatchObject({ reason: orphan, proofs: [{ by: 'recorded-id' }, { by: 'made-with-its-owner', kind: 'disk' }] })
  })

  const { openedAt, deadlineAt } = attempt()
  it.each([
    [openedAt - policy.marginMs - 1, 'contradiction.tags-only'],
    [openedAt - policy.marginMs, orphan],
    [deadlineAt + policy.marginMs, orphan],
    [deadlineAt + policy.marginMs + 1, 'contradiction.tags-only'],
    [null, 'contradiction.tags-only'],
  ] as const)('made at %s: %s; one unproved member is enough to leave the group alone', (createdAt, expected) => {
    expect(reason({ listed: [machine(), disk({ createdAt })] })).toBe(expected)
  })

  it('with a token fixed at creation that disagrees they lean on nobody', () => {
    expect(reason({ listed: [machine(), disk({ fixedAttemptToken: 'token-9', tags: { attempt: 'token-9' } })].slice(1) })).toBe(
      'contradiction.unknown-attempt',
    )
  })

  it('left alone without a fact of their own they are reported, never an orphan (case D12)', () => {
    expect(reason({ listed: [disk({ attachedTo: [] })] })).toBe('contradiction.tags-only')
  })

  it('left alone after a removal bound them, they are what it recorded (orphans R70, orphan case 9)', () => {
    const bound = [{ scope, location, kind: 'disk', nativeId: 'disk-1', immutableId: 'uid-disk-1' }]
    const removals = [{ id: 'rm_1', attemptId: 'at_1', open: false, bound }]
    const known = evidence({ instance: ended(), removals })
    expect(verdictOn({ known, listed: [disk({ attachedTo: [] })] })).toMatchObject({ reason: orphan, proofs: [{ by: 'bound-by-removal' }] })
    expect(reason({ known, listed: [disk({ attachedTo: [], resource: { immutableId: 'uid-disk-2' } })] })).toBe('contradiction.tags-only')
  })

  it('shared by two owner resources they are nobody’s', () => {
    const listed = [
      machine(),
      machine({ fixedAttemptToken: null, resource: { nativeId: 'i-9', immutableId: 'uid-9' } }),
      disk({ attachedTo: ['i-1', 'i-9'] }),
    ]
    const group = formGroups(listed, 'machine').find((one) => one.owner === null)
    expect(group && judge(group, evidence({ instance: ended() }), inventory(), clock, policy).reason).toBe('contradiction.shared')
  })
})

describe('a kind that no attempt made (case B7)', () => {
  const volume = internal('volume', { attachedTo: [], fixedAttemptToken: null })
  const listed = [machine(), internal('disk', { createdAt: T - hour }), internal('nic', { createdAt: T - hour }), volume]
  const judged = (resources: typeof listed): Map<string, Verdict> =>
    new Map(
      formGroups(resources, 'machine').map((group) => [
        group.members.map((member) => member.resource.nativeId).join(),
        judge(group, evidence(), inventory(), clock, policy),
      ]),
    )

  it('is a contradiction, whoever lives', () => {
    expect(reason({ listed: [volume] })).toBe('contradiction.wrong-kind')
    expect(reason({ listed: [volume], known: evidence() })).toBe('contradiction.wrong-kind')
    expect(reason({ listed: [volume], known: ownerGone() })).toBe('contradiction.wrong-kind')
  })

  it('gets the same verdict in every order: 100 shuffles', () => {
    const expected = judged(listed)
    expect([...expected.values()].map((verdict) => verdict.kind).toSorted()).toEqual(['contradiction', 'tracked'])
    fc.assert(
      fc.property(fc.shuffledSubarray(listed, { minLength: listed.length }), (shuffled) => {
        expect(judged(shuffled)).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })
})

describe('protection (leases R56, R68; decisions 4)', () => {
  const hold = (targetType: 'resource' | 'instance' | 'lease' | 'project' | 'scope', targetId: string) => ({
    policy: { holds: [{ id: 'hd_1', targetType, targetId }] },
  })
  const lease = { id: 'lh_000000000001', state: 'expired', retained: false } as const
  const known = evidence({ instance: ended(), lease })

  it.each([
    ['resource', `simulated/${location}/i-1`],
    ['instance', 'in_1'],
    ['lease', lease.id],
    ['project', 'default'],
    ['scope', scope],
  ] as const)('a hold on its %s protects it, and one on another does not', (type, id) => {
    expect(reason({ known, ...hold(type, id) })).toBe('protected.hold')
    expect(reason({ known, ...hold(type, `${id}x`) })).toBe(orphan)
  })

  it('a hold on the instance stands after the instance’s row is gone', () => {
    expect(reason({ known: ownerGone(), ...hold('instance', 'in_1') })).toBe('protected.hold')
  })

  it('a hold on one member protects the group', () => {
    expect(
      reason({ listed: [machine(), internal('disk', { createdAt: T - hour })], ...hold('resource', `simulated/${location}/disk-1`) }),
    ).toBe('protected.hold')
  })

  it('a keep label on one member protects the group (leases R68)', () => {
    const disk = internal('disk', { createdAt: T - hour, labels: { 'leasehold.keep': 'until friday' } })
    expect(reason({ listed: [machine(), disk] })).toBe('protected.keep')
    expect(reason({ listed: [machine(), { ...disk, labels: { keep: 'no' } }] })).toBe(orphan)
  })

  it('unreadable labels of one member protect the group, and are looked at again (case I2, H6)', () => {
    expect(reason({ listed: [machine(), internal('disk', { createdAt: T - hour, labels: null })] })).toBe('protected.labels-unreadable')
    expect(reason({ listed: [machine({ labels: null })] })).toBe('protected.labels-unreadable')
  })

  it('what the provider’s rules forbid stays (case L5)', () => {
    expect(reason({ listed: [machine({ reportOnly: 'it has a data disk' })] })).toBe('protected.report-only')
  })

  it('what is attached to a stranger stays', () => {
    expect(reason({ listed: [machine(), internal('disk', { createdAt: T - hour, attachedTo: ['i-1', 'i-foreign'] })] })).toBe(
      'protected.attached-outside',
    )
    expect(reason({ listed: [internal('disk', { fixedAttemptToken: token, attachedTo: ['i-foreign'] })] })).toBe(
      'protected.attached-outside',
    )
  })
})
