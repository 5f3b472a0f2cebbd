/** Holds: a person's "not this", on a lease, an instance, a resource, a project or a scope. Every removal asks them first. */
import { uuidv7Hex } from '../../lib/ids.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { HoldView } from '../../model/wire.ts'
import { appendEvents } from '../../store/events.ts'
import { holdById, insertHold, listHolds as list, removeHold as remove, type HoldRow } from '../../store/holds.ts'
import { findInstance } from '../../store/instances.ts'
import { findProject } from '../../store/projects.ts'
import { wakeHeldRemovals } from '../../store/removals.ts'
import type { Tx } from '../../store/store.ts'
import { requireFull, requireOperator, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { resolveLease } from '../leases/index.ts'
import { event, type Target } from '../record.ts'
import { iso, isoOrNull } from '../views.ts'
import { ownersOf } from './hold-owner.ts'
import { parseResourceName, requirePlace, wasSeen } from './hold-places.ts'
import { auditOperator } from './operator-audit.ts'
import { requireScope } from './scopes.ts'

export interface HoldInput {
  targetType: HoldView['targetType']
  /** An id; a lease may be named by its slug, an instance by its ref, a resource by `provider/location/native-id`. */
  targetID: string
  reason: string
  /** Missing or null: until it is removed. */
  durationSeconds?: number | null
}

export const holdView = (row: HoldRow): HoldView => ({
  id: row.id,
  targetType: row.target_type,
  targetID: row.target_id,
  project: row.project,
  reason: row.reason,
  createdBy: row.created_by,
  createdAt: iso(row.created_at),
  until: isoOrNull(row.until_at),
  removedAt: isoOrNull(row.removed_at),
})

interface Found {
  id: string
  name: string
  project: string | null
}
const notFound = (input: HoldInput): LeaseholdError =>
  new LeaseholdError(
    'not_found',
    `no ${input.targetType} "${input.targetID}" is visible to this token; "leasehold explain ${input.targetID}" says what the name means here`,
  )

/** An operator of one project holds only what that project made, and what was made with it: a hold works whoever asks for the removal. */
const resourceOf = (actor: Actor, input: HoldInput, owners: readonly string[]): Found => {
  const [owner] = owners
  if (actor.project !== null && (owners.length !== 1 || owner !== actor.project)) throw notFound(input)
  return { id: input.targetID, name: input.targetID, project: owners.length === 1 && owner !== undefined ? owner : null }
}

/** @param owners of a resource */
const targetOf = async (tx: Tx, actor: Actor, input: HoldInput, owners: readonly string[]): Promise<Found> => {
  switch (input.targetType) {
    case 'lease': {
      const lease = await resolveLease(tx, actor, input.targetID, tx.now)
      return { id: lease.id, name: lease.slug, project: lease.project }
    }
    case 'instance': {
      const instance = await findInstance(tx, input.targetID)
      if (!instance || !seesProject(actor, instance.project)) throw notFound(input)
      return { id: instance.id, name: instance.name, project: instance.project }
    }
    case 'project': {
      const project = await findProject(tx, input.targetID)
      if (!project || !seesProject(actor, project.name)) throw notFound(input)
      return { id: project.name, name: project.name, project: project.name }
    }
    case 'scope':
      await requireScope(tx, actor, input.targetID)
      return { id: input.targetID, name: input.targetID, project: actor.project }
    case 'resource':
      return resourceOf(actor, input, owners)
  }
}

const targetsOf = (row: HoldRow, name: string): Target[] => [
  { type: 'hold', id: row.id, name: row.id },
  { type: row.target_type, id: row.target_id, name },
]

const notSeenYet = (target: string): string =>
  `nothing here has ever seen ${target}: the hold stands for when it comes, and is for nothing if the name is wrong`

/**
 * What was never seen can be held by name, where it may still come; the answer then says so.
 * @throws LeaseholdError forbidden, not_found, bad_request
 */
export const addHold = async (context: EngineContext, actor: Actor, input: HoldInput): Promise<HoldView> => {
  requireOperator(actor)
  const reason = input.reason.trim()
  if (reason === '') throw new LeaseholdError('bad_request', 'reason: say why, for those who find it held')
  const name = input.targetType === 'resource' ? parseResourceName(input.targetID) : null
  // Those of one project hold only what it made: they are not told of places of others.
  if (name !== null && actor.project === null) await requirePlace(context, name)
  const { owners, there } = name === null ? { owners: [], there: false } : await ownersOf(context, actor, input.targetID, name)
  const { row, seen } = await context.store.write(async (tx) => {
    const target = await targetOf(tx, actor, input, owners)
    const until = input.durationSeconds == null ? null : tx.now + input.durationSeconds * 1000
    const hold = await insertHold(tx, {
      id: `hd_${uuidv7Hex(tx.now)}`,
      target_type: input.targetType,
      target_id: target.id,
      project: target.project,
      reason,
      created_by: actor.name,
      until_at: until,
    })
    await appendEvents(tx, [
      event(
        tx,
        'hold.added',
        { reason, until: isoOrNull(until) },
        { project: hold.project, actor: actor.name, targets: targetsOf(hold, target.name) },
      ),
    ])
    const scope = input.targetType === 'scope' ? target.id : null
    await auditOperator(
      tx,
      actor,
      { project: hold.project, scope },
      { action: 'hold.add', hold: hold.id, targetType: hold.target_type, targetID: hold.target_id, reason, until: isoOrNull(until) },
    )
    return { row: hold, seen: name === null || there || owners.length > 0 || (await wasSeen(tx, input.targetID, name)) }
  })
  return { ...holdView(row), ...(seen ? {} : { warning: notSeenYet(row.target_id) }) }
}

/** @param all removed and ended ones too */
export const listHolds = async (context: EngineContext, actor: Actor, all = false): Promise<HoldView[]> => {
  requireFull(actor)
  const now = await context.store.now()
  return (await context.store.read((session) => list(session, { project: actor.project, all, now }))).map(holdView)
}

/**
 * What it held back is tried again at once. Removing twice changes nothing.
 * @throws LeaseholdError forbidden, not_found
 */
export const removeHold = async (context: EngineContext, actor: Actor, id: string): Promise<HoldView> => {
  requireOperator(actor)
  const row = await context.store.write(async (tx) => {
    const hold = await holdById(tx, id)
    const visible = hold !== undefined && (actor.project === null || hold.project === actor.project)
    if (!visible)
      throw new LeaseholdError('not_found', `no hold "${id}" is visible to this token; "leasehold hold list" shows those that are`)
    if (hold.removed_at !== null) return hold
    await remove(tx, id, actor.name)
    await appendEvents(tx, [
      event(tx, 'hold.removed', {}, { project: hold.project, actor: actor.name, targets: targetsOf(hold, hold.target_id) }),
    ])
    await auditOperator(
      tx,
      actor,
      { project: hold.project, scope: null },
      { action: 'hold.remove', hold: id, targetType: hold.target_type, targetID: hold.target_id },
    )
    await wakeHeldRemovals(tx)
    return (await holdById(tx, id)) as HoldRow
  })
  context.signals.wake('remove')
  return holdView(row)
}
