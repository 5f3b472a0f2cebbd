/** Reserving a lease: lease, placeholder instance, ledger row and attempt in one transaction, before any provider is called (I1, orphans R4-R8). */
import { createHash } from 'node:crypto'
import { hex } from '../../lib/ids.ts'
import { admit, anyCap } from '../../model/admission.ts'
import { defaultIdleSeconds, defaultTtlSeconds, expiresAt, normaliseSeconds } from '../../model/clocks.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { isLeaseId, isRequestKey, type LeaseId } from '../../model/ids.ts'
import { checkUserLabels } from '../../model/labels.ts'
import { idleWarningAt, isLive } from '../../model/lease.ts'
import { inventSlug, slugify, withSuffix } from '../../model/slug.ts'
import type { LeaseView } from '../../model/wire.ts'
import { compactedByLease } from '../../store/compacted.ts'
import { appendEvents } from '../../store/events.ts'
import { createRequest, leaseById, claimCreateRequest, liveLeases, slugIsLive, type LeaseRow } from '../../store/leases.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { requireFleet, takeFromFleet } from '../fleet/take.ts'
import { wakeFleet } from '../fleet/wake.ts'
import { leaseToken } from '../lease-token.ts'
import { projectFor, requireFull, type Actor } from '../actor.ts'
import { requireLiving } from '../known.ts'
import { event, instanceTarget, leaseTarget } from '../record.ts'
import { leaseViews } from '../views.ts'
import { insertPlaceholder, type Place } from '../placeholder.ts'
import { choosePlace } from './backend.ts'

export interface CreateInput {
  leaseID?: string
  createAttemptID?: string
  slug?: string
  provider?: string
  backend?: string
  project?: string
  /** A box that is ready, of this fleet; where none is, one is made. */
  fleet?: string
  ttlSeconds?: number | null
  idleTimeoutSeconds?: number | null
  keep?: boolean
  labels?: Record<string, string>
}

export interface Created {
  lease: LeaseView
  leaseToken: string
  warnings: string[]
  /** The lease was there already: the same request came again. */
  replayed: boolean
}

interface Normalised {
  project: string
  slug: string | null
  fleet: string | null
  ttlSeconds: number
  idleSeconds: number
  keep: boolean
  labels: Record<string, string>
  hash: string
  warnings: string[]
}

const bad = (message: string): never => {
  throw new LeaseholdError('bad_request', message)
}

const normalise = (project: string, input: CreateInput): Normalised => {
  const ttl = normaliseSeconds('ttlSeconds', input.ttlSeconds, defaultTtlSeconds)
  const idle = normaliseSeconds('idleTimeoutSeconds', input.idleTimeoutSeconds, defaultIdleSeconds)
  const slug = input.slug === undefined ? null : (slugify(input.slug) ?? bad(`slug: "${input.slug}" has no letter or digit in it`))
  const labels = checkUserLabels(input.labels ?? {})
  const keep = input.keep ?? false
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  // leases R11: what the request means, not how it was spelt.
  const plain = [project, slug, input.provider ?? null, input.backend ?? null, ttl.seconds, idle.seconds, keep, sorted]
  // Only where it is given: a create from before there were fleets is still the same.
  const meaning = JSON.stringify(input.fleet === undefined ? plain : [...plain, input.fleet])
  return {
    project,
    slug,
    keep,
    labels,
    fleet: input.fleet ?? null,
    ttlSeconds: ttl.seconds,
    idleSeconds: idle.seconds,
    hash: createHash('sha256').update(meaning).digest('hex'),
    warnings: [ttl.warning, idle.warning].filter((warning) => warning !== null),
  }
}

const freeSlug = async (tx: Tx, project: string, wanted: string | null): Promise<string> => {
  let slug = wanted ?? inventSlug([Math.random(), Math.random()])
  while (await slugIsLive(tx, project, slug)) slug = withSuffix(wanted ?? slug.split('-').slice(0, 2).join('-'), hex(2))
  return slug
}

interface Reservation {
  actor: Actor
  request: Normalised
  place: Place
  leaseId: LeaseId
  requestKey: string | null
  fixed: boolean
}

