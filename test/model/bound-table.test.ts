import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBoundTable, type BoundTable } from '../../src/model/bound-table.ts'
import { formatMac } from '../../src/model/mac.ts'
import { showsBound, type RefEvidence, type SeenResource, type SweepPolicy } from '../../src/model/evidence.ts'
import { isPlainlyTracked } from '../../src/model/plainly-tracked.ts'
import { own } from './sweep/build.ts'

const policy: SweepPolicy = {
  installation: 'install1',
  project: 'default',
  provider: 'simulated',
  scope: 'scope:1',
  ownerKind: 'machine',
  kinds: ['machine', 'disk'],
  marginMs: 0,
  attemptMs: 0,
  holds: [],
  own,
}

interface Words {
  token: string
  scope: string
  location: string
  kind: string
  immutableId: string
}
const words: Words = { token: 't1', scope: 'scope:1', location: 'here', kind: 'machine', immutableId: 'i1' }
const ref = 'abcdefghijk1'

const put = (table: BoundTable, of: string, { token, scope, location, kind, immutableId }: Words): void =>
  table.add({ ref: of, place: `${token}\n${scope}\n${location}`, identity: `${kind}\n${immutableId}` })

const evidenceFor = (of: string, { token, ...recorded }: Words): RefEvidence => ({
  ref: of,
  readAt: 0,
  ledger: { project: 'default', ownerId: 'in_1', ownerName: '', issuedAt: 0, ownerClosedAt: null },
  instance: { id: 'in_1', state: 'busy', changedAt: 0, terminatedAt: null, gaveUpAt: null, boundAttemptId: 'at_1' },
  attempts: [
    {
      id: 'at_1',
      number: 1,
      token,
      outcome: 'bound',
      openedAt: 0,
      deadlineAt: 0,
      endedAt: null,
      nativeId: 'n1',
      macKey: null,
      ...recorded,
    },
  ],
  lease: null,
  removals: [],
})

const seenAs = (changes: Partial<SeenResource> = {}, resource: Partial<SeenResource['resource']> = {}): SeenResource => ({
  resource: { scope: 'scope:1', location: 'here', kind: 'machine', nativeId: 'n1', immutableId: 'i1', ...resource },
  tags: { ref, installation: 'install1', attempt: 't1', mac: null },
  fixedAttemptToken: 't1',
  providerState: 'running',
  existence: 'exists',
  name: 'one',
  createdAt: null,
  labels: {},
  attachedTo: [],
  reportOnly: null,
  ...changes,
})

const tags = { ref, installation: 'install1', attempt: 't1', mac: null }
const filled = (): BoundTable => {
  const table = createBoundTable(7)
  put(table, ref, words)
  return table
}

const macOf = (epoch: number): string => formatMac({ keyId: 'abcdef', epoch, digits: '0'.repeat(40) })
const text = fc.constantFrom('t1', 't2', 'here', 'there', 'scope:1', 'i1', 'i2', '')
const kind = fc.constantFrom('machine', 'disk')
const nearRef = fc.string({ unit: fc.constantFrom('a', 'b', '0'), minLength: 11, maxLength: 11 }).map((rest) => `r${rest}`)
const world = fc.record({
  salt: fc.integer(),
  words: fc.record({ token: text, scope: text, location: text, kind, immutableId: text }),
  bound: nearRef,
  others: fc.array(nearRef, { maxLength: 40 }),
  seen: fc.record({
    resource: fc.record({ scope: text, location: text, kind, nativeId: text, immutableId: text }),
    tags: fc.record({
      ref: fc.option(nearRef),
      installation: fc.option(fc.constantFrom('install1', 'install2')),
      attempt: fc.option(text),
      mac: fc.constantFrom(null, macOf(own.epoch), macOf(own.epoch + 1), 'no mac'),
    }),
    fixedAttemptToken: fc.option(text),
    providerState: fc.constant('running'),
    existence: fc.constantFrom('exists' as const, 'going' as const, 'gone' as const),
    name: fc.constant('one'),
    createdAt: fc.constant(null),
    labels: fc.option(fc.constant({})),
    attachedTo: fc.array(text, { maxLength: 2 }),
    reportOnly: fc.constant(null),
  }),
  // How much of the resource is taken from what is bound, so that many worlds come close to a match.
  like: fc.subarray(['ref', 'installation', 'attempt', 'fixed', 'scope', 'location', 'kind', 'immutableId'] as const),
})

