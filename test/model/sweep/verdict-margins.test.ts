import { describe, expect, it } from 'vitest'
import { isSettled, judge } from '../../../src/model/verdict.ts'
import type { VerdictReason } from '../../../src/model/verdict-reasons.ts'
import { formGroups } from '../../../src/model/group.ts'
import {
  attempt,
  clock,
  denied,
  ended,
  evidence,
  hour,
  instance,
  internal,
  inventory,
  ledger,
  location,
  machine,
  margin,
  ownerGone,
  partial,
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

describe('margins (orphans R62-R66, orphan cases 4, 5)', () => {
  const edges = [
    [T - margin - 1, false],
    [T - margin, true],
    [T, true],
    [T + 500, true],
  ] as const

  it.each(edges)('the owner ended at %d: settling %s (R55, R65)', (at, settling) => {
    const verdict = verdictOn({ known: evidence({ instance: ended({ changedAt: at, terminatedAt: at }) }) })
    expect(verdict.reason).toBe(settling ? 'settling.changed' : 'orphan.owner-ended')
    if (settling) expect(verdict.until).toBe(at + margin + 1)
    expect(isSettled(verdict)).toBe(!settling)
  })

  it.each(edges)('the owner’s row was deleted at %d: settling %s (R51, U3, U4)', (at, settling) => {
    expect(reason({ known: ownerGone({ ledger: ledger({ ownerClosedAt: at }) }) })).toBe(
      settling ? 'settling.changed' : 'orphan.owner-gone',
    )
  })

  it.each(edges)('taking it back was given up at %d: settling %s (R91, R99)', (at, settling) => {
    const known = evidence({ instance: instance({ state: 'terminating', gaveUpAt: at }) })
    expect(reason({ known })).toBe(settling ? 'settling.changed' : 'orphan.gave-up')
  })

  it.each(edges)('the owner was bound to another resource at %d: settling %s (R57, R66)', (at, settling) => {
    const known = evidence({ instance: instance({ changedAt: at }), attempts: [attempt(), failedAttempt] })
    expect(reason({ known, listed: [double(second)] })).toBe(settling ? 'settling.changed' : 'orphan.not-the-bound-one')
  })

  it.each(edges)('the resource itself was made at %d: settling %s (case A5)', (at, settling) => {
    expect(reason({ known: ownerGone(), listed: [machine({ createdAt: at })] })).toBe(settling ? 'settling.changed' : 'orphan.owner-gone')
  })

  it.each(edges)('its row was deleted by hand, and its ref issued at %d: settling %s', (at, settling) => {
    expect(reason({ known: ownerGone({ ledger: ledger({ issuedAt: at }) }) })).toBe(settling ? 'settling.changed' : 'orphan.owner-gone')
    if (settling)
      expect(reason({ known: ownerGone({ ledger: ledger({ issuedAt: at, ownerClosedAt: T - hour }) }) })).toBe('orphan.owner-gone')
  })

  it('a contradiction waits for the margin too: no false report (orphan case 5)', () => {
    expect(reason({ listed: [double({ fixedAttemptToken: null, createdAt: T - 1000 })] })).toBe('settling.changed')
  })
})

describe('what the listing can not show (orphans R57a)', () => {
  const alone = internal('disk', { attachedTo: [], fixedAttemptToken: token })

  it.each([
    [{}, 'orphan.owner-gone'],
    [{ [`${location}/machine`]: partial }, 'unseen.owner-kind'],
    [{ [`${location}/machine`]: denied }, 'unseen.owner-kind'],
    [{ 'sim-b/machine': partial }, 'orphan.owner-gone'],
    [{ [`${location}/disk`]: partial }, 'orphan.owner-gone'],
  ] as const)(
    'a disk without its machine under %j is %s: a listed disk whose machine’s page failed is a live disk (I5)',
    (cells, expected) => {
      const known = ownerGone({ attempts: [unbound()] })
      expect(reason({ listed: [alone], known, cells })).toBe(expected)
      expect(isSettled(verdictOn({ listed: [alone], known, cells }))).toBe(expected === 'orphan.owner-gone')
    },
  )

  it('nor does an implausible inventory show that the machine is not there', () => {
    const sealed = inventory({}, { expectation: { expected: 10, seen: 1 } })
    const [group] = formGroups([alone], 'machine')
    expect(group && judge(group, ownerGone({ attempts: [unbound()] }), sealed, clock, policy).reason).toBe('unseen.owner-kind')
  })

  it('a group with its owner is judged whatever its kind’s coverage (R78)', () => {
    expect(reason({ known: ownerGone(), cells: { [`${location}/machine`]: partial } })).toBe('orphan.owner-gone')
  })

  it('a resource listed twice in different words is looked at again', () => {
    expect(reason({ known: ownerGone(), listed: [machine(), machine({ labels: { keep: 'true' } })] })).toBe('unseen.inconsistent')
  })
})
