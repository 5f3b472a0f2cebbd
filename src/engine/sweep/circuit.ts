/** The circuit of an account: after three listings in a row that failed it is left alone for a while, whichever backends they were for (leases R60). */
import { nothingListed } from '../../model/inventory.ts'
import { circuitAfterFailure, circuitOpenUntil } from '../../model/sweep.ts'
import { closeCircuit, lockCircuit, saveCircuit, type CircuitRow } from '../../store/circuits.ts'
import type { Tx } from '../../store/store.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { SweepWork } from './load.ts'
import type { Inspection } from './run.ts'

/**
 * Only what the provider answers to a listing counts: a deletion that fails says nothing about the account, and another account behind the credentials is
 * not this one's failure.
 * @returns until when the account's circuit is open; null: it is closed
 */
export const noteCircuit = async (tx: Tx, work: SweepWork, inspection: Inspection): Promise<number | null> => {
  const { provider } = work.backend
  // Where the account was never read there is nothing to share: the row's own delay is enough.
  const scope = inspection.kind === 'inspected' ? inspection.scope : work.backend.scope
  if (scope === null || inspection.kind === 'stranded') return null
  const error = inspection.kind === 'raised' ? inspection.error : nothingListed(inspection.inventory)
  if (error === null) {
    await closeCircuit(tx, provider, scope)
    return null
  }
  const startedAt = inspection.kind === 'raised' ? inspection.startedAt : inspection.listing.startedAt
  const row = await lockCircuit(tx, provider, scope)
  const before = row ? { failures: row.failures, failedAt: row.failed_at, openUntil: row.open_until } : null
  const after = circuitAfterFailure(before, startedAt, tx.now)
  if (after !== before) {
    const { failures, failedAt, openUntil } = after
    const saved: CircuitRow = {
      provider,
      scope: scope as ScopeId,
      failures,
      failed_at: failedAt,
      open_until: openUntil,
      error,
    }
    await saveCircuit(tx, saved)
  }
  return circuitOpenUntil(after, tx.now)
}
