/** One try to create for a ref. What a call taught is written here, also by a worker that has lost its lock (I3). */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { sql } from 'kysely'
import { hex, uuidv7Hex } from '../lib/ids.ts'
import { rowsIn } from './bulk.ts'
import type { Selectable, Updateable } from 'kysely'
import type { AttemptId, ScopeId } from '../model/ids.ts'
import type { AttemptsTable } from './schema.ts'
import type { Session, Store, Tx } from './store.ts'

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

type OpenAttempt = Pick<AttemptRow, 'ref' | 'instance_id' | 'number' | 'project' | 'backend' | 'scope' | 'location'>

/**
 * Opens one that nobody was asked for yet, with a token of its own.
 * @param deadlineMs how long the provider's create may take
 */
export const insertOpenAttempt = async (
  tx: Tx,
  { ref, instance_id, number, project, backend, scope, location }: OpenAttempt,
  deadlineMs: number,
): Promise<void> => {
  await tx.db
    .insertInto('attempts')
    .values({
      id: `at_${uuidv7Hex(tx.now)}` as AttemptId,
      ref,
      instance_id,
      number,
      token: hex(16),
      project,
      backend,
      scope,
      location,
      outcome: 'open',
      opened_at: tx.now,
      called_at: null,
      called_by: null,
      deadline_at: tx.now + deadlineMs,
      ended_at: null,
      kind: null,
      native_id: null,
      immutable_id: null,
      facts: null,
      error: null,
      absent_since: null,
    })
    .execute()
}

const attemptsAStatement = 2000

/**
 * Every location that a backend ever made something in (orphans U8). The embedded database works in our own thread: there the table, which keeps every attempt
 * for ever, is walked in parts, and others come in between.
 */
export const usedLocations = async (store: Store, project: string, backend: string): Promise<string[]> => {
  if (store.dialect === 'postgresql') {
    const query = sql<{ location: string }>`select distinct location from attempts where project = ${project} and backend = ${backend}`
    return (await store.read(({ db }) => query.execute(db))).rows.map((row) => row.location)
  }
  const found = new Set<string>()
  for (let after = 0; ;) {
    const query = sql<{ last: number | null; used: string }>`select max(at) as last,
      json_group_array(distinct location) filter (where project = ${project} and backend = ${backend}) as used
      from (select rowid as at, project, backend, location from attempts where rowid > ${after} order by rowid limit ${attemptsAStatement})`
    const part = (await store.read(({ db }) => query.execute(db))).rows[0]
    if (part === undefined || part.last === null) return [...found]
    for (const location of JSON.parse(part.used) as string[]) found.add(location)
    after = part.last
    await yieldToOthers()
  }
}

export const updateAttempt = async (tx: Tx, id: AttemptId, values: Updateable<AttemptsTable>): Promise<void> => {
  await tx.db.updateTable('attempts').set(values).where('id', '=', id).execute()
}

/** The identity that a provider answered, as columns. */
export const identityColumns = (identity: {
  scope: ScopeId
  kind: string
  nativeId: string
  immutableId: string
  location: string
  facts: Record<string, string>
}) => ({
  // Where it was really made: the account behind a backend may have changed since it was last read back.
  scope: identity.scope,
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
