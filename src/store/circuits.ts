/** The circuit of each account whose listings fail: shared by its backends and by all replicas (leases R60). No row: it is closed, and nothing failed lately. */
import type { Selectable } from 'kysely'
import { forUpdate } from './bulk.ts'
import type { CircuitsTable } from './schema-sweeps.ts'
import type { ScopeId } from '../model/ids.ts'
import type { Session, Tx } from './store.ts'

export type CircuitRow = Selectable<CircuitsTable>

export const circuitOf = (session: Session, provider: string, scope: string): Promise<CircuitRow | undefined> =>
  session.db
    .selectFrom('circuits')
    .selectAll()
    .where('provider', '=', provider)
    .where('scope', '=', scope as ScopeId)
    .executeTakeFirst()

/** Locked for this transaction: two backends of an account may fail at once. */
export const lockCircuit = (tx: Tx, provider: string, scope: string): Promise<CircuitRow | undefined> =>
  forUpdate(
    tx,
    tx.db
      .selectFrom('circuits')
      .selectAll()
      .where('provider', '=', provider)
      .where('scope', '=', scope as ScopeId),
  ).executeTakeFirst()

export const saveCircuit = async (tx: Tx, row: CircuitRow): Promise<void> => {
  const { provider, scope, ...values } = row
  await tx.db
    .insertInto('circuits')
    .values(row)
    .onConflict((conflict) => conflict.columns(['provider', 'scope']).doUpdateSet(values))
    .execute()
}

/** A listing went well. */
export const closeCircuit = async (tx: Tx, provider: string, scope: string): Promise<void> => {
  await tx.db
    .deleteFrom('circuits')
    .where('provider', '=', provider)
    .where('scope', '=', scope as ScopeId)
    .execute()
}

export const listCircuits = (session: Session): Promise<CircuitRow[]> =>
  session.db.selectFrom('circuits').selectAll().orderBy('provider').orderBy('scope').execute()
