import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  budgetSince,
  cleanupState,
  givenUpLookMs,
  givesUp,
  giveUpCode,
  heldBy,
  isOpenRemoval,
  nextTryMs,
  pollDelayMs,
  preflight,
  removalKind,
  resourceKey,
  retryDelayMs,
  sameResource,
  type Bound,
  type FreshRead,
  type HoldFacts,
  type Identity,
} from '../../src/model/removal.ts'
import { forkStop } from '../../src/model/stop.ts'

describe('when a failed removal is tried again (leases R40, R47)', () => {
  it.each<[number, number]>([
    ...Array.from({ length: 12 }, (_, i): [number, number] => [i + 1, 300]),
    [13, 600],
    [14, 1200],
    [15, 2400],
    [16, 3600],
    [17, 3600],
    [100, 3600],
    [100_000, 3600],
  ])('after %d failures in a row: exactly %d s later', (failures, seconds) => {
    expect(retryDelayMs(failures)).toBe(seconds * 1000)
  })
})

describe('who wants a removal, and so how long it is tried (orphans R88, leases R40)', () => {
  it.each([
    ['released', 'lh_1', 'ordered'],
    ['expired', 'lh_1', 'ordered'],
    ['cancelled', 'lh_1', 'ordered'],
    ['leftover', 'lh_1', 'ordered'],
    ['leftover', null, 'unheld'],
    ['admin', null, 'unheld'],
    // The lease of an interrupted create has failed: it is linked, and orders nothing.
    ['create-interrupted', 'lh_1', 'unheld'],
    ['create-interrupted', null, 'unheld'],
    ['orphan.owner-ended', null, 'found'],
    ['orphan.gave-up', 'lh_1', 'found'],
  ] as const)('cause %s, lease %s: %s', (cause, leaseId, kind) => {
    expect(removalKind({ cause, leaseId })).toBe(kind)
  })

  it('only what nobody holds is tried every 30 s; the others go by 300 s and further apart, without an end (orphans R88, R98)', () => {
    for (const failures of [1, 12, 100]) {
      expect(nextTryMs('unheld', failures)).toBe(30_000)
      expect(nextTryMs('ordered', failures)).toBe(retryDelayMs(failures))
      expect(nextTryMs('found', failures)).toBe(retryDelayMs(failures))
    }
  })

  it('it gives up when the next try would come at or after 15 min (orphans R89)', () => {
    const first = 1_000_000
    expect(givesUp(first, first)).toBe(false)
    expect(givesUp(first, first + 869_999)).toBe(false)
    expect(givesUp(first, first + 870_000)).toBe(true)
    expect(givesUp(first, first + 870_001)).toBe(true)
  })

  it('its clock begins with the first failure or acceptance, whichever was earlier (orphans R90)', () => {
    expect(budgetSince({ firstFailedAt: null, acceptedAt: null })).toBeNull()
    expect(budgetSince({ firstFailedAt: 5, acceptedAt: null })).toBe(5)
    expect(budgetSince({ firstFailedAt: null, acceptedAt: 7 })).toBe(7)
    expect(budgetSince({ firstFailedAt: 5, acceptedAt: 7 })).toBe(5)
    expect(budgetSince({ firstFailedAt: 9, acceptedAt: 7 })).toBe(7)
  })

  it('cleanup is promised where the mode deletes, sweeps can see it, nothing bars them and it is proved ours, and nowhere else (orphans R96, R97)', () => {
    const promised: unknown[] = []
    for (const mode of ['report', 'delete', 'off'] as const)
      for (const lists of [true, false])
        for (const protectedBy of [null, 'hold hd_1', 'keep'])
          for (const contradiction of [true, false]) {
            const facts = { mode, lists, protectedBy, contradiction }
            if (giveUpCode(facts) === 'terminate.gave-up.cleanup-retries') promised.push(facts)
          }
    expect(promised).toEqual([{ mode: 'delete', lists: true, protectedBy: null, contradiction: false }])
  })

  it('what was given up is looked at after a minute, and ever less often, at least once an hour', () => {
    expect([0, 1, 2, 5, 6, 1000].map(givenUpLookMs)).toEqual([60_000, 120_000, 240_000, 1_920_000, 3_600_000, 3_600_000])
  })

  it('one that gave up is not gone, and bars no other', () => {
    expect((['preparing', 'removing', 'verifying', 'gone', 'gave-up'] as const).filter(isOpenRemoval)).toEqual([
      'preparing',
      'removing',
      'verifying',
    ])
  })
})

