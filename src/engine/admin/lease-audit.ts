/** `lease-audit`: which leases still owe a removal, beside what their provider says of them now (leases R49-R51). */
import { systemActor } from '../../model/removal-evidence.ts'
import { isOpenRemoval, isOverRemoval, stuckAfter } from '../../model/removal.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { leaseStates, type AuditRow, type LeaseState } from '../../model/wire.ts'
import { attemptsOf, identityOf, type AttemptRow } from '../../store/attempts.ts'
import { listBackends } from '../../store/backends.ts'
import { instancesByIds, type InstanceRow } from '../../store/instances.ts'
import { leasesWithDebt, listLeases, type LeaseRow } from '../../store/leases.ts'
import { removalsOfLeases, type RemovalRow } from '../../store/removals.ts'
import type { Session } from '../../store/store.ts'
import { requireAdmin, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { requireKnown } from '../known.ts'
import { lookAtLeft } from '../removal-left.ts'
import { leftText } from '../removal-row.ts'
import { iso, isoOrNull } from '../views.ts'
import { ownSince } from './attention.ts'
import { eachBounded } from './bounded.ts'
import { lookAt, type Look, type Subject } from './lease-look.ts'

export interface AuditInput {
  state?: string[]
  provider?: string
  owner?: string
  project?: string
  limit: number
}

type Closed = Parameters<typeof lookAtLeft>[1]

/** Reads at providers at once; and how long they may take together, in ms. */
const width = 8
const wholeMs = 50_000

interface Case {
  lease: LeaseRow
  removal: RemovalRow | undefined
  /** A person closed it, and nothing has proved since that nothing of it is left. */
  closed: Closed | undefined
  nativeId: string | null
  subject: Subject
}

/** The bound attempt's identity, else the newest that has one. */
const recorded = (instance: InstanceRow | undefined, attempts: readonly AttemptRow[]): AttemptRow | undefined =>
  attempts.find((one) => one.id === instance?.attempt_id) ?? attempts.findLast((one) => one.immutable_id !== null)

/** orphans R91: of what a person closed, what nobody proved gone. */
const closedOf = (
  removals: readonly RemovalRow[],
  attempts: readonly AttemptRow[],
  since: number,
  config: string | undefined,
): Closed | undefined => {
  const attemptOf = (one: RemovalRow): AttemptRow | undefined => attempts.find((attempt) => attempt.id === one.attempt_id)
  const removal = removals.findLast(
    (one) => one.state === 'closed' && one.closed_by !== systemActor && one.opened_at >= since && attemptOf(one)?.outcome === 'abandoned',
  )
  const attempt = removal && attemptOf(removal)
  if (!removal || !attempt) return undefined
  const parsed = JSON.parse(config ?? '{}') as Record<string, unknown>
  return { removal, attempt, config: parsed, backendMissing: config === undefined }
}

const load = async (session: Session, leases: readonly LeaseRow[]): Promise<Case[]> => {
  const instances = new Map(
    (
      await instancesByIds(
        session,
        leases.map((lease) => lease.instance_id),
      )
    ).map((row) => [row.id, row]),
  )
  const attempts = Map.groupBy(await attemptsOf(session, [...instances.keys()]), (row) => row.instance_id)
  const removals = Map.groupBy(
    await removalsOfLeases(
      session,
      leases.map((lease) => lease.id),
    ),
    (row) => row.lease_id as string,
  )
  const since = await ownSince(session)
  const configs = new Map((await listBackends(session, null)).map((row) => [`${row.project}/${row.name}`, row.config]))
  return leases.map((lease) => {
    const instance = instances.get(lease.instance_id)
    const attempt = recorded(instance, attempts.get(lease.instance_id) ?? [])
    const own = removals.get(lease.id) ?? []
    const config = configs.get(`${lease.project}/${lease.backend}`)
    return {
      lease,
      closed: closedOf(own, attempts.get(lease.instance_id) ?? [], since, config),
      removal: own.find((row) => isOpenRemoval(row.state)) ?? own.findLast((row) => row.state === 'gave-up') ?? own.at(-1),
      nativeId: attempt?.native_id ?? null,
      subject: {
        provider: lease.provider,
        config: JSON.parse(config ?? '{}') as Record<string, unknown>,
        ref: instance?.ref ?? null,
        identity: attempt ? identityOf(attempt) : null,
        mayExist: lease.may_exist === 1,
      },
    }
  })
}

const debtOf = ({ lease, removal, closed }: Case, now: number): string[] => {
  const open = removal !== undefined && !isOverRemoval(removal.state)
  const overdue = lease.release_deletes === 0 && lease.retain_until !== null && lease.retain_until <= now
  const debts = [
    open && removal.failures > 0 ? 'cleanup-error' : '',
    open ? (removal.state === 'gave-up' ? 'gave-up' : 'cleanup-open') : '',
    lease.may_exist === 1 ? 'may-exist' : '',
    overdue ? 'retained-overdue' : '',
    closed === undefined ? '' : 'removal-closed',
  ].filter((one) => one !== '')
  // Asked for by its state, and owing nothing.
  return debts.length > 0 ? debts : ['state']
}

const standsOf = (removal: RemovalRow | undefined): string | null => {
  if (removal?.state === 'gave-up') return 'given up: nothing tries to take it back any more'
  return removal !== undefined && removal.failures >= stuckAfter ? `stuck after ${removal.failures} failures in a row` : null
}

/** What is left of it need not be what the lease was known by: its whole group is looked at, whatever of it was on record when it was closed (leases R50). */
const lookAtAll = async (context: EngineContext, { subject, closed }: Case, end: AbortSignal): Promise<Look> => {
  const first = await lookAt(context, subject, end)
  if (closed === undefined) return first
  const group = await lookAtLeft(context, closed, end)
  const isThere = group.stands === true || first.cloudStatus === 'found'
  const isUnknown = group.stands === null || first.cloudStatus === 'error'
  // What is on its way out counts as missing.
  if (!isThere && !isUnknown) return first.cloudStatus === 'missing' ? first : { cloudStatus: 'missing', cloudState: null, message: null }
  const { closed_by: by, closed_reason: reason } = closed.removal
  const own = first.cloudStatus === 'found' && subject.identity !== null ? [leftText(subject.identity)] : []
  const names = [...new Set([...group.there.map(leftText), ...own])].join(', ')
  const what = isThere ? `still there, end it by hand: ${names}` : `whether it is still there is not known: ${names}`
  const unknown = group.unknown ?? (isThere ? null : first.message)
  return {
    cloudStatus: isThere ? 'found' : 'error',
    cloudState: first.cloudStatus === 'found' ? first.cloudState : null,
    message: `${by} closed its removal: ${reason ?? 'no reason recorded'}; ${what}${unknown === null ? '' : ` (${unknown})`}`,
  }
}

/** Closed, and looked at: nothing of it is there any more, and it owes nothing else. */
const isSettled = (row: AuditRow): boolean => row.cloudStatus === 'missing' && row.debt.every((one) => one === 'removal-closed')

const auditRow = (subject: Case, look: Look, now: number): AuditRow => {
  const { lease, removal } = subject
  const open = removal !== undefined && !isOverRemoval(removal.state) ? removal : undefined
  const stuck = standsOf(open)
  return {
    leaseID: lease.id,
    slug: lease.slug,
    state: lease.state,
    project: lease.project,
    owner: lease.owner,
    provider: lease.provider,
    cloudID: subject.nativeId,
    expiresAt: iso(lease.expires_at),
    retainUntil: isoOrNull(lease.retain_until),
    debt: debtOf(subject, now),
    cleanupAttempts: open?.failures ?? 0,
    cleanupError: open?.error ?? null,
    cleanupRetryAt: isoOrNull(open?.retry_at ?? null),
    cloudStatus: look.cloudStatus,
    cloudState: look.cloudState,
    message: look.message ?? stuck,
  }
}

/**
 * Without `state`: every lease with cleanup debt, live ones first. With it: the leases of that state, newest first. Providers are read outside of any transaction.
 * @throws LeaseholdError forbidden, bad_request, not_found
 */
export const auditLeases = async (context: EngineContext, actor: Actor, input: AuditInput): Promise<AuditRow[]> => {
  requireAdmin(actor)
  const unknown = input.state?.find((state) => !leaseStates.includes(state as LeaseState))
  if (unknown !== undefined) throw new LeaseholdError('bad_request', `state: "${unknown}" is none of ${leaseStates.join(', ')}`)
  const states = input.state && input.state.length > 0 ? (input.state as LeaseState[]) : null
  const filter = {
    states,
    provider: input.provider ?? null,
    owner: input.owner ?? null,
    limit: input.limit,
  }
  const now = await context.store.now()
  const cases = await context.store.read(async (session) => {
    const known = { ...filter, project: await requireKnown(context, session, actor, input) }
    return load(
      session,
      await (states === null ? leasesWithDebt(session, known, now, await ownSince(session)) : listLeases(session, known)),
    )
  })
  const end = AbortSignal.timeout(wholeMs)
  const rows = await eachBounded(cases, width, async (one) => auditRow(one, await lookAtAll(context, one, end), now))
  return states === null ? rows.filter((row) => !isSettled(row)) : rows
}
