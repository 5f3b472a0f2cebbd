/** The tables of fleets, and of what was let go of; see `schema.ts`. */
import type { InstanceId, LeaseId, Ref } from '../model/ids.ts'
import type { LeaseState } from '../model/wire.ts'
import type { Due } from './schema.ts'

/** Instances of a backend that are kept ready. `id` is `project/name`. */
export interface FleetsTable extends Due {
  id: string
  project: string
  name: string
  backend: string
  /** How many are to be ready: made, and nobody's. */
  size: number
  /** What each must still be able to give; one with less life left is replaced. */
  ttl_seconds: number
  /** JSON: of the boxes, not of the leases that have them. */
  labels: string
  created_by: string
  created_at: number
  /** When a person last said something of it. */
  changed_at: number
  /** By a person: nothing is made or replaced. */
  paused_at: number | null
  /** By the churn breaker, until a person says otherwise (case M2). */
  held_at: number | null
  held_why: string | null
  /** It drains: what nobody holds is taken back, and nothing more is made. */
  deleted_at: number | null
}
/** An instance that ended, was proved gone, and was let go of after a time, with the lease that it was for. Kept for ever. */
export interface CompactedTable {
  ref: Ref
  project: string
  instance_id: InstanceId
  lease_id: LeaseId | null
  /** Of the lease, or the instance's name. */
  slug: string
  owner: string | null
  provider: string
  backend: string
  lease_state: LeaseState | null
  created_at: number
  ended_at: number
  compacted_at: number
}