describe('between two looks for proof', () => {
  it.each([
    [0, 2],
    [1, 4],
    [2, 8],
    [3, 16],
    [4, 30],
    [5, 30],
    [5000, 30],
  ])('after %d looks: %d s', (polls, seconds) => {
    expect(pollDelayMs(polls)).toBe(seconds * 1000)
  })
})

const resource: Identity = { scope: 'machine:one', location: 'here', kind: 'box', nativeId: 'abc-1', immutableId: 'ns#4026531836' }
const bound: Bound = { resource, ref: 'rabcdefghijk', installation: 'inst0001', attemptToken: 'token-1' }
const fresh: FreshRead = {
  resource: { ...resource },
  tags: { ref: bound.ref, installation: bound.installation, attempt: bound.attemptToken },
}

describe('the fresh read before a destructive call (I6)', () => {
  it('goes on when identity and tags both agree', () => {
    expect(preflight(bound, fresh, true)).toEqual({ kind: 'go' })
  })

  it.each(['scope', 'location', 'kind', 'nativeId', 'immutableId'] as const)(
    'stops when the %s differs, with all tags copied (case leases 8)',
    (fact) => {
      const other = { ...fresh, resource: { ...resource, [fact]: 'other' } }
      expect(sameResource(resource, other.resource)).toBe(false)
      expect(preflight(bound, other, true).kind).toBe('contradiction')
      // Also where the provider has no tags left to read: identity alone must then carry it.
      expect(preflight(bound, other, false).kind).toBe('contradiction')
    },
  )

  it.each(['ref', 'installation', 'attempt'] as const)('stops when the %s tag is another one, is cut off, or can not be read', (tag) => {
    for (const value of ['other', '', ` ${fresh.tags[tag] as string}`, (fresh.tags[tag] as string).toUpperCase(), null]) {
      const verdict = preflight(bound, { ...fresh, tags: { ...fresh.tags, [tag]: value } }, true)
      expect(verdict).toEqual({ kind: 'contradiction', why: `its ${tag} tag no longer says that it is ours` })
    }
  })

  it('names every tag that is wrong', () => {
    const verdict = preflight(bound, { ...fresh, tags: { ref: null, installation: null, attempt: null } }, true)
    expect(verdict).toMatchObject({ why: 'its ref, installation, attempt tag no longer says that it is ours' })
  })

  it('goes on without tags only where the provider has none left to read and the identity agrees', () => {
    const untagged = { ...fresh, tags: { ref: null, installation: null, attempt: null } }
    expect(preflight(bound, untagged, false)).toEqual({ kind: 'go' })
    expect(preflight(bound, untagged, true).kind).toBe('contradiction')
  })

  it('goes on for no read but the exact one', () => {
    const text = fc.constantFrom<(string | null)[]>(
      'abc-1',
      'machine:one',
      'here',
      'box',
      'ns#4026531836',
      'rabcdefghijk',
      'inst0001',
      'token-1',
      '',
      null,
    )
    const facts = fc.record({
      scope: text,
      location: text,
      kind: text,
      nativeId: text,
      immutableId: text,
      ref: text,
      installation: text,
      attempt: text,
    })
    fc.assert(
      fc.property(facts, ({ ref, installation, attempt, ...identity }) => {
        const read = { resource: identity as Identity, tags: { ref, installation, attempt } }
        expect(preflight(bound, read, true).kind === 'go').toBe(JSON.stringify(read) === JSON.stringify(fresh))
      }),
      { examples: [[{ ...resource, ...fresh.tags }]] },
    )
  })
})

