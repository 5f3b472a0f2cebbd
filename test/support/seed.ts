/** Fills a database with active leases whose boxes are only on record; for benchmarks and for suites about size. */
import { hex, letterFirst, uuidv7Hex } from '../../src/lib/ids.ts'
import type { AttemptId, InstanceId, LeaseId, Ref, ScopeId } from '../../src/model/ids.ts'
import { insertEach } from '../../src/store/bulk.ts'
import type { Store } from '../../src/store/store.ts'

export interface Seeding {
  count: number
  owner: string
  provider: string
  backend: string
  scope: ScopeId
  /** ms relative to now: when they were created and touched, and when they end. */
  createdAgoMs: number
  endsInMs: number
}

/** @returns the lease ids */
export const seedLeases = async (store: Store, seeding: Seeding): Promise<LeaseId[]> => {
  const ids: LeaseId[] = []
  const part = 5_000
  for (let done = 0; done < seeding.count; done += part) {
    await store.write(async (tx) => {
      const rows = Array.from({ length: Math.min(part, seeding.count - done) }, () => {
        const lease = `lh_${hex(6)}` as LeaseId
        return {
          lease,
          slug: `s-${lease.slice(3)}`,
          instance: `in_${uuidv7Hex(tx.now)}` as InstanceId,
          attempt: `at_${uuidv7Hex(tx.now)}` as AttemptId,
          ref: letterFirst(12) as Ref,
        }
      })
      ids.push(...rows.map((row) => row.lease))
      const at = tx.now - seeding.createdAgoMs
      const end = tx.now + seeding.endsInMs
      const place = { project: 'default', backend: seeding.backend }
      const free = { lock_owner: null, lock_until: null }
      await insertEach(
        tx,
        'instances',
        rows.map((row) => ({
          id: row.instance,
          ...place,
          provider: seeding.provider,
          scope: seeding.scope,
          location: 'local',
          name: row.slug,
          ref: row.ref,
          state: 'busy',
          lease_id: row.lease,
          attempt_id: row.attempt,
          created_at: at,
          changed_at: at,
          terminated_at: null,
          gave_up_at: null,
          due_at: null,
          ...free,
        })),
      )
      await insertEach(
        tx,
        'ledger',
        rows.map((row) => ({
          ref: row.ref,
          project: 'default',
          owner_kind: 'instance',
          owner_id: row.instance,
          owner_name: row.slug,
          parents: '{}',
          issued_at: at,
          owner_closed_at: null,
        })),
      )
      await insertEach(
        tx,
        'attempts',
        rows.map((row) => ({
          id: row.attempt,
          ref: row.ref,
          instance_id: row.instance,
          number: 1,
          token: hex(16),
          ...place,
          scope: seeding.scope,
          location: 'local',
          outcome: 'bound',
          opened_at: at,
          called_at: at,
          called_by: null,
          deadline_at: at,
          ended_at: null,
          kind: 'box',
          native_id: `${row.ref}-1`,
          immutable_id: `seeded:${row.ref}`,
          facts: '{}',
          error: null,
          absent_since: null,
          absent_count: 0,
        })),
      )
      await insertEach(
        tx,
        'leases',
        rows.map((row) => ({
          id: row.lease,
          slug: row.slug,
          ...place,
          owner: seeding.owner,
          provider: seeding.provider,
          instance_id: row.instance,
          state: 'active',
          keep: 0,
          ttl_seconds: 86_400,
          idle_seconds: Math.max(1, Math.round((end - at) / 1000)),
          labels: '{}',
          created_at: at,
          updated_at: at,
          last_touched_at: at,
          expires_at: end,
          request_key: null,
          fixed_id: 0,
          request_hash: '',
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
          due_at: end,
          ...free,
        })),
      )
    })
  }
  return ids
}
