/** Whole rows with plain values, for suites of the store: only what a test is about is given. */
import { insertEach } from '../../src/store/bulk.ts'
import type { Schema } from '../../src/store/schema.ts'
import type { Tx } from '../../src/store/store.ts'
import type { Selectable } from 'kysely'

type Row<T extends keyof Schema> = Selectable<Schema[T]>

const unlocked = { due_at: null, lock_fence: 0, lock_owner: null, lock_until: null }

export const leaseRow = (n: number, over: Partial<Row<'leases'>> = {}): Row<'leases'> => ({
  id: `lh_${n.toString(16).padStart(12, '0')}` as Row<'leases'>['id'],
  slug: `slug-${n}`,
  project: 'default',
  owner: 'ann',
  provider: 'scripted',
  backend: 'local',
  instance_id: `in_${n}` as Row<'leases'>['instance_id'],
  state: 'active',
  keep: 0,
  ttl_seconds: 5400,
  idle_seconds: 1800,
  labels: '{}',
  created_at: 1000,
  updated_at: 1000,
  last_touched_at: 1000,
  expires_at: 1_801_000,
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
  idle_warned_for: null,
  fleet: null,
  returned_at: null,
  ...unlocked,
  ...over,
})

export const instanceRow = (n: number, over: Partial<Row<'instances'>> = {}): Row<'instances'> => ({
  id: `in_${n}` as Row<'instances'>['id'],
  project: 'default',
  backend: 'local',
  provider: 'scripted',
  scope: null,
  location: 'here',
  name: `name-${n}`,
  ref: `r${n.toString(36).padStart(11, '0')}` as Row<'instances'>['ref'],
  state: 'busy',
  lease_id: null,
  attempt_id: null,
  created_at: 1000,
  changed_at: 1000,
  terminated_at: null,
  gave_up_at: null,
  waits_until: null,
  fleet: null,
  dead_at: null,
  checked_at: null,
  wiping_since: null,
  served: 0,
  ...unlocked,
  ...over,
})

export const removalRow = (n: number, over: Partial<Row<'removals'>> = {}): Row<'removals'> => ({
  first_failed_at: null,
  waits_until: null,
  evidence: null,
  planned: null,
  baseline: null,
  stopped: null,
  acknowledged: '[]',
  tries: 0,
  begun_at: null,
  continued_at: null,
  closed_at: null,
  closed_by: null,
  closed_reason: null,
  id: `rm_${n}` as Row<'removals'>['id'],
  version: 2,
  attempt_id: `at_${n}` as Row<'removals'>['attempt_id'],
  instance_id: `in_${n}` as Row<'removals'>['instance_id'],
  lease_id: null,
  project: 'default',
  backend: 'local',
  provider: 'scripted',
  ref: `r${n.toString(36).padStart(11, '0')}` as Row<'removals'>['ref'],
  name: `name-${n}`,
  scope: 'scripted:one' as Row<'removals'>['scope'],
  location: 'here',
  cause: 'released',
  state: 'preparing',
  identity: null,
  progress: '[]',
  opened_at: 1000,
  started_at: null,
  accepted_at: null,
  gone_at: null,
  failures: 0,
  error: null,
  failed_at: null,
  retry_at: null,
  held_by: null,
  polls: 0,
  ...unlocked,
  ...over,
})

const makers = { leases: leaseRow, instances: instanceRow, removals: removalRow }

/** Inserts rows `from` … `from + count - 1`. @param over what each has beside the plain values */
export const insertRows = (
  tx: Tx,
  table: keyof typeof makers,
  count: number,
  over: (n: number) => object = () => ({}),
  from = 1,
): Promise<void> =>
  insertEach(
    tx,
    table,
    Array.from({ length: count }, (_, i) => makers[table](from + i, over(from + i))),
  )
