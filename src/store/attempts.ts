/** One try to create for a ref. What a call taught is written here, also by a worker that has lost its lock (I3). */
import { rowsIn } from './bulk.ts'
import type { Selectable, Updateable } from 'kysely'
import type { AttemptId, ScopeId } from '../model/ids.ts'
import type { AttemptsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type AttemptRow = Selectable<AttemptsTable>

/** Newest last. */
export const attemptsOf = (session: Session, instanceIds: readonly string[]): Promise<AttemptRow[]> =>
  rowsIn(session, 'attempts', 'instance_id', instanceIds, { order: ['instance_id', 'number'] })

export const attemptById = (session: Session, id: string): Promise<AttemptRow | undefined> =>
  session.db
    .selectFrom('attempts')
    .selectAll()
    .where('id', '=', id as AttemptId)
    .executeTakeFirst()

export const updateAttempt = async (tx: Tx, id: AttemptId, values: Updateable<AttemptsTable>): Promise<void> => {
  await tx.db.updateTable('attempts').set(values).where('id', '=', id).execute()
}

/** The identity that a provider answered, as columns. */
export const identityColumns = (identity: {
  kind: string
  nativeId: string
  immutableId: string
  location: string
  facts: Record<string, string>
}) => ({
  kind: identity.kind,
  native_id: identity.nativeId,
  immutable_id: identity.immutableId,
  location: identity.location,
  facts: JSON.stringify(identity.facts),
})

/** The recorded identity, or null while the attempt has none. */
export const identityOf = (attempt: AttemptRow) =>
  attempt.immutable_id === null || attempt.native_id === null || attempt.kind === null
    ? null
    : {
        scope: attempt.scope as ScopeId,
        location: attempt.location,
        kind: attempt.kind,
        nativeId: attempt.native_id,
        immutableId: attempt.immutable_id,
        facts: JSON.parse(attempt.facts ?? '{}') as Record<string, string>,
      }
