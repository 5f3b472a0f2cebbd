/**
 * Keeping boxes ready: for each fleet, what is there is counted, and what is missing is reserved for the provision pipeline, which makes it as it makes the
 * box of a lease. What is too many or too old goes by the ordered removals. Level-triggered: every look decides afresh, so nothing is lost with an event.
 */
import { hex } from '../../lib/ids.ts'
import { errorText } from '../../lib/redact.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { decideFleet, type FleetDecision, type FleetFacts, type MemberFacts } from '../../model/fleet.ts'
import { attemptsOf } from '../../store/attempts.ts'
import { findBackend } from '../../store/backends.ts'
import { stillHeld, unlocked, wakeRow } from '../../store/due.ts'
import { appendEvents } from '../../store/events.ts'
import { endedMembers, fleetById, livingMembers, type FleetRow } from '../../store/fleets.ts'
import { lockInstances, type InstanceRow } from '../../store/instances.ts'
import { findProject } from '../../store/projects.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { choosePlace } from '../leases/backend.ts'
import { openRemovals } from '../open-removals.ts'
import type { Held, PipelineSpec } from '../pipeline.ts'
import { insertPlaceholder, type Place } from '../placeholder.ts'
import { event, fleetTarget, reportFinding } from '../record.ts'
import { readObstaclesOfBoxes, setAside } from './aside.ts'

const recentMs = 1_800_000
const unreachedMs = 60_000

export const fleetFacts = (row: FleetRow): FleetFacts => ({
  size: row.size,
  ttlSeconds: row.ttl_seconds,
  changedAt: row.changed_at,
  paused: row.paused_at !== null,
  held: row.held_at !== null,
  deleted: row.deleted_at !== null,
})

/** @param aside what is set aside, by its id */
export const memberFacts = (row: InstanceRow, aside: ReadonlyMap<string, string>): MemberFacts => ({
  id: row.id,
  state: row.state,
  taken: row.lease_id !== null,
  wiping: row.wiping_since !== null,
  createdAt: row.created_at,
  changedAt: row.changed_at,
  deadAt: row.dead_at,
  checkedAt: row.checked_at,
  served: row.served,
  aside: aside.has(row.id),
})

/** Who took one meanwhile keeps it: only what is nobody's under its lock goes. */
const removeIdle = async (tx: Tx, remove: FleetDecision['remove']): Promise<void> => {
  const causes = new Map(remove.map((one) => [one.id, one.cause]))
  const idle = (await lockInstances(tx, [...causes.keys()])).filter((row) => row.state === 'idle' && row.lease_id === null)
  const attempts = new Map(
    (
      await attemptsOf(
        tx,
        idle.map((row) => row.id),
      )
    ).map((row) => [row.id, row]),
  )
  for (const instance of idle) {
    const attempt = instance.attempt_id === null ? undefined : attempts.get(instance.attempt_id)
    const cause = causes.get(instance.id)
    if (attempt && cause) await openRemovals(tx, [{ instance, lease: null, attempt, cause }])
  }
}

const hold = async (tx: Tx, fleet: FleetRow, why: string): Promise<void> => {
  await tx.db.updateTable('fleets').set({ held_at: tx.now, held_why: why }).where('id', '=', fleet.id).execute()
  await appendEvents(tx, [event(tx, 'fleet.held', { why }, { project: fleet.project, targets: [fleetTarget(fleet)] })])
  const [last] = (await endedMembers(tx, fleet, tx.now - recentMs)).toSorted((a, b) => b.changed_at - a.changed_at)
  const [attempt] = last ? (await attemptsOf(tx, [last.id])).toReversed() : []
  await reportFinding(tx, {
    code: 'fleet-held',
    project: fleet.project,
    scope: attempt?.scope ?? null,
    target: fleetTarget(fleet),
    message: `fleet ${fleet.name}: ${why}${attempt?.error ? ` (the last one: ${attempt.error})` : ''}; "leasehold fleet scale ${fleet.name} --resume" lets it go on`,
    evidence: { fleet: fleet.id, since: new Date(tx.now).toISOString() },
  })
}

/** Nothing is made in what drains; locked, so that it does not begin to drain meanwhile. */
const mayCreate = async (tx: Tx, fleet: FleetRow): Promise<boolean> => {
  const project = await findProject(tx, fleet.project)
  const backend = await findBackend(tx, fleet.project, fleet.backend)
  return project?.deleted_at === null && backend?.deleted_at === null
}

const create = async (tx: Tx, fleet: FleetRow, place: Place, count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await insertPlaceholder(tx, place, { name: `${fleet.name}-${hex(3)}`, leaseId: null, fleet: fleet.name })
}

const membersOf = async (tx: Tx, fleet: FleetRow): Promise<MemberFacts[]> => {
  const living = await livingMembers(tx, fleet)
  const aside = await setAside(tx, living, await readObstaclesOfBoxes(tx, tx.now))
  return [...living, ...(await endedMembers(tx, fleet, tx.now - recentMs))].map((row) => memberFacts(row, aside))
}

/** @param place null: nobody can say where they would be made */
const apply = async (tx: Tx, held: Held, place: Place | null): Promise<FleetDecision | null> => {
  if ((await stillHeld(tx, 'fleets', [held])).size === 0) return null
  const fleet = await fleetById(tx, held.id)
  if (!fleet) return null
  const decision = decideFleet(fleetFacts(fleet), await membersOf(tx, fleet), tx.now)
  await removeIdle(tx, decision.remove)
  for (const id of decision.settle) await wakeRow(tx, 'instances', id)
  if (decision.hold !== null) await hold(tx, fleet, decision.hold)
  if (decision.create > 0 && place !== null && (await mayCreate(tx, fleet))) await create(tx, fleet, place, decision.create)
  const lookMs = place === null && decision.create > 0 ? unreachedMs : decision.lookMs
  await tx.db
    .updateTable('fleets')
    .set(unlocked(lookMs === null ? null : tx.now + lookMs))
    .where('id', '=', fleet.id)
    .execute()
  return decision
}

export const fleetPipeline = (context: EngineContext): PipelineSpec => ({
  name: 'fleet',
  table: 'fleets',
  capacity: 64,
  async process(held) {
    const fleet = await context.store.read((session) => fleetById(session, held.id))
    const place =
      !fleet || fleet.deleted_at !== null
        ? null
        : await choosePlace(context, { project: null }, fleet.project, { backend: fleet.backend }).catch((error: unknown) => {
            if (!(error instanceof LeaseholdError)) throw error
            context.log.warn({ fleet: held.id, error: errorText(error) }, 'no box of a fleet can be made')
            return null
          })
    const decision = await context.store.write((tx) => apply(tx, held, place))
    if (decision === null) return
    if (decision.create > 0 || decision.settle.length > 0) context.signals.wake('provision')
    if (decision.remove.length > 0) context.signals.wake('remove')
  },
})
