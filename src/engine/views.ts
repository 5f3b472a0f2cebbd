/** From rows to what the wire says. */
import { stuckAfter, cleanupState } from '../model/removal.ts'
import { isLive } from '../model/lease.ts'
import type { AttemptView, CleanupView, InstanceView, LeaseView } from '../model/wire.ts'
import { attemptsOf, type AttemptRow } from '../store/attempts.ts'
import { rowsIn } from '../store/bulk.ts'
import { waitsUntil } from '../store/due.ts'
import { leftByFork, readInstallation, type InstallationRow } from '../store/installation.ts'
import { instancesByIds, type InstanceRow } from '../store/instances.ts'
import type { LeaseRow } from '../store/leases.ts'
import { removalsOfLeases, type RemovalRow } from '../store/removals.ts'
import type { Session } from '../store/store.ts'
import { leftTexts, stoppedOf } from './removal-row.ts'

export const iso = (ms: number): string => new Date(ms).toISOString()
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))

const noCleanup: CleanupView = {
  state: 'none',
  removalID: null,
  reason: null,
  attempts: 0,
  error: null,
  failedAt: null,
  retryAt: null,
  startedAt: null,
  claimExpiresAt: null,
  goneAt: null,
  stuck: false,
  heldBy: null,
  closedBy: null,
  mayBeLeft: null,
  leftTo: null,
}

/** Of what a person closed: by name what nobody proved gone, neither then nor later; null: it is over, or its provider showed nothing of it then. */
const mayBeLeft = (removal: RemovalRow, attempt: AttemptRow | undefined): string[] | null => {
  if (removal.state !== 'closed' || attempt?.outcome === 'absent') return null
  const left = leftTexts(removal, attempt)
  return left.length === 0 && stoppedOf(removal)?.seen !== undefined ? null : left
}

const cleanupOf = (
  lease: LeaseRow,
  instance: InstanceRow | undefined,
  attempts: readonly AttemptRow[],
  removal: RemovalRow | undefined,
): CleanupView => {
  if (removal)
    return {
      state: cleanupState({ state: removal.state, failedAt: removal.failed_at, heldBy: removal.held_by }),
      removalID: removal.id,
      reason: removal.cause,
      attempts: removal.failures,
      error: removal.error,
      failedAt: isoOrNull(removal.failed_at),
      retryAt: isoOrNull(removal.retry_at),
      startedAt: isoOrNull(removal.started_at),
      claimExpiresAt: isoOrNull(removal.lock_until),
      goneAt: isoOrNull(removal.gone_at),
      stuck: removal.failures >= stuckAfter,
      heldBy: removal.held_by,
      closedBy: removal.closed_by,
      mayBeLeft: mayBeLeft(
        removal,
        attempts.find((one) => one.id === removal.attempt_id),
      ),
      leftTo: null,
    }
  if (lease.returned_at !== null) return { ...noCleanup, state: 'returned' }
  if (lease.state === 'released' && instance?.lease_id === lease.id && instance.wiping_since !== null)
    return { ...noCleanup, state: 'wiping', startedAt: iso(instance.wiping_since) }
  // No removal was needed, or none could be opened yet: the create is still being settled.
  if (isLive(lease.state) || lease.release_deletes === 0) return noCleanup
  // A fork ended it by a person's word: nobody proved that what it made is gone, and nobody here looks.
  const left = instance?.state === 'terminated' ? attempts.find((one) => one.outcome !== 'absent') : undefined
  if (left) return { ...noCleanup, state: 'closed', error: left.error }
  if (instance?.state === 'terminated') return { ...noCleanup, state: 'gone', goneAt: isoOrNull(instance.terminated_at) }
  return { ...noCleanup, state: 'preparing' }
}

/** decisions 6: whatever this database says of what a fork left, the other one has it, and it may be in use there. */
const whoseCleanup = (
  lease: LeaseRow,
  attempts: readonly AttemptRow[],
  cleanup: CleanupView,
  own: InstallationRow | undefined,
): CleanupView => {
  const leftTo = leftByFork(own, lease.created_at)
  const isOver = cleanup.state === 'gone' || cleanup.state === 'returned' || attempts.every((one) => one.outcome === 'absent')
  if (leftTo === null || isOver || isLive(lease.state)) return cleanup
  return { ...cleanup, state: cleanup.state === 'none' ? 'closed' : cleanup.state, mayBeLeft: null, leftTo }
}

/** The flat names of leases 2.1: there only while they say something (leases R41). */
const flat = (cleanup: CleanupView): Partial<LeaseView> => ({
  ...(cleanup.attempts > 0 ? { cleanupAttempts: cleanup.attempts } : {}),
  ...(cleanup.error !== null ? { cleanupError: cleanup.error } : {}),
  ...(cleanup.failedAt !== null ? { cleanupFailedAt: cleanup.failedAt } : {}),
  ...(cleanup.retryAt !== null ? { cleanupRetryAt: cleanup.retryAt } : {}),
  ...(cleanup.startedAt !== null && cleanup.state !== 'gone' ? { cleanupStartedAt: cleanup.startedAt } : {}),
  ...(cleanup.claimExpiresAt !== null ? { cleanupClaimExpiresAt: cleanup.claimExpiresAt } : {}),
})

