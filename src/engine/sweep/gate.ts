/** Is there a reason to list? One small query per cleanup and interval, and no provider call (orphans R39-R44). */
import { sql } from 'kysely'
import { gateOpen, reportDueAt, type GateReason, type SweepOutcome } from '../../model/sweep.ts'
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
}

const read = async (session: Session, work: SweepWork): Promise<Activity> => {
  const { project, name: backend } = work.backend
  const open = sql`from findings where project = ${project} and backend = ${backend} and state = 'open'`
  const query = sql<Activity>`select
    (select max(changed_at) from instances where project = ${project}) as instances,
    (select max(created_at) from leases where project = ${project}) as leases,
    (select max(owner_closed_at) from ledger where project = ${project}) as closed,
    (select count(*) ${open} and code = 'orphan') as orphans,
    (select min(reported_at) ${open}) as oldest_report,
    (select min(first_seen_at) ${open} and reported_at is null) as unreported`
  return (await query.execute(session.db)).rows[0] as Activity
}

/** @returns the reasons to list; none: the row is only marked as processed */
export const gateReasons = async (session: Session, work: SweepWork, now: number): Promise<(GateReason | 'requested')[]> => {
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
  return requested ? ['requested', ...reasons] : reasons
}
