/** An instance before anything of it is made: with its ref in the ledger and its first attempt, in one transaction (I1, orphans R3-R8). */
import { letterFirst, uuidv7Hex } from '../lib/ids.ts'
import type { InstanceId, LeaseId, Ref, ScopeId } from '../model/ids.ts'
import { insertOpenAttempt } from '../store/attempts.ts'
import type { BackendRow } from '../store/backends.ts'
import type { Tx } from '../store/store.ts'

export interface Place {
  backend: BackendRow
  scope: ScopeId
  location: string
  /** How long the provider's create may take. */
  deadlineMs: number
}

export interface PlaceholderFor {
  /** For people. */
  name: string
  /** The lease that it is made for; null: it is made to be ready. */
  leaseId: LeaseId | null
  fleet: string | null
}

/** Whose it is, as the ledger keeps it for ever (orphans U17). */
const parentsOf = ({ leaseId, fleet }: PlaceholderFor): string =>
  JSON.stringify({ ...(leaseId === null ? {} : { lease: leaseId }), ...(fleet === null ? {} : { fleet }) })

export const insertPlaceholder = async (
  tx: Tx,
  { backend, scope, location, deadlineMs }: Place,
  wanted: PlaceholderFor,
): Promise<{ id: InstanceId; name: string }> => {
  const id = `in_${uuidv7Hex(tx.now)}` as InstanceId
  const ref = letterFirst(12) as Ref
  await tx.db
    .insertInto('instances')
    .values({
      id,
      project: backend.project,
      backend: backend.name,
      provider: backend.provider,
      scope,
      location,
      name: wanted.name,
      ref,
      state: 'pending',
      lease_id: wanted.leaseId,
      attempt_id: null,
      created_at: tx.now,
      changed_at: tx.now,
      terminated_at: null,
      gave_up_at: null,
      fleet: wanted.fleet,
      served: wanted.leaseId === null ? 0 : 1,
      due_at: tx.now,
      lock_owner: null,
      lock_until: null,
    })
    .execute()
  await tx.db
    .insertInto('ledger')
    .values({
      ref,
      project: backend.project,
      owner_kind: 'instance',
      owner_id: id,
      owner_name: wanted.name,
      parents: parentsOf(wanted),
      issued_at: tx.now,
      owner_closed_at: null,
    })
    .execute()
  await insertOpenAttempt(
    tx,
    { ref, instance_id: id, number: 1, project: backend.project, backend: backend.name, scope, location },
    deadlineMs,
  )
  return { id, name: wanted.name }
}
