/** What can't succeed without a person: it stays open, is not tried again by itself, and is never called gone (leases R46, R80). */
import type { FindingCode } from '../model/codes.ts'
import type { Stopped } from '../model/stopped.ts'
import { unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import type { Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import { event, reportFinding } from './record.ts'
import { endsLease, lockAll, targetsOf } from './remove-apply.ts'
import type { RemovalWork } from './remove-load.ts'

/**
 * Said in full once for each reason, however often it is looked at.
 * @param dueAt ms; when it is looked at again all the same; null: never by itself
 */
export const needsPerson = async (
  tx: Tx,
  held: Held,
  work: RemovalWork,
  error: string,
  stopped: Stopped | null = null,
  dueAt: number | null = null,
): Promise<void> => {
  const { mine, leases } = await lockAll(tx, [{ held, work }])
  if (mine.size === 0) return
  const lease = leases.get(work.removal.lease_id ?? '')
  await tx.db
    .updateTable('removals')
    .set({
      ...unlocked(dueAt),
      error,
      failures: work.removal.failures + (dueAt !== null && work.removal.error === error ? 0 : 1),
      first_failed_at: work.removal.first_failed_at ?? tx.now,
      failed_at: tx.now,
      retry_at: null,
      held_by: null,
      // What only others can read is left for them as it is (leases R89).
      ...(dueAt === null ? { stopped: stopped === null ? null : JSON.stringify(stopped) } : {}),
    })
    .where('id', '=', work.removal.id)
    .execute()
  if (endsLease(work, lease))
    await tx.db
      .updateTable('leases')
      .set({
        state: 'failed',
        failure_code: 'removal_needs_person',
        failure_error: error,
        ended_at: tx.now,
        updated_at: tx.now,
        due_at: null,
      })
      .where('id', '=', lease.id)
      .execute()
  const about = { project: work.removal.project, targets: targetsOf(work, lease) }
  if (work.removal.error !== error) await appendEvents(tx, [event(tx, 'removal.needs-person', { error }, about)])
  const code: FindingCode = stopped?.code === 'unexplained-absence' ? 'unexplained-absence' : 'removal-needs-person'
  await reportFinding(tx, {
    code,
    project: work.removal.project,
    scope: work.removal.scope,
    target: { type: 'instance', id: work.removal.instance_id, name: work.removal.name },
    message: error,
    evidence: {
      ref: work.removal.ref,
      removal: work.removal.id,
      attempt: work.attempt.id,
      error,
      ...(stopped === null ? {} : { missing: stopped.missing }),
    },
  })
}
