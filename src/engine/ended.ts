/** What enters at the removal: whose it is, why it goes, and what that stands on. */
import type { FleetRemovalCause } from '../model/fleet.ts'
import type { FoundEvidence, RemovalEvidence } from '../model/removal-evidence.ts'
import type { ReasonOf } from '../model/verdict-reasons.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import type { AttemptRow } from '../store/attempts.ts'
import type { InstanceRow } from '../store/instances.ts'
import type { LeaseRow } from '../store/leases.ts'
import { systemActor } from './record.ts'

/** Why a removal was ordered; `orphan.…`: a sweep found it, and mode, quarantine, plan and limits let it pass. */
export type RemovalCause =
  | 'released'
  | 'expired'
  | 'cancelled'
  | 'create-interrupted'
  | 'leftover'
  | 'admin'
  | 'wipe-failed'
  | 'fleet-died'
  | FleetRemovalCause
  | ReasonOf<'orphan'>

export interface Ended {
  /** Of the row, or of the ledger where the row is gone. */
  instance: Pick<InstanceRow, 'id' | 'name' | 'project' | 'provider' | 'ref' | 'state'>
  lease: LeaseRow | null
  attempt: AttemptRow
  cause: RemovalCause
  actor?: string
  /** What exactly goes, in order; default: the one resource that the attempt recorded. */
  members?: ResourceIdentity[]
  /** What a sweep stood on. */
  found?: FoundEvidence
}

/** Kept with the removal, for its receipt. */
export const evidenceOf = ({ actor, found }: Pick<Ended, 'actor' | 'found'>): string =>
  JSON.stringify({ orderedBy: actor ?? systemActor, ...(found ? { found } : {}) } satisfies RemovalEvidence)
