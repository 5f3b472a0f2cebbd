import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { showsBound } from '../../../src/model/evidence.ts'
import { formGroups } from '../../../src/model/group.ts'
import { judge } from '../../../src/model/verdict.ts'
import { isPlainlyTracked } from '../../../src/model/plainly-tracked.ts'
import {
  attempt,
  clock,
  ended,
  evidence,
  instance,
  internal,
  inventory,
  ledger,
  machine,
  ownerGone,
  policy,
  token,
  unbound,
} from './build.ts'

const double = (patch: Parameters<typeof machine>[0] = {}) =>
  machine({ ...patch, resource: { nativeId: 'i-2', immutableId: 'uid-2', ...patch.resource } })
const second = { fixedAttemptToken: 'token-2', tags: { attempt: 'token-2' } }
const failedAttempt = unbound({ id: 'at_2', number: 2, token: 'token-2' })
const retained = { id: 'lh_000000000001', state: 'released', retained: true } as const

describe('was the bound resource shown? (decisions 2, guard on counts)', () => {
  it.each([
    ['as it was made', machine(), evidence(), true],
    ['with unreadable labels', machine({ labels: null }), evidence(), true],
    ['on its way out', machine({ existence: 'going' }), evidence(), true],
    ['retained by a release', machine(), evidence({ lease: retained }), true],
    ['under another installation’s tag', machine({ tags: { installation: 'inst0002' } }), evidence(), true],
    ['gone', machine({ existence: 'gone' }), evidence(), false],
    ['as a copy', double({ fixedAttemptToken: null }), evidence(), false],
    ['by its disk only', internal('disk'), evidence(), false],
    ['and nothing is bound', machine(), evidence({ instance: instance({ boundAttemptId: null }) }), false],
    ['and its owner is gone', machine(), ownerGone(), false],
  ] as const)('%s', (_, seen, known, expected) => {
    expect(showsBound(seen, known)).toBe(expected)
  })
})

describe('letting go of what is plainly tracked while a listing still runs', () => {
  it.each([
    ['the bound machine', machine(), evidence(), true],
    ['its disk, attached', internal('disk'), evidence(), true],
    ['its disk, by its own fixed token', internal('disk', { attachedTo: [], fixedAttemptToken: token }), evidence(), true],
    ['a stray disk', internal('disk', { attachedTo: [] }), evidence(), false],
    ['a copy', double({ fixedAttemptToken: null }), evidence(), false],
    ['unreadable labels', machine({ labels: null }), evidence(), false],
    ['on its way out', machine({ existence: 'going' }), evidence(), false],
    ['another installation’s tag', machine({ tags: { installation: 'inst0002' } }), evidence(), false],
    ['another project’s ref', machine(), evidence({ ledger: ledger({ project: 'other' }) }), false],
    ['a retained box', machine(), evidence({ lease: retained }), false],
    ['a pending owner', machine(), evidence({ instance: instance({ state: 'pending' }) }), false],
    ['an ended owner', machine(), evidence({ instance: ended() }), false],
  ] as const)('%s', (_, seen, known, expected) => {
    expect(isPlainlyTracked(seen, known, policy)).toBe(expected)
  })

  it('never lets go of what a full look would not call tracked, or a part of it', () => {
    const resources = [
      machine(),
      internal('disk'),
      internal('disk', { attachedTo: [], fixedAttemptToken: token }),
      double(),
      double(second),
      machine({ labels: null }),
    ]
    const states = [
      evidence(),
      evidence({ instance: ended() }),
      evidence({ lease: retained }),
      ownerGone(),
      evidence({ attempts: [attempt(), failedAttempt] }),
    ]
    fc.assert(
      fc.property(fc.constantFrom(...resources), fc.constantFrom(...states), (seen, known) => {
        const full = judge(formGroups([seen], 'machine')[0]!, known, inventory(), clock, policy)
        if (isPlainlyTracked(seen, known, policy)) expect(['tracked', 'missing']).toContain(full.kind)
      }),
    )
  })
})
