/** From rows to what the model's decisions take. */
import type { AttemptFacts } from '../model/provision.ts'
import type { LeaseFacts } from '../model/lease.ts'
import type { AttemptRow } from '../store/attempts.ts'
import type { LeaseRow } from '../store/leases.ts'

export const leaseFacts = (row: LeaseRow): LeaseFacts => ({
  state: row.state,
  createdAt: row.created_at,
  lastTouchedAt: row.last_touched_at,
  expiresAt: row.expires_at,
  ttlSeconds: row.ttl_seconds,
  idleSeconds: row.idle_seconds,
  keep: row.keep === 1,
  releaseDeletes: row.release_deletes === null ? null : row.release_deletes === 1,
  retainUntil: row.retain_until,
  idleWarnedFor: row.idle_warned_for,
})

export const attemptFacts = (row: AttemptRow): AttemptFacts => ({
  id: row.id,
  number: row.number,
  token: row.token,
  outcome: row.outcome,
  calledAt: row.called_at,
  deadlineAt: row.deadline_at,
  hasIdentity: row.immutable_id !== null,
  absentSince: row.absent_since,
  absentCount: row.absent_count,
})
