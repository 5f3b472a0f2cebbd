/** Removals as operators see them: how far each is, what is stuck, and what comes next. */
import { isStuck, nextStep, type RemovalStanding } from '../../model/removal-next.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { isLeftByFork } from '../../model/stop.ts'
import { asksWhy, missingText } from '../../model/stopped.ts'
import type { RemovalView } from '../../model/wire-removals.ts'
import { isOverRemoval } from '../../model/removal.ts'
import { listBackends } from '../../store/backends.ts'
import { rowsIn } from '../../store/bulk.ts'
import { leftByFork, readInstallation, type InstallationRow } from '../../store/installation.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { Session } from '../../store/store.ts'
import { waitsUntil } from '../../store/due.ts'
import { contradictedRemovals } from '../contradicted.ts'
import { removalsByIds, unfinishedRemovals, type RemovalRow } from '../../store/removals.ts'
import { requireFull, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { requireKnown } from '../known.ts'
import { fingerprintOf, identitiesOf, leftOf, leftTexts, plannedOf, progressOf, stoppedOf, unlistedOf } from '../removal-row.ts'
import { byHand } from '../removal-left.ts'
import { iso, isoOrNull } from '../views.ts'

const standingOf = (context: EngineContext, row: RemovalRow, { own, contradicted, attempt, config }: Beside): RemovalStanding => ({
  id: row.id,
  state: row.state,
  cause: row.cause,
  failures: row.failures,
  acceptedAt: row.accepted_at,
  retryAt: row.retry_at,
  heldBy: row.held_by,
  dueAt: row.due_at,
  waitsUntil: waitsUntil(row),
  missing: asksWhy(stoppedOf(row)),
  unlisted: unlistedOf(row).length > 0,
  contradicted,
  leftTo: leftByFork(own, row.opened_at) ?? (isLeftByFork(row.held_by ?? '') ? leftByFork(own, 0) : null),
  fingerprint: fingerprintOf(row),
  byHand: isOverRemoval(row.state) ? '' : byHand(leftOf(row, attempt), context.providers.get(row.provider), config),
})

const membersOf = (row: RemovalRow): RemovalView['members'] => {
  const gone = new Set(progressOf(row))
  const missing = new Set(stoppedOf(row)?.missing.map((one) => one.immutableId))
  const unbound = plannedOf(row)
  const members = row.identity !== null ? identitiesOf(row) : unbound.length > 0 ? unbound : (stoppedOf(row)?.seen?.there ?? [])
  return members.map(({ location, kind, nativeId, immutableId }) => ({
    location,
    kind,
    nativeID: nativeId,
    immutableID: immutableId,
    state: gone.has(immutableId) || row.state === 'gone' ? 'gone' : missing.has(immutableId) ? 'missing' : 'left',
  }))
}

interface Beside {
  lease: LeaseRow | undefined
  attempt: AttemptRow | undefined
  own: InstallationRow | undefined
  contradicted: boolean
  config: Record<string, unknown>
}

/** What is told with each: its lease, its attempt, and whose this database is. */
const beside = async (session: Session, rows: readonly RemovalRow[]): Promise<(row: RemovalRow) => Beside> => {
  const leaseRows = await rowsIn(
    session,
    'leases',
    'id',
    rows.flatMap((row) => row.lease_id ?? []),
  )
  const attemptRows = await rowsIn(
    session,
    'attempts',
    'id',
    rows.map((row) => row.attempt_id),
  )
  const leases = new Map(leaseRows.map((row) => [row.id, row]))
  const attempts = new Map(attemptRows.map((row) => [row.id, row]))
  const configs = new Map((await listBackends(session, null)).map((row) => [`${row.project}/${row.name}`, row.config]))
  const own = await readInstallation(session)
  const contradicted = await contradictedRemovals(session, rows)
  return (row) => ({
    contradicted: contradicted.has(row.id),
    lease: row.lease_id === null ? undefined : leases.get(row.lease_id),
    attempt: attempts.get(row.attempt_id),
    own,
    config: JSON.parse(configs.get(`${row.project}/${row.backend}`) ?? '{}') as Record<string, unknown>,
  })
}

const view = (context: EngineContext, row: RemovalRow, told: Beside, now: number): RemovalView => {
  const { lease, attempt } = told
  const standing = standingOf(context, row, told)
  return {
    id: row.id,
    state: row.state,
    version: row.version,
    project: row.project,
    backend: row.backend,
    provider: row.provider,
    scope: row.scope,
    location: row.location,
    name: row.name,
    ref: row.ref,
    instanceID: row.instance_id,
    leaseID: row.lease_id,
    owner: lease?.owner ?? null,
    cause: row.cause,
    openedAt: iso(row.opened_at),
    ageSeconds: Math.max(0, Math.floor((now - row.opened_at) / 1000)),
    failures: row.failures,
    reason: row.error,
    retryAt: isoOrNull(row.retry_at),
    heldBy: row.held_by,
    waitsUntil: isoOrNull(waitsUntil(row)),
    stuck: isStuck(standing, now),
    nextStep: nextStep(standing, context.sweepSettings(row.provider).mode.value),
    members: membersOf(row),
    fingerprint: standing.fingerprint,
    left: leftTexts(row, attempt),
    leftSeenAt: isoOrNull(stoppedOf(row)?.seen?.at ?? null),
    missing: stoppedOf(row)?.missing.map(missingText) ?? [],
    closedAt: isoOrNull(row.closed_at),
    closedBy: row.closed_by,
    closedReason: row.closed_reason,
  }
}

/** What is neither proved gone nor closed: what is stuck first, then the oldest. */
export const listRemovals = async (
  context: EngineContext,
  actor: Actor,
  input: { project?: string; stuck?: boolean; limit: number },
): Promise<RemovalView[]> => {
  requireFull(actor)
  const now = await context.store.now()
  const views = await context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, { project: input.project })
    const rows = await unfinishedRemovals(session, project)
    const told = await beside(session, rows)
    return rows.map((row) => view(context, row, told(row), now))
  })
  return views
    .filter((one) => input.stuck !== true || one.stuck)
    .toSorted((a, b) => Number(b.stuck) - Number(a.stuck) || b.ageSeconds - a.ageSeconds)
    .slice(0, input.limit)
}

export const removalNotFound = (id: string): LeaseholdError =>
  new LeaseholdError('not_found', `no removal "${id}" is visible to this token; "leasehold removals" lists the open ones`)

/** @throws LeaseholdError not_found */
export const getRemoval = async (context: EngineContext, actor: Actor, id: string): Promise<RemovalView> => {
  requireFull(actor)
  const now = await context.store.now()
  return context.store.read(async (session) => {
    const [row] = await removalsByIds(session, [id])
    if (!row || !seesProject(actor, row.project)) throw removalNotFound(id)
    const told = await beside(session, [row])
    return view(context, row, told(row), now)
  })
}
