import { describe, expect, it } from 'vitest'
import { keepLabel } from '../../../src/model/keep.ts'

describe('keep labels (leases R56, R68, R95)', () => {
  it.each([
    'keep',
    'Keep',
    'KEEP',
    ' keep ',
    'leasehold.keep',
    'leasehold_keep',
    'leasehold-keep',
    'leasehold.dev/keep',
    'team/keep',
    'keep_until',
    'do-not-delete',
    'DoNotDelete',
    'protected',
  ])('the key %j protects', (key) => {
    expect(keepLabel({ a: 'b', [key]: 'true' })).toBe(key)
  })

  it.each(['true', 'TRUE', ' Yes ', '1', 'on', '7 days', '2027-01-01', 'falsch', '-', '00'])('the value %j protects (case H6)', (value) => {
    expect(keepLabel({ keep: value })).toBe('keep')
  })

  it.each(['', ' ', 'false', 'FALSE', ' no ', 'n', '0', 'off', 'OFF'])('the value %j does not', (value) => {
    expect(keepLabel({ keep: value })).toBeNull()
  })

  it.each(['housekeeping', 'keeper', 'upkeep', 'name', 'delete', 'leasehold'])('the key %j is none', (key) => {
    expect(keepLabel({ [key]: 'true' })).toBeNull()
  })

  it('one key that says no does not undo another that says yes', () => {
    expect(keepLabel({ keep: 'false', 'leasehold.keep': 'true' })).toBe('leasehold.keep')
  })

  it('a value that is no text protects (case F2)', () => {
    expect(keepLabel({ keep: null as unknown as string })).toBe('keep')
  })
})
