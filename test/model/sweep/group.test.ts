import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SeenResource } from '../../../src/model/evidence.ts'
import { formGroups, leader, type Group } from '../../../src/model/group.ts'
import { internal, machine, ref, token } from './build.ts'

const ids = (group: Group): string[] => group.members.map((member) => member.resource.nativeId)
const groups = (...resources: SeenResource[]): string[][] => formGroups(resources, 'machine').map(ids)
const other = (id: string, patch: Parameters<typeof machine>[0] = {}): SeenResource =>
  machine({ ...patch, resource: { nativeId: id, immutableId: `uid-${id}`, ...patch.resource } })

describe('groups (orphans R18, R19, U14)', () => {
  it('holds an owner and what is attached to it, the owner first', () => {
    const [group] = formGroups([internal('disk'), internal('ip', { attachedTo: ['nic-1'] }), internal('nic'), machine()], 'machine')
    expect(group && ids(group)).toEqual(['i-1', 'disk-1', 'ip-1', 'nic-1'])
    expect(group).toMatchObject({ ref, token, outside: [], shared: false, inconsistent: false })
    expect(group && leader(group).resource.nativeId).toBe('i-1')
  })

  it('attachment reads both ways: a machine may name its disk', () => {
    expect(groups(machine({ attachedTo: ['disk-1'] }), internal('disk', { attachedTo: [] }))).toEqual([['i-1', 'disk-1']])
  })

  it('two attempts of one ref are two groups (orphans R13, R60)', () => {
    const second = { fixedAttemptToken: 'token-2', tags: { attempt: 'token-2' } }
    expect(groups(machine(), other('i-2', second))).toEqual([['i-1'], ['i-2']])
  })

  it('a copy with copied tags is a group of its own, and takes nothing of the original with it', () => {
    expect(groups(machine(), internal('disk'), other('i-9', { fixedAttemptToken: null }))).toEqual(
      expect.arrayContaining([['i-1', 'disk-1'], ['i-9']]),
    )
  })

  it('one attempt’s resources in two locations are two groups (orphans U9)', () => {
    expect(groups(machine(), other('i-2', { resource: { location: 'sim-b' } }))).toHaveLength(2)
  })

  it('another installation’s tags on the same ref are another group (case B3)', () => {
    expect(groups(machine(), other('i-2', { tags: { installation: 'inst0002' } }))).toHaveLength(2)
  })

  it('a machine that lost its installation’s tag is still the machine of its disk', () => {
    expect(groups(machine({ tags: { installation: null } }), internal('disk'))).toEqual([['i-1', 'disk-1']])
  })

  it('what has lost its owner is still a group (orphans R19)', () => {
    const [group, ...rest] = formGroups([internal('disk', { attachedTo: [] })], 'machine')
    expect(rest).toEqual([])
    expect(group).toMatchObject({ owner: null, ref })
  })

  it('an unattached internal joins the one owner whose fixed token it bears, and no owner on the word of a tag', () => {
    expect(groups(machine(), internal('disk', { attachedTo: [], fixedAttemptToken: token }))).toEqual([['i-1', 'disk-1']])
    expect(groups(machine(), internal('disk', { attachedTo: [] }))).toHaveLength(2)
  })

  it('what two owners share belongs to neither', () => {
    const found = formGroups([machine(), other('i-2'), internal('disk', { attachedTo: ['i-1', 'i-2'] })], 'machine')
    expect(found.map(ids)).toEqual(expect.arrayContaining([['i-1'], ['i-2'], ['disk-1']]))
    expect(found.find((group) => group.owner === null)?.shared).toBe(true)
  })

  it('sees an attachment to something outside, also where a disk bears its machine’s name', () => {
    expect(formGroups([internal('disk', { attachedTo: ['i-foreign'] })], 'machine')[0]?.outside).toEqual(['i-foreign'])
    const named = { resource: { nativeId: 'vm1' }, attachedTo: ['vm1'] }
    expect(formGroups([internal('disk', named)], 'machine')[0]?.outside).toEqual(['vm1'])
    expect(formGroups([machine({ resource: { nativeId: 'vm1' } }), internal('disk', named)], 'machine')[0]?.outside).toEqual([])
  })

  it('what is gone does not exist (case F3)', () => {
    expect(groups(machine({ existence: 'gone' }))).toEqual([])
    expect(groups(machine({ existence: 'gone' }), internal('disk'))).toEqual([['disk-1']])
  })

  it('a page that came twice counts once; the same resource in other words makes the group inconsistent', () => {
    expect(groups(machine(), machine())).toEqual([['i-1']])
    expect(formGroups([machine(), machine()], 'machine')[0]?.inconsistent).toBe(false)
    expect(formGroups([machine(), machine({ labels: { keep: 'true' } })], 'machine')[0]?.inconsistent).toBe(true)
    expect(formGroups([machine(), machine({ existence: 'going' })], 'machine')[0]?.inconsistent).toBe(true)
    expect(formGroups([machine({ existence: 'gone', name: 'a' }), machine({ name: 'z' })], 'machine')[0]?.inconsistent).toBe(true)
  })

  it('what has no readable ref is grouped with nothing', () => {
    expect(groups(machine({ tags: { ref: null } }), other('i-2', { tags: { ref: null } }))).toHaveLength(2)
  })

  it('never depends on the order of the listing (case B7)', () => {
    const all = [
      machine(),
      internal('disk'),
      internal('nic'),
      internal('ip', { attachedTo: ['nic-1'] }),
      other('i-2', { fixedAttemptToken: 'token-2' }),
      other('i-9', { fixedAttemptToken: null }),
      machine({ labels: null }),
      internal('disk', { resource: { nativeId: 'd-2', immutableId: 'd-2' }, attachedTo: ['i-1', 'i-9'] }),
    ]
    const expected = formGroups(all, 'machine')
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (shuffled) => {
        expect(formGroups(shuffled, 'machine')).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })
})