export const leaseView = (
  lease: LeaseRow,
  instance: InstanceRow | undefined,
  attempts: readonly AttemptRow[],
  removal: RemovalRow | undefined,
  own?: InstallationRow,
): LeaseView => {
  const attempt = attempts.find((one) => one.id === instance?.attempt_id) ?? attempts.at(-1)
  const cleanup = whoseCleanup(lease, attempts, cleanupOf(lease, instance, attempts, removal), own)
  const making = lease.state === 'provisioning' ? instance : undefined
  const waiting = removal ?? making
  const waits = waiting === undefined ? null : waitsUntil(waiting)
  return {
    id: lease.id,
    slug: lease.slug,
    state: lease.state,
    project: lease.project,
    owner: lease.owner,
    provider: lease.provider,
    backend: lease.backend,
    scope: attempt?.scope ?? instance?.scope ?? null,
    location: attempt?.location ?? instance?.location ?? null,
    instanceID: lease.instance_id,
    ref: instance?.ref ?? '',
    cloudID: attempt?.native_id ?? null,
    cloudImmutableID: attempt?.immutable_id ?? null,
    createdAt: iso(lease.created_at),
    updatedAt: iso(lease.updated_at),
    lastTouchedAt: iso(lease.last_touched_at),
    expiresAt: iso(lease.expires_at),
    ttlSeconds: lease.ttl_seconds,
    idleTimeoutSeconds: lease.idle_seconds,
    keep: lease.keep === 1,
    labels: JSON.parse(lease.labels) as Record<string, string>,
    createAttemptID: lease.request_key,
    releasedAt: isoOrNull(lease.released_at),
    endedAt: isoOrNull(lease.ended_at),
    retainedAt: isoOrNull(lease.retained_at),
    retainUntil: isoOrNull(lease.retain_until),
    releaseDeletesServer: lease.release_deletes === null ? null : lease.release_deletes === 1,
    failureCode: lease.failure_code,
    failureError: lease.failure_error,
    provisioningResourceMayExist: lease.may_exist === 1,
    accessWarning: lease.access_warning,
    fleet: lease.fleet,
    cleanup,
    ...flat(cleanup),
    ...(waits === null ? {} : { waitsUntil: iso(waits) }),
  }
}

/** The views of many leases in at most five statements, in the order given. */
export const leaseViews = async (session: Session, leases: readonly LeaseRow[]): Promise<LeaseView[]> => {
  const instances = new Map(
    (
      await instancesByIds(
        session,
        leases.map((lease) => lease.instance_id),
      )
    ).map((row) => [row.id, row]),
  )
  const attempts = Map.groupBy(await attemptsOf(session, [...instances.keys()]), (row) => row.instance_id)
  const removals = new Map(
    (
      await removalsOfLeases(
        session,
        leases.map((lease) => lease.id),
      )
    ).map((row) => [row.lease_id, row]),
  )
  // What lives is this installation's: a fork ends all that is not.
  const own = leases.every((lease) => isLive(lease.state)) ? undefined : await readInstallation(session)
  return leases.map((lease) =>
    leaseView(lease, instances.get(lease.instance_id), attempts.get(lease.instance_id) ?? [], removals.get(lease.id), own),
  )
}

const attemptView = (row: AttemptRow): AttemptView => ({
  id: row.id,
  number: row.number,
  outcome: row.outcome,
  openedAt: iso(row.opened_at),
  endedAt: isoOrNull(row.ended_at),
  deadlineAt: iso(row.deadline_at),
  error: row.error,
})

export const instanceViews = async (session: Session, instances: readonly InstanceRow[]): Promise<InstanceView[]> => {
  const ids = instances.map((row) => row.id)
  const attempts = Map.groupBy(await attemptsOf(session, ids), (row) => row.instance_id)
  const errors = new Map(
    (await rowsIn(session, 'removals', 'instance_id', ids, { order: ['opened_at', 'id'] })).map((row) => [row.instance_id, row.error]),
  )
  return instances.map((row) => {
    const own = attempts.get(row.id) ?? []
    const bound = own.find((one) => one.id === row.attempt_id) ?? own.at(-1)
    return {
      id: row.id,
      ref: row.ref,
      name: row.name,
      state: row.state,
      project: row.project,
      backend: row.backend,
      provider: row.provider,
      scope: row.scope,
      location: row.location,
      leaseID: row.lease_id,
      fleet: row.fleet,
      cloudID: bound?.native_id ?? null,
      cloudImmutableID: bound?.immutable_id ?? null,
      createdAt: iso(row.created_at),
      changedAt: iso(row.changed_at),
      terminatedAt: isoOrNull(row.terminated_at),
      gaveUpAt: isoOrNull(row.gave_up_at),
      removalError: errors.get(row.id) ?? null,
      attempts: own.map(attemptView),
    }
  })
}
