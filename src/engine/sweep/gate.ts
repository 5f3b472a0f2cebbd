/**
 * Is there a reason to list? One small query per cleanup and interval, and no provider call (orphans R39-R44); only where a kind was denied is the provider
 * asked whether it may be listed now (R102).
 */
import { sql } from 'kysely'
import { circuitOpenUntil, gateOpen, reportDueAt, type GateReason, type SweepOutcome } from '../../model/sweep.ts'
import type { SweepMode } from '../../model/sweep-settings.ts'
import type { Session } from '../../store/store.ts'
import type { SweepWork } from './load.ts'

interface Activity {
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

const read = async (session: Session, work: SweepWork): Promise<Activity> => {
  const { project, name: backend, provider, scope } = work.backend
  const open = sql`from findings where project = ${project} and backend = ${backend} and state = 'open'`
  const query = sql<Activity>`select
    (select max(changed_at) from instances where project = ${project}) as instances,
    (select max(created_at) from leases where project = ${project}) as leases,
    (select max(owner_closed_at) from ledger where project = ${project}) as closed,
    (select count(*) ${open} and code = 'orphan') as orphans,
    (select min(reported_at) ${open}) as oldest_report,
    (select min(first_seen_at) ${open} and reported_at is null) as unreported,
    (select count(*) from cells where project = ${project} and backend = ${backend} and scope = ${scope ?? ''} and state = 'denied') as denied,
    (select open_until from circuits where provider = ${provider} and scope = ${scope ?? ''}) as open_until`
  return (await query.execute(session.db)).rows[0] as Activity
}

/** Where nothing else opens the gate, the caller probes what was denied. */
export const readGate = async (session: Session, work: SweepWork, now: number): Promise<Gate> => {
  const { cleanup, settings } = work
  const activity = await read(session, work)
  const due = [
    activity.oldest_report === null
      ? null
      : reportDueAt({ firstSeenAt: 0, reportedAt: Number(activity.oldest_report) }, settings.reportEveryMs.value),
    activity.unreported === null ? null : Number(activity.unreported),
  ].filter((at) => at !== null)
  const reasons = gateOpen({
    mode: settings.mode.value,
    now,
    marginMs: work.marginMs,
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
