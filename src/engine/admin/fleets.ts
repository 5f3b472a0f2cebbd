/** Fleets: boxes of a backend that are kept ready. An operator makes, scales and deletes them; whoever sees the project sees them. */
import { LeaseholdError } from '../../model/errors.ts'
import { isReady, largestFleet, longestFleetTtlSeconds } from '../../model/fleet.ts'
import { capSeconds, defaultTtlSeconds, normaliseSeconds } from '../../model/clocks.ts'
import { checkUserLabels } from '../../model/labels.ts'
import type { FleetView } from '../../model/wire.ts'
import { forUpdate } from '../../store/bulk.ts'
import { appendEvents } from '../../store/events.ts'
import { fleetById, fleetId, listFleets as list, livingMembers, type FleetRow } from '../../store/fleets.ts'
import { findProject } from '../../store/projects.ts'
import type { Session, Tx } from '../../store/store.ts'
import { projectFor, requireFull, requireOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { readObstaclesOfBoxes, setAside } from '../fleet/aside.ts'
import { choosePlace } from '../leases/backend.ts'
import { requireKnown } from '../known.ts'
import { event, fleetTarget, resolveAbout } from '../record.ts'
import { iso, isoOrNull } from '../views.ts'
import { checkName } from './projects.ts'

export interface FleetInput {
  name: string
  project?: string
  /** Missing: the project's default. */
  backend?: string
  size: number
  ttlSeconds?: number | null
  labels?: Record<string, string>
}

export interface FleetChange {
  size?: number
  paused?: boolean
}

const stateOf = (row: FleetRow): FleetView['state'] => {
  if (row.deleted_at !== null) return 'draining'
  if (row.held_at !== null) return 'held'
  return row.paused_at !== null ? 'paused' : 'running'
}

const viewOf = async (session: Session, row: FleetRow, now: number): Promise<FleetView> => {
  const members = await livingMembers(session, row)
  const count = (is: (member: (typeof members)[number]) => boolean): number => members.filter(is).length
  const aside = await setAside(session, members, await readObstaclesOfBoxes(session, now))
  const ready = count(
    (one) => !aside.has(one.id) && isReady({ state: one.state, deadAt: one.dead_at, checkedAt: one.checked_at }, row.ttl_seconds, now),
  )
  const taken = count((one) => one.lease_id !== null && one.wiping_since === null && one.state !== 'terminating')
  const ending = count((one) => one.state === 'terminating')
  return {
    name: row.name,
    project: row.project,
    backend: row.backend,
    state: stateOf(row),
    size: row.size,
    ready,
    coming: members.length - ready - taken - ending - aside.size,
    taken,
    ending,
    setAside: aside.size,
    setAsideWhy: aside.size === 0 ? null : [...new Set(aside.values())].join('; '),
    ttlSeconds: row.ttl_seconds,
    labels: JSON.parse(row.labels) as Record<string, string>,
    createdBy: row.created_by,
    createdAt: iso(row.created_at),
    changedAt: iso(row.changed_at),
    pausedAt: isoOrNull(row.paused_at),
    heldAt: isoOrNull(row.held_at),
    heldWhy: row.held_why,
    deletedAt: isoOrNull(row.deleted_at),
  }
}

/** A project that drains gets none, and a fleet that drains keeps its name until nothing of it is left. */
const requireRoom = async (tx: Tx, project: string, name: string): Promise<FleetRow | undefined> => {
  const known = await findProject(tx, project)
  if (!known || known.deleted_at !== null) throw new LeaseholdError('not_found', `project "${project}" does not exist or is deleted`)
  const before = await fleetById(tx, fleetId(project, name))
  if (before && before.deleted_at === null)
    throw new LeaseholdError(
      'already_exists',
      `project "${project}" has a fleet "${name}"; "leasehold fleet scale ${name}" changes its size`,
    )
  if (before && (await livingMembers(tx, before)).length > 0)
    throw new LeaseholdError('already_exists', `a deleted fleet "${name}" of project "${project}" still drains; take another name`)
  return before
}

export interface MadeFleet {
  fleet: FleetView
  warnings: string[]
}

/** @throws LeaseholdError forbidden, bad_request, not_found, already_exists, backend_unavailable */
export const createFleet = async (context: EngineContext, actor: Actor, input: FleetInput): Promise<MadeFleet> => {
  requireOperator(actor)
  checkName('fleet', input.name)
  checkSize(input.size)
  const project = projectFor(actor, input.project)
  const labels = checkUserLabels(input.labels ?? {})
  const asked = normaliseSeconds('ttlSeconds', input.ttlSeconds, defaultTtlSeconds)
  const ttlSeconds = Math.min(asked.seconds, longestFleetTtlSeconds)
  const warnings =
    asked.seconds > ttlSeconds
      ? [`ttlSeconds ${input.ttlSeconds ?? capSeconds} is above the cap and was set to ${longestFleetTtlSeconds}`]
      : []
  const { backend } = await choosePlace(context, actor, project, input.backend === undefined ? {} : { backend: input.backend })
  const fleet = await context.store.write(async (tx) => {
    const before = await requireRoom(tx, project, input.name)
    const values = {
      backend: backend.name,
      size: input.size,
      ttl_seconds: ttlSeconds,
      labels: JSON.stringify(labels),
      created_by: actor.name,
      created_at: tx.now,
      changed_at: tx.now,
      paused_at: null,
      held_at: null,
      held_why: null,
      deleted_at: null,
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
    }
    const id = fleetId(project, input.name)
    if (before) await tx.db.updateTable('fleets').set(values).where('id', '=', id).execute()
    else
      await tx.db
        .insertInto('fleets')
        .values({ id, project, name: input.name, ...values })
        .execute()
    const row = (await fleetById(tx, id)) as FleetRow
    const payload = { backend: row.backend, size: row.size, ttlSeconds: row.ttl_seconds }
    await appendEvents(tx, [event(tx, 'fleet.created', payload, { project, actor: actor.name, targets: [fleetTarget(row)] })])
    return viewOf(tx, row, tx.now)
  })
  context.signals.wake('fleet')
  return { fleet, warnings }
}

const checkSize = (size: number): void => {
  if (!Number.isSafeInteger(size) || size < 0 || size > largestFleet)
    throw new LeaseholdError('bad_request', `size: must be a whole number from 0 to ${largestFleet}, not ${size}`)
}

export const listFleets = async (context: EngineContext, actor: Actor, project?: string): Promise<FleetView[]> => {
  requireFull(actor)
  const now = await context.store.now()
  return context.store.read(async (session) => {
    const views: FleetView[] = []
    for (const row of await list(session, await requireKnown(context, session, actor, { project }))) {
      const view = await viewOf(session, row, now)
      // One that is deleted is there as long as anything of it is.
      if (row.deleted_at === null || view.ready + view.coming + view.taken + view.ending + view.setAside > 0) views.push(view)
    }
    return views
  })
}

const locked = async (tx: Tx, project: string, name: string): Promise<FleetRow> => {
  const row = await forUpdate(tx, tx.db.selectFrom('fleets').selectAll().where('id', '=', fleetId(project, name))).executeTakeFirst()
  if (!row) throw new LeaseholdError('not_found', `project "${project}" has no fleet "${name}"`)
  return row
}

const change = async (
  context: EngineContext,
  actor: Actor,
  name: string,
  named: string | undefined,
  body: (tx: Tx, row: FleetRow) => Promise<void>,
): Promise<FleetView> => {
  requireOperator(actor)
  const project = projectFor(actor, named)
  const view = await context.store.write(async (tx) => {
    const row = await locked(tx, project, name)
    await body(tx, row)
    return viewOf(tx, (await fleetById(tx, row.id)) as FleetRow, tx.now)
  })
  context.signals.wake('fleet')
  return view
}

/** Whoever works on the row loses its lock: it counted by another size. */
const write = (tx: Tx, row: FleetRow, values: Partial<FleetRow>): Promise<unknown> =>
  tx.db
    .updateTable('fleets')
    .set({ ...values, changed_at: tx.now, due_at: tx.now, lock_owner: null, lock_until: null, lock_fence: row.lock_fence + 1 })
    .where('id', '=', row.id)
    .execute()

/**
 * A person's word on it: another size, a pause, or that it goes on, which ends a hold of the churn breaker too (case M2).
 * @throws LeaseholdError forbidden, bad_request, not_found
 */
export const scaleFleet = async (
  context: EngineContext,
  actor: Actor,
  name: string,
  input: FleetChange,
  project?: string,
): Promise<FleetView> => {
  if (input.size === undefined && input.paused === undefined)
    throw new LeaseholdError('bad_request', 'say what changes: size, paused, or both')
  if (input.size !== undefined) checkSize(input.size)
  return change(context, actor, name, project, async (tx, row) => {
    if (row.deleted_at !== null)
      throw new LeaseholdError('not_found', `project "${row.project}" has no fleet "${name}" any more: it is deleted`)
    const paused = input.paused ?? row.paused_at !== null
    await write(tx, row, {
      size: input.size ?? row.size,
      paused_at: paused ? (row.paused_at ?? tx.now) : null,
      ...(paused ? {} : { held_at: null, held_why: null }),
    })
    const about = { project: row.project, actor: actor.name, targets: [fleetTarget(row)] }
    const goesOn = !paused && (row.paused_at !== null || row.held_at !== null)
    await appendEvents(tx, [
      ...(input.size !== undefined && input.size !== row.size
        ? [event(tx, 'fleet.scaled', { from: row.size, to: input.size }, about)]
        : []),
      ...(paused && row.paused_at === null ? [event(tx, 'fleet.paused', {}, about)] : []),
      ...(goesOn ? [event(tx, 'fleet.resumed', { after: row.held_at === null ? 'paused' : 'held' }, about)] : []),
    ])
    if (!paused) await resolveAbout(tx, 'fleet', [row.id], 'fleet-held')
  })
}

/**
 * It drains: nothing more is made, and what nobody holds is taken back. Leases on its boxes go on, and their boxes go with them. Deleting twice changes nothing.
 * @throws LeaseholdError forbidden, not_found
 */
export const deleteFleet = (context: EngineContext, actor: Actor, name: string, project?: string): Promise<FleetView> =>
  change(context, actor, name, project, async (tx, row) => {
    if (row.deleted_at !== null) return
    await write(tx, row, { deleted_at: tx.now })
    await resolveAbout(tx, 'fleet', [row.id], 'fleet-held')
    await appendEvents(tx, [event(tx, 'fleet.deleted', {}, { project: row.project, actor: actor.name, targets: [fleetTarget(row)] })])
  })