const reserve = async (tx: Tx, reservation: Reservation): Promise<{ row: LeaseRow; warning: string | null }> => {
  const { actor, request, place, leaseId, requestKey, fixed } = reservation
  const slug = await freeSlug(tx, request.project, request.slug)
  const clocks = { createdAt: tx.now, lastTouchedAt: tx.now, ttlSeconds: request.ttlSeconds, idleSeconds: request.idleSeconds }
  const end = expiresAt(clocks)
  const { ready, warning } =
    request.fleet === null
      ? { ready: undefined, warning: null }
      : await takeFromFleet(tx, request.project, request.fleet, leaseId, request.ttlSeconds)
  const instance = ready?.instance ?? (await insertPlaceholder(tx, place, { name: slug, leaseId, fleet: request.fleet }))
  const lease: LeaseRow = {
    id: leaseId,
    slug,
    project: request.project,
    owner: actor.name,
    provider: place.backend.provider,
    backend: place.backend.name,
    instance_id: instance.id,
    state: ready ? 'active' : 'provisioning',
    keep: request.keep ? 1 : 0,
    ttl_seconds: request.ttlSeconds,
    idle_seconds: request.idleSeconds,
    labels: JSON.stringify(request.labels),
    created_at: tx.now,
    updated_at: tx.now,
    last_touched_at: tx.now,
    expires_at: end,
    request_key: requestKey,
    fixed_id: fixed ? 1 : 0,
    request_hash: request.hash,
    cancelled_at: null,
    released_at: null,
    ended_at: null,
    release_deletes: null,
    retained_at: null,
    retain_until: null,
    failure_code: null,
    failure_error: null,
    may_exist: 0,
    access_warning: null,
    idle_warned_for: null,
    fleet: request.fleet,
    returned_at: null,
    due_at: idleWarningAt({ ...clocks, expiresAt: end, idleWarnedFor: null }) ?? end,
    lock_fence: 0,
    lock_owner: null,
    lock_until: null,
  }
  await tx.db.insertInto('leases').values(lease).execute()
  const payload = { provider: lease.provider, ttlSeconds: lease.ttl_seconds, idleSeconds: lease.idle_seconds }
  const about = { project: lease.project, actor: actor.name, targets: [leaseTarget(lease), instanceTarget(instance)] }
  await appendEvents(tx, [
    event(tx, 'lease.created', payload, about),
    ...(ready ? [event(tx, 'lease.active', { cloudId: ready.cloudId, adopted: false }, about)] : []),
  ])
  return { row: lease, warning }
}

const conflict = (message: string): never => {
  throw new LeaseholdError('lease_id_conflict', message)
}

/** The lease that this very request made before, or null; refuses drift, tombstones and ids that are taken (leases R10, R11). */
const replayOf = async (
  tx: Tx,
  request: Normalised,
  leaseId: LeaseId | null,
  requestKey: string | null,
  fixed: boolean,
): Promise<LeaseRow | null> => {
  if (requestKey !== null) {
    const known = await createRequest(tx, requestKey)
    if (known?.state === 'canceled')
      throw new LeaseholdError('create_canceled', `the create ${requestKey} was cancelled; send a new createAttemptID`)
    if (known) {
      if (known.project !== request.project || (leaseId !== null && known.lease_id !== leaseId))
        conflict(`createAttemptID ${requestKey} stands for another lease; each new one needs a createAttemptID of its own`)
      if (known.request_hash !== request.hash) conflict(`createAttemptID ${requestKey} came before with another request; send a new one`)
      return (await leaseById(tx, known.lease_id)) ?? null
    }
  }
  if (leaseId === null) return null
  const taken = await leaseById(tx, leaseId)
  const before = taken ? undefined : await compactedByLease(tx, leaseId)
  if (before) conflict(`${leaseId} has ended (${before.lease_state ?? 'long since'}), and an id is never used again`)
  if (!taken) return null
  if (taken.project !== request.project || !fixed || taken.fixed_id !== 1) conflict(`${leaseId} is taken; choose another id`)
  if (!isLive(taken.state)) conflict(`${leaseId} has ended (${taken.state}), and an id is never used again`)
  if (taken.request_hash !== request.hash) conflict(`${leaseId} was made by a different request`)
  return taken
}

/**
 * Locks the project against its deletion until this transaction ends: nothing is made in a project that drains.
 * @param alone also against every other create in it, so that two can't both be the last that fits
 */
const lockLivingProject = async (tx: Tx, actor: Actor, project: string, alone: boolean): Promise<void> => {
  const query = tx.db.selectFrom('projects').select('deleted_at').where('name', '=', project)
  const row = await (tx.dialect === 'sqlite' ? query : alone ? query.forUpdate() : query.forShare()).executeTakeFirst()
  if (!row || row.deleted_at !== null) await requireLiving(tx, actor, project)
}

