/** What a sweep makes of keyed tags, of what a fork left behind, and of signs that this ledger is older than the world (decisions 6). */
import { describe, expect, it } from 'vitest'
import type { MacVerdict } from '../../../src/model/mac.ts'
import { rewindOf, type Own } from '../../../src/model/own.ts'
import { isPlainlyTracked } from '../../../src/model/plainly-tracked.ts'
import { reasonOf, type VerdictReason } from '../../../src/model/verdict-reasons.ts'
import {
  attempt,
  ended,
  evidence,
  groupOf,
  hour,
  internal,
  ledger,
  machine,
  ours,
  own,
  policy,
  T,
  unbound,
  verdictOn,
  type Situation,
} from './build.ts'

/** Tags mean what this says, whatever stands in them. */
const proving = (verdict: MacVerdict, more: Partial<Own> = {}): { own: Own } => ({
  own: { ...own, judgeMac: ({ mac }) => (mac === null ? { kind: 'none' } : verdict), ...more },
})
const valid = proving({ kind: 'valid', epoch: own.epoch })
const tagged = (mac: string | null, patch: Parameters<typeof machine>[0] = {}) => machine({ ...patch, tags: { ...patch.tags, mac } })
const reason = (situation: Situation): VerdictReason => verdictOn(situation).reason
/** Made with the machine, and by nothing else of its own. */
const disk = (patch: Parameters<typeof machine>[0] = {}) => internal('disk', patch)
const orphaned = evidence({ instance: ended(), attempts: [attempt({ macKey: 'a1b2c3' })] })

describe('a ref that nobody here issued, under our installation’s id', () => {
  const bare = { fixedAttemptToken: null }
  const since = { macSince: T - 2 * hour }
  it.each<[string, Situation, VerdictReason]>([
    ['a valid keyed tag proves it ours', { listed: [tagged('x', bare)], policy: valid }, 'contradiction.unknown-ref-of-ours'],
    [
      'also without the tag of the installation',
      { listed: [tagged('x', { ...bare, tags: { installation: null } })], policy: valid },
      'contradiction.unknown-ref-of-ours',
    ],
    ['a wrong one is reported', { listed: [tagged('x')], policy: proving({ kind: 'wrong' }) }, 'contradiction.wrong-mac'],
    [
      'by a key that is not here the fact fixed at creation decides',
      { listed: [tagged('x')], policy: proving({ kind: 'unknown-key', keyId: 'k' }) },
      'contradiction.unknown-ref-of-ours',
    ],
    [
      'and without one it is reported',
      { listed: [tagged('x', bare)], policy: proving({ kind: 'unknown-key', keyId: 'k' }) },
      'contradiction.wrong-mac',
    ],
    ['none, and no room for one: the fact fixed at creation decides', { listed: [machine()] }, 'contradiction.unknown-ref-of-ours'],
    [
      'none, and made before there were keys: the same',
      { listed: [machine({ createdAt: T - 3 * hour })], policy: proving({ kind: 'wrong' }, since) },
      'contradiction.unknown-ref-of-ours',
    ],
    [
      'none, and nobody says when it was made: the same',
      { listed: [machine({ createdAt: null })], policy: proving({ kind: 'wrong' }, since) },
      'contradiction.unknown-ref-of-ours',
    ],
    ['none where each of ours has one', { listed: [machine()], policy: proving({ kind: 'wrong' }, since) }, 'contradiction.no-mac'],
    [
      'nothing but the tags: ignored (orphans R50)',
      { listed: [machine(bare)], policy: proving({ kind: 'wrong' }, since) },
      'foreign.unknown-ref',
    ],
  ])('%s', (_, situation, expected) => {
    expect(reason({ ...situation, known: null })).toBe(expected)
    expect(reasonOf(expected).finding).toBe(expected !== 'foreign.unknown-ref')
  })
})