describe('what holds a removal back', () => {
  const target = {
    resourceKeys: [resourceKey('process', 'here', 'abc-1'), resourceKey('process', 'here', 'its-disk')],
    instanceId: 'in_1',
    leaseId: 'lh_0123456789ab',
    project: 'default',
    scope: 'machine:one',
  }
  const hold = (targetType: HoldFacts['targetType'], targetId: string): HoldFacts => ({ id: 'hd_1', targetType, targetId })

  it.each([
    ['resource', 'process/here/abc-1'],
    ['instance', 'in_1'],
    ['lease', 'lh_0123456789ab'],
    ['project', 'default'],
    ['scope', 'machine:one'],
  ] as const)('a hold on its %s; one on another does not', (type, id) => {
    expect(heldBy(target, [hold(type, id)], [])).toBe('hold hd_1')
    expect(heldBy(target, [hold(type, `${id}x`)], [])).toBeNull()
  })

  it('an id counts only for the kind of thing that it names', () => {
    expect(heldBy(target, [hold('project', 'in_1'), hold('instance', 'default'), hold('lease', 'machine:one')], [])).toBeNull()
  })

  it('without a lease no hold on a lease applies', () => {
    expect(heldBy({ ...target, leaseId: null }, [hold('lease', 'null'), hold('lease', '')], [])).toBeNull()
  })

  it('a freeze of everything or of its scope, and not of another scope', () => {
    expect(heldBy(target, [], ['*'])).toBe('freeze')
    expect(heldBy(target, [], ['machine:one'])).toBe('freeze of machine:one')
    expect(heldBy(target, [], ['machine:two'])).toBeNull()
    expect(heldBy(target, [], [])).toBeNull()
  })

  it('a stop holds everything, or its scope, before any freeze; what a fork left holds only what was made before it (decisions 6)', () => {
    const stop = { scope: '*', by: 'a stop' }
    expect(heldBy(target, [hold('instance', 'in_1')], ['*', stop])).toBe('a stop')
    expect(heldBy(target, [], [{ ...stop, scope: 'machine:one' }])).toBe('a stop')
    expect(heldBy(target, [], [{ ...stop, scope: 'machine:two' }])).toBeNull()
    const [fork] = forkStop(['k3f9a1bc'], 1000)
    if (!fork) throw new Error('a fork stops what was made before it')
    expect(heldBy({ ...target, madeAt: 999 }, [], [fork])).toContain('it belongs to installation k3f9a1bc')
    expect(heldBy({ ...target, madeAt: 1000 }, [], [fork])).toBeNull()
    // Nobody says when it was made.
    expect(heldBy(target, [], [fork])).not.toBeNull()
    expect(forkStop([], 0)).toEqual([])
  })

  it('it stands among any number of others', () => {
    const others = Array.from({ length: 50 }, (_, i) => hold('instance', `in_${i + 2}`))
    expect(heldBy(target, [...others, { ...hold('instance', 'in_1'), id: 'hd_9' }], ['elsewhere'])).toBe('hold hd_9')
  })
})

describe('what cleanup.state says (leases D8)', () => {
  it.each([
    [null, 'none'],
    [{ state: 'preparing', failedAt: null, heldBy: null }, 'preparing'],
    [{ state: 'removing', failedAt: null, heldBy: null }, 'removing'],
    [{ state: 'verifying', failedAt: null, heldBy: null }, 'verifying'],
    [{ state: 'removing', failedAt: 1, heldBy: null }, 'failed'],
    [{ state: 'preparing', failedAt: 1, heldBy: 'freeze' }, 'held'],
    [{ state: 'gone', failedAt: 1, heldBy: 'freeze' }, 'gone'],
    [{ state: 'gave-up', failedAt: 1, heldBy: null }, 'gave-up'],
  ] as const)('%j: %s', (removal, state) => {
    expect(cleanupState(removal)).toBe(state)
  })
})