/** A create that was answered before is answered again, however full it is by now. */
const requireRoom = async (tx: Tx, { caps }: EngineContext, actor: Actor, project: string): Promise<void> => {
  const live = (await liveLeases(tx, project)).map((row) => ({
    owner: row.owner,
    provisioning: row.state === 'provisioning',
    endsAt: row.expires_at,
  }))
  const refusal = admit(live, caps, project, actor.name, tx.now)
  if (refusal !== null) throw refusal
}

/** As `replayOf`, and claims the request key: a cancel or the same create that comes at the same moment is seen by one of the two. */
const replayOrClaim = async (
  tx: Tx,
  request: Normalised,
  wantedId: LeaseId | null,
  leaseId: LeaseId,
  requestKey: string | null,
  fixed: boolean,
): Promise<LeaseRow | null> => {
  const before = await replayOf(tx, request, wantedId, requestKey, fixed)
  if (before !== null || requestKey === null) return before
  const row = {
    project: request.project,
    request_key: requestKey,
    lease_id: leaseId,
    state: 'created' as const,
    request_hash: request.hash,
  }
  return (await claimCreateRequest(tx, row)) ? null : replayOf(tx, request, wantedId, requestKey, fixed)
}

/** A fleet says where its boxes are. */
const placeFor = async (context: EngineContext, actor: Actor, request: Normalised, input: CreateInput): Promise<Place> => {
  const fleet = request.fleet === null ? null : await requireFleet(context, request.project, request.fleet)
  if (fleet !== null && input.backend !== undefined && input.backend !== fleet.backend)
    bad(`backend: fleet "${fleet.name}" is on backend "${fleet.backend}", not on "${input.backend}"`)
  return choosePlace(context, actor, request.project, fleet === null ? input : { ...input, backend: fleet.backend })
}

const create = async (context: EngineContext, actor: Actor, input: CreateInput, fixed: boolean): Promise<Created> => {
  requireFull(actor)
  if (input.leaseID !== undefined && !isLeaseId(input.leaseID)) bad(`leaseID: "${input.leaseID}" is none: lh_ and 12 lower-case hex digits`)
  if (input.createAttemptID !== undefined && !isRequestKey(input.createAttemptID))
    bad('createAttemptID: must be cat_ and 32 lower-case hex digits')
  const request = normalise(projectFor(actor, input.project), input)
  const requestKey = input.createAttemptID ?? null
  const wantedId = (input.leaseID as LeaseId | undefined) ?? null
  const place = await placeFor(context, actor, request, input)
  const { lease, replayed, view, warning } = await context.store.write(async (tx) => {
    const capped = anyCap(context.caps)
    await lockLivingProject(tx, actor, request.project, capped)
    const leaseId = wantedId ?? (`lh_${hex(6)}` as LeaseId)
    const before = await replayOrClaim(tx, request, wantedId, leaseId, requestKey, fixed)
    if (capped && before === null) await requireRoom(tx, context, actor, request.project)
    const made = before === null ? await reserve(tx, { actor, request, place, leaseId, requestKey, fixed }) : { row: before, warning: null }
    const [shown] = await leaseViews(tx, [made.row])
    return { lease: made.row, replayed: before !== null, view: shown as LeaseView, warning: made.warning }
  })
  if (!replayed) context.signals.wake('provision')
  if (!replayed && request.fleet !== null) await wakeFleet(context, request.project, request.fleet)
  const warnings = [...request.warnings, ...(warning === null ? [] : [warning])]
  return { lease: view, leaseToken: leaseToken(context.installation.secret, lease.id), warnings, replayed }
}

/**
 * Reserves a lease; the box is made behind it (leases R4, R5). With a `createAttemptID` the same request may be sent again.
 * @throws LeaseholdError bad_request, lease_id_conflict, create_canceled, backend_unavailable, not_found, cap_reached
 */
export const createLease = (context: EngineContext, actor: Actor, input: CreateInput): Promise<Created> =>
  create(context, actor, input, false)

/** The same under an id that the client chose: idempotent by the id itself (leases R11). */
export const putLease = (context: EngineContext, actor: Actor, id: string, input: CreateInput): Promise<Created> => {
  if (input.createAttemptID !== undefined) bad('createAttemptID: not taken by PUT, where the id itself makes the request repeatable')
  if (input.leaseID !== undefined && input.leaseID !== id) bad('leaseID: differs from the id in the path')
  return create(context, actor, { ...input, leaseID: id }, true)
}
