import { describe, expect, it } from 'vitest'
import { keyMismatch, type RemovalKey } from '../../src/model/removal-key.ts'

const key: RemovalKey = { scope: 's:1', ref: 'abc', attemptId: 'at_1', instanceId: 'in_1' }
const member = { scope: 's:1', kind: 'machine', nativeId: 'i-1' }

describe('the key of a removal', () => {
  it('is its account, attempt, ref and instance, and of every member the account: one that differs is named (leases R75)', () => {
    expect(keyMismatch(key, { attempt: key, members: [member] })).toBeNull()
    for (const field of ['scope', 'ref', 'attemptId', 'instanceId'] as const)
      expect(keyMismatch(key, { attempt: { ...key, [field]: 'other' }, members: [member] }), field).toMatch(/other/)
    expect(keyMismatch(key, { attempt: key, members: [member, { ...member, nativeId: 'i-2', scope: 's:2' }] })).toBe(
      'machine i-2 is of account s:2, and the removal of s:1',
    )
  })
})