describe('the table of what is bound', () => {
  it('lets go of nothing that the look into the ledger would not call plainly tracked, and counts as seen what that look would (orphans R49)', () => {
    let letGo = 0
    fc.assert(
      fc.property(world, ({ salt, words: bound, bound: of, others, seen, like }) => {
        const table = createBoundTable(salt)
        for (const other of others) put(table, other, { ...bound, token: `${bound.token}-other` })
        put(table, of, bound)
        const one: SeenResource = structuredClone(seen)
        if (like.includes('ref')) one.tags.ref = of
        if (like.includes('installation')) one.tags.installation = policy.installation
        if (like.includes('attempt')) one.tags.attempt = bound.token
        if (like.includes('fixed')) one.fixedAttemptToken = bound.token
        if (like.includes('scope')) one.resource.scope = bound.scope
        if (like.includes('location')) one.resource.location = bound.location
        if (like.includes('kind')) one.resource.kind = bound.kind
        if (like.includes('immutableId')) one.resource.immutableId = bound.immutableId
        const evidence = evidenceFor(of, bound)
        const tracked = one.tags.ref === of && isPlainlyTracked(one, evidence, policy)
        const gone = table.letsGo(one, policy)
        if (gone) {
          letGo++
          expect(tracked).toBe(true)
          expect(table.wasSeen(of)).toBe(showsBound(one, evidence))
        }
        // What it does not let go of although it is tracked is an attached resource that says so by its attachment only.
        if (tracked && !gone) expect(one.fixedAttemptToken).not.toBe(bound.token)
      }),
      { numRuns: 20_000 },
    )
    expect(letGo).toBeGreaterThan(100)
  })

  it.each<[string, SeenResource]>([
    ['another immutable id, such as a copy', seenAs({}, { immutableId: 'i2' })],
    ['another account', seenAs({}, { scope: 'scope:2' })],
    ['another location', seenAs({}, { location: 'there' })],
    ['another attempt', seenAs({ tags: { ...tags, attempt: 't2' } })],
    ['another installation', seenAs({ tags: { ...tags, installation: 'install2' } })],
    ['a ref that it does not know', seenAs({ tags: { ...tags, ref: 'abcdefghijk2' } })],
    ['a keyed tag that names a later epoch', seenAs({ tags: { ...tags, mac: macOf(own.epoch + 1) } })],
    ['unreadable labels', seenAs({ labels: null })],
    ['what is on its way out', seenAs({ existence: 'going' })],
    ['a disk that only its tag says to be of the attempt', seenAs({ fixedAttemptToken: null }, { kind: 'disk', immutableId: 'd1' })],
  ])('does not let go of %s', (_, seen) => {
    const table = filled()
    expect(table.letsGo(seen, policy)).toBe(false)
    expect(table.wasSeen(ref)).toBe(false)
  })

  it('lets go of the resource itself, and of a disk that was made by the same attempt, which is not the resource', () => {
    const table = filled()
    expect(table.letsGo(seenAs({}, { kind: 'disk', immutableId: 'd1' }), policy)).toBe(true)
    expect(table.wasSeen(ref)).toBe(false)
    expect(table.letsGo(seenAs(), policy)).toBe(true)
    expect(table.wasSeen(ref)).toBe(true)
  })

  it('vouches for nothing of which it is in doubt, or of which nothing is recorded (orphans R62)', () => {
    const table = filled()
    const bare = 'abcdefghijk2'
    table.add({ ref: bare, place: null, identity: null })
    table.doubt(ref)
    table.doubt('abcdefghijk3')
    expect(table.letsGo(seenAs(), policy)).toBe(false)
    expect(table.letsGo(seenAs({ tags: { ...tags, ref: bare } }), policy)).toBe(false)
    // Seen it can be all the same: by the look-up.
    table.markSeen(ref)
    expect(table.wasSeen(ref)).toBe(true)
    expect([...table.unseen()]).toEqual([bare])
  })

  it('names exactly those of its refs that were not seen, whatever stands in them', () => {
    const refs = ['a00000000000', 'a00000zzzzzz', 'z0000z000000', 'zzzzzzzzzzzz', 'abc012def345']
    const table = createBoundTable(3)
    for (const one of refs) put(table, one, words)
    table.markSeen('z0000z000000')
    table.markSeen('b00000000000')
    expect(new Set(table.unseen())).toEqual(new Set(refs.filter((one) => one !== 'z0000z000000')))
  })

  it('takes what was seen otherwise, known to it or not, and keeps it while it grows', () => {
    const table = createBoundTable(1)
    const name = (i: number): string => `r${i.toString(36).padStart(11, '0')}`
    table.add({ ref: name(1), place: 'p', identity: 'i' })
    table.markSeen(name(1))
    table.markSeen('not one of ours')
    for (let i = 2; i < 100_000; i++) put(table, name(i), { ...words, token: name(i) })
    for (let i = 2; i < 100_000; i += 2) table.letsGo(seenAs({ tags: { ...tags, ref: name(i), attempt: name(i) } }), policy)
    let wrong = 0
    for (let i = 1; i < 110_000; i++) if (table.wasSeen(name(i)) !== (i === 1 || (i % 2 === 0 && i < 100_000))) wrong++
    expect(wrong).toBe(0)
    expect(table.wasSeen('not one of ours')).toBe(true)
  })
})
