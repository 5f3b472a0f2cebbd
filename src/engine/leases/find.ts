/** Reading leases: by id or slug, with what the asker may see. Reads never touch (case G6). */
import { LeaseholdError } from '../../model/errors.ts'
import { isLeaseId } from '../../model/ids.ts'
import { isLive } from '../../model/lease.ts'
import { shownBy, type ReportFilter } from '../../model/report-filter.ts'
import { leaseStates, type AccessAnswer, type LeaseState, type LeaseView } from '../../model/wire.ts'
import { attemptsOf, identityOf } from '../../store/attempts.ts'
import { findBackend } from '../../store/backends.ts'
import { boundKinds, instancesByIds } from '../../store/instances.ts'
import { leaseById, listLeases as list, liveLeasesBySlug, type LeaseRow } from '../../store/leases.ts'
import type { Session } from '../../store/store.ts'
import { mayManageLease, maySeeLease, requireFull, type Actor } from '../actor.ts'
import { providerOf, type EngineContext } from '../context.ts'
import { requireKnown, requireLabel } from '../known.ts'
import { leaseToken } from '../lease-token.ts'
import { conditionsOf, marked } from '../report-marks.ts'
import { leaseViews } from '../views.ts'

export const leaseNotFound = (key: string): LeaseholdError =>
  new LeaseholdError(
    'not_found',
    `no lease "${key}" is visible to this token; "leasehold list" shows those that are, and an ended one is named by its id`,
  )

/**
 * An id never falls through to a slug (leases R116); a slug names a live, unexpired lease only.
 * @throws LeaseholdError not_found, also for leases of other projects; bad_request for a slug that two projects use
 */
export const resolveLease = async (session: Session, actor: Actor, key: string, now: number): Promise<LeaseRow> => {
  if (isLeaseId(key)) {
    const row = await leaseById(session, key)
    if (!row || !maySeeLease(actor, row)) throw leaseNotFound(key)
    return row
  }
  const rows = (await liveLeasesBySlug(session, key, actor.project, now)).filter((row) => maySeeLease(actor, row))
  if (rows.length > 1)
    throw new LeaseholdError(
      'bad_request',
      `the slug "${key}" is used in ${rows.map((row) => row.project).join(' and ')}: name the lease by its id`,
    )
  return (
    rows[0] ??
    (() => {
      throw leaseNotFound(key)
    })()
  )
}

/** @throws LeaseholdError forbidden */
export const requireManage = (actor: Actor, lease: LeaseRow): void => {
  if (!mayManageLease(actor, lease))
    throw new LeaseholdError('forbidden', `${lease.id} belongs to ${lease.owner}: only its owner, an operator or an admin manages it`)
}

const mostLooks = 3

/**
 * Its parts are read one after the other; where its state changed meanwhile they may be of two moments, such as a removal that was accepted and a lease that does not
 * say so yet. Then it is read again.
 */
export const getLease = async (context: EngineContext, actor: Actor, key: string): Promise<LeaseView> => {
  const now = await context.store.now()
  return context.store.read(async (session) => {
    for (let look = 1; ; look++) {
      const row = await resolveLease(session, actor, key, now)
      const [view] = await leaseViews(session, [row])
      if (look === mostLooks || (await leaseById(session, row.id))?.state === row.state) return view as LeaseView
    }
  })
}

export interface ListInput extends ReportFilter {
  state?: string[]
  provider?: string
  project?: string
  limit: number
}

export const listLeases = async (context: EngineContext, actor: Actor, input: ListInput): Promise<LeaseView[]> => {
  requireFull(actor)
  const unknown = input.state?.find((state) => !leaseStates.includes(state as LeaseState))
  if (unknown !== undefined) throw new LeaseholdError('bad_request', `state: "${unknown}" is none of ${leaseStates.join(', ')}`)
  const now = await context.store.now()
  const filter = {
    states: input.state && input.state.length > 0 ? (input.state as LeaseState[]) : null,
    provider: input.provider ?? null,
    owner: null,
    report: conditionsOf(input, now),
    limit: input.limit,
  }
  return context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, input)
    const rows = await list(session, { ...filter, project })
    if (rows.length === 0 && input.label !== undefined) await requireLabel(session, project, input.label)
    const kinds =
      input.kind === undefined
        ? new Map<string, string>()
        : await boundKinds(
            session,
            rows.map((row) => row.instance_id),
          )
    return (await leaseViews(session, rows)).map((view) => {
      const kind = kinds.get(view.instanceID)
      return marked(view, shownBy(input, { owner: view.owner, kinds: kind === undefined ? null : [kind], labels: [view.labels] }))
    })
  })
}

const pollMs = 500

/** Waits until the lease is no longer `provisioning`, `ms` at most; holds no connection meanwhile. */
export const settledLease = async (context: EngineContext, leaseId: string, ms: number): Promise<LeaseView> => {
  const end = performance.now() + ms
  for (;;) {
    // Listen before looking: a change between the two is not missed.
    const left = end - performance.now()
    const change = left > 0 ? context.signals.nextChange(leaseId, Math.min(pollMs, left)) : undefined
    const view = await context.store.read(async (session) => {
      const row = await leaseById(session, leaseId)
      return row ? (await leaseViews(session, [row]))[0] : undefined
    })
    if (!view) throw leaseNotFound(leaseId)
    if (view.state !== 'provisioning' || !change) return view
    await change
  }
}

/**
 * How the holder reaches into the box by itself. A box that was made before its lease has nothing of that one set inside, so its holder brings it along.
 * @throws LeaseholdError not_found, forbidden, lease_not_ready
 */
export const accessTo = async (context: EngineContext, actor: Actor, key: string): Promise<AccessAnswer> => {
  const now = await context.store.now()
  const { lease, attempt, config, ofFleet } = await context.store.read(async (session) => {
    const row = await resolveLease(session, actor, key, now)
    const [instance] = await instancesByIds(session, [row.instance_id])
    const attempts = await attemptsOf(session, [row.instance_id])
    const backend = await findBackend(session, row.project, row.backend)
    return {
      lease: row,
      ofFleet: instance?.fleet != null,
      attempt: instance?.lease_id === row.id ? attempts.find((one) => one.id === instance.attempt_id) : undefined,
      config: JSON.parse(backend?.config ?? '{}') as Record<string, unknown>,
    }
  })
  requireManage(actor, lease)
  const identity = attempt ? identityOf(attempt) : null
  const retained = lease.state === 'released' && lease.release_deletes === 0
  if (!identity || !(isLive(lease.state) || retained))
    throw new LeaseholdError(
      'lease_not_ready',
      `${lease.id} is ${lease.state} and has no box to reach: ${lease.state === 'provisioning' ? 'wait until it is active' : 'create a new lease'}`,
    )
  const access = providerOf(context, lease.provider).access(identity, config)
  if (!ofFleet) return { access }
  return { access, holder: { leaseID: lease.id, leaseToken: leaseToken(context.installation.secret, lease.id) } }
}
