/**
 * Is there a reason to list? One small query for all cleanups that are due, and no provider call (orphans R39-R44); only where a kind was denied is the provider
 * asked whether it may be listed now (R102).
 */
import { sql } from 'kysely'
import { circuitOpenUntil, gateOpen, reportDueAt, type GateReason, type SweepOutcome } from '../../model/sweep.ts'
import type { SweepMode } from '../../model/sweep-settings.ts'
import type { CleanupRow } from '../../store/cleanups.ts'
import type { Session } from '../../store/store.ts'
import type { SweepWork } from './load.ts'

export interface Activity {
  instances: number | null
  leases: number | null
  closed: number | null
  orphans: number
  oldest_report: number | null
  unreported: number | null
  denied: number
  open_until: number | null
}

export interface Gate {
  /** None: the row is only marked as processed. */
  reasons: (GateReason | 'requested')[]
  /** Was anything denied at the last listing? */
  denied: boolean
  /** ms: the account's circuit is open until then (leases R60). */
  circuitOpenUntil: number | null
}

const open = sql`from findings f where f.project = c.project and f.backend = c.backend and f.state = 'open'`
/** Of `cleanups c` and its `backends b`: what the gate asks, in one statement for any number of rows. */
const activity = sql`
  (select max(changed_at) from instances where project = c.project) as instances,
  (select max(created_at) from leases where project = c.project) as leases,
  (select max(owner_closed_at) from ledger where project = c.project) as closed,
  (select count(*) ${open} and code = 'orphan') as orphans,
  (select min(reported_at) ${open}) as oldest_report,
  (select min(first_seen_at) ${open} and reported_at is null) as unreported,
  (select count(*) from cells where project = c.project and backend = c.backend and scope = coalesce(b.scope, '') and state = 'denied') as denied,
  (select open_until from circuits where provider = b.provider and scope = coalesce(b.scope, '')) as open_until
  from cleanups c join backends b on b.project = c.project and b.name = c.backend`

const read = async (session: Session, work: SweepWork): Promise<Activity> => {
  const query = sql<Activity>`select ${activity} where c.id = ${work.cleanup.id}`
  return (await query.execute(session.db)).rows[0] as Activity
}

/** A row that is due and that nobody works on. */
export type DueGate = Activity &
  Pick<CleanupRow, 'id' | 'clean_at' | 'clean_mode' | 'outcome' | 'listed_at' | 'requested_at' | 'due_at' | 'lock_fence'> & {
    provider: string
  }

/** The longest due first. One whose worker died is left to the lock. */
export const readDueGates = async (session: Session, now: number, limit: number): Promise<DueGate[]> => {
  const query = sql<DueGate>`select c.id, c.clean_at, c.clean_mode, c.outcome, c.listed_at, c.requested_at, c.due_at, c.lock_fence, b.provider, ${activity}
    where c.due_at <= ${now} and c.lock_owner is null order by c.due_at limit ${limit}`
  return (await query.execute(session.db)).rows
}

/** Where nothing else opens the gate, the caller probes what was denied. */
export const readGate = async (session: Session, work: SweepWork, now: number): Promise<Gate> =>
  gateOf(work, await read(session, work), now)

export const gateOf = (
  {
    cleanup,
    settings,
    marginMs,
  }: Pick<SweepWork, 'settings' | 'marginMs'> & {
    cleanup: Pick<CleanupRow, 'clean_at' | 'clean_mode' | 'outcome' | 'listed_at' | 'requested_at'>
  },
  activity: Activity,
  now: number,
): Gate => {
  const due = [
    activity.oldest_report === null
      ? null
      : reportDueAt({ firstSeenAt: 0, reportedAt: Number(activity.oldest_report) }, settings.reportEveryMs.value),
    activity.unreported === null ? null : Number(activity.unreported),
  ].filter((at) => at !== null)
  const reasons = gateOpen({
    mode: settings.mode.value,
    now,
    marginMs,
    cleanAt: cleanup.clean_at,
    cleanMode: cleanup.clean_mode as SweepMode | null,
    lastOutcome: cleanup.outcome as SweepOutcome | null,
    lastListingAt: cleanup.listed_at,
    instanceActivityAt: activity.instances,
    jobActivityAt: activity.leases === null ? activity.closed : Math.max(activity.leases, activity.closed ?? 0),
    lastClosedAt: activity.closed,
    openOrphans: Number(activity.orphans),
    reportDueAt: due.length === 0 ? null : Math.min(...due),
    deniedKindReadable: false,
  })
  const requested = cleanup.requested_at !== null && (cleanup.listed_at === null || cleanup.requested_at >= cleanup.listed_at)
  return {
    reasons: requested ? ['requested', ...reasons] : reasons,
    denied: Number(activity.denied) > 0,
    circuitOpenUntil: circuitOpenUntil({ openUntil: activity.open_until }, now),
  }
}