describe('an orphan’s keyed tag (I6)', () => {
  it('a valid one is taken back', () => {
    expect(reason({ known: orphaned, listed: [tagged('x')], policy: valid })).toBe('orphan.owner-ended')
  })

  it.each<[string, Situation, VerdictReason]>([
    ['a wrong one', { listed: [tagged('x')], policy: proving({ kind: 'wrong' }) }, 'contradiction.wrong-mac'],
    [
      'one by a key that is not here',
      { listed: [tagged('x')], policy: proving({ kind: 'unknown-key', keyId: 'k' }) },
      'contradiction.wrong-mac',
    ],
    ['none where one was written', { listed: [machine()], policy: valid }, 'contradiction.no-mac'],
    ['a disk beside it that has none', { listed: [tagged('x'), disk()], policy: valid }, 'contradiction.no-mac'],
    [
      'a disk beside it with a wrong one',
      { listed: [machine(), disk({ tags: { mac: 'x' } })], policy: proving({ kind: 'wrong' }) },
      'contradiction.no-mac',
    ],
  ])('%s is a contradiction, and never taken back', (_, situation, expected) => {
    expect(reason({ ...situation, known: orphaned })).toBe(expected)
  })

  it('the twins: none was written; and a disk that has it too', () => {
    expect(reason({ known: evidence({ instance: ended() }), listed: [machine()], policy: valid })).toBe('orphan.owner-ended')
    expect(reason({ known: orphaned, listed: [tagged('x'), disk({ tags: { mac: 'x' } })], policy: valid })).toBe('orphan.owner-ended')
  })

  it('counts by whatever fact the attempt is known', () => {
    const known = evidence({ instance: ended(), attempts: [unbound({ macKey: 'a1b2c3' })] })
    expect(reason({ known, listed: [machine()], policy: valid })).toBe('contradiction.no-mac')
    expect(reason({ known, listed: [tagged('x')], policy: proving({ kind: 'wrong' }) })).toBe('contradiction.wrong-mac')
    expect(reason({ known, listed: [tagged('x')], policy: valid })).toBe('orphan.owner-ended')
  })
})

describe('a newer epoch than any that was given here', () => {
  const newer = proving({ kind: 'valid', epoch: own.epoch + 1 })
  it('under a valid keyed tag is a contradiction, whoever holds it', () => {
    for (const known of [evidence(), orphaned])
      expect(reason({ known, listed: [tagged('x')], policy: newer })).toBe('contradiction.newer-epoch')
    expect(reason({ listed: [tagged('x')], policy: valid })).toBe('tracked.bound')
  })

  it('is looked for in what is plainly tracked by what the tag claims, and then proved', () => {
    const claims = (epoch: number) => tagged(`1-a1b2c3-${epoch}-${'0'.repeat(40)}`)
    expect(isPlainlyTracked(claims(own.epoch), evidence(), policy)).toBe(true)
    expect(isPlainlyTracked(claims(own.epoch + 1), evidence(), policy)).toBe(false)
    expect(reason({ listed: [claims(own.epoch + 1)], policy: proving({ kind: 'wrong' }) })).toBe('tracked.bound')
  })
})

describe('after a fork', () => {
  const forked = { own: { ...own, former: ['oldinst1'], heldSince: T - hour / 2 } }
  it('what bears a former id, and what was issued before, is that installation’s, whatever else is known of it', () => {
    const former = machine({ tags: { installation: 'oldinst1' } })
    for (const known of [null, evidence(), orphaned])
      expect(reason({ known, listed: [former], policy: forked })).toBe('foreign.former-installation')
    for (const installation of [ours, null])
      expect(reason({ known: orphaned, listed: [machine({ tags: { installation } })], policy: forked })).toBe('foreign.former-installation')
    expect(reasonOf('foreign.former-installation')).toMatchObject({ settled: true, finding: false })
  })

  it('the twin: what was issued since is judged as ever', () => {
    const since = evidence({ instance: ended(), ledger: ledger({ issuedAt: T - hour / 4 }) })
    expect(reason({ known: since, policy: forked })).toBe('orphan.owner-ended')
  })
})

describe('a sign that the ledger is older than the world', () => {
  const group = groupOf(machine({ createdAt: T - hour }))
  const unknown = 'contradiction.unknown-ref-of-ours'
  const sees = (more: Partial<Own>, seen = group, why: VerdictReason = unknown) => rewindOf(why, seen, { ...own, ...more }) !== null

  it('is what is provably ours and forgotten, and nothing else', () => {
    expect([sees({}), sees({}, group, 'contradiction.newer-epoch')]).toEqual([true, true])
    for (const other of ['contradiction.wrong-mac', 'contradiction.no-mac', 'foreign.unknown-ref', 'orphan.owner-ended'] as const)
      expect(sees({}, group, other)).toBe(false)
  })

  it('an adoption acknowledges what was made before it, and nothing that appears after', () => {
    expect(sees({ adoptedAt: T })).toBe(false)
    expect(sees({ adoptedAt: T - 2 * hour })).toBe(true)
    const undated = groupOf(machine({ createdAt: null }))
    expect(sees({ adoptedAt: T }, undated)).toBe(false)
    // Nobody says when it was made, but its tag does: after the adoption.
    const judgeMac = (): MacVerdict => ({ kind: 'valid', epoch: own.epoch + 1 })
    expect(sees({ adoptedAt: T, judgeMac }, undated)).toBe(true)
  })
})
