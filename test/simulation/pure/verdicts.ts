/** I5, I6 and I10: what may be called an orphan, against the truth about it. */
import { formGroups, identityKey, type Group } from '../../../src/model/group.ts'
import { judge } from '../../../src/model/verdict.ts'
import type { Verdict } from '../../../src/model/verdict-case.ts'
import { clock } from '../../model/sweep/build.ts'
import type { Property } from './tape.ts'
import { worldOf, type Truth, type World } from './world.ts'

export type Decide = (group: Group, world: World) => Verdict
export const real: Decide = (group, world) => judge(group, world.evidence, world.inventory, clock, world.policy)

interface Orphan {
  group: Group
  world: World
  truths: Truth[]
}
const orphansOf = (world: World, decide: Decide): Orphan[] =>
  formGroups(world.listed, world.policy.ownerKind)
    .filter((group) => decide(group, world).kind === 'orphan')
    .map((group) => ({ group, world, truths: group.members.map((member) => world.truth.get(identityKey(member))!) }))

const each =
  (check: (orphan: Orphan) => void): Property<Decide> =>
  (tape, decide) => {
    for (const orphan of orphansOf(worldOf(tape), decide)) check(orphan)
  }

/** I5: what lost its owner in a listing has lost it in truth. */
export const i5 = each(({ group, world }) => {
  if (group.owner !== null) return
  const owner = [...world.truth.values()].find(
    (one) =>
      one.seen.resource.kind === 'machine' &&
      one.maker === 'ours' &&
      `token-${one.attempt}` === group.token &&
      one.seen.resource.scope === world.policy.scope,
  )
  if (owner !== undefined) throw new Error(`${identityKey(owner.seen)} exists, and a failed listing was read as empty`)
})

/** I6: every member was truly made by an attempt of ours, and still says so. */
export const i6 = each(({ truths }) => {
  for (const one of truths)
    if (one.maker !== 'ours' || !one.intact) throw new Error(`${identityKey(one.seen)} is no proved property of ours: ${one.maker}`)
})

/** I10: nobody current holds any of it. */
export const i10 = each(({ group, truths, world }) => {
  const { instance, lease, ledger } = world.evidence
  const active = instance !== null && ['provisioning', 'idle', 'busy'].includes(instance.state)
  const leased = lease !== null && (['provisioning', 'active'].includes(lease.state) || lease.retained)
  for (const { seen, attempt } of truths) {
    if ((active || leased) && instance?.boundAttemptId === `at_${attempt}`) throw new Error(`${identityKey(seen)} is what somebody holds`)
    if (seen.labels === null) throw new Error('its labels can not be read')
    for (const [key, value] of Object.entries(seen.labels as Record<string, string>))
      if (key.toLowerCase().endsWith('keep') && value !== 'false') throw new Error('somebody keeps it')
  }
  if (ledger?.project !== 'default') throw new Error('it is another project’s')
  for (const hold of world.policy.holds) {
    const hit =
      hold.targetType === 'resource'
        ? group.members.some((member) => hold.targetId.endsWith(`/${member.resource.location}/${member.resource.nativeId}`))
        : hold.targetType !== 'lease' || lease !== null
    if (hit) throw new Error(`hold on ${hold.targetType}`)
  }
})
