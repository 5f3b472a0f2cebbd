/** The durable act of taking one group back. */
import { sql, type Selectable } from 'kysely'
import { among, rowsIn } from './bulk.ts'
import { unlocked, wakeRow } from './due.ts'
import type { AttemptId, RemovalId } from '../model/ids.ts'
import { isOpenRemoval, isOverRemoval } from '../model/removal.ts'
import type { RemovalsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type RemovalRow = Selectable<RemovalsTable>

export const removalsByIds = (session: Session, ids: readonly string[]): Promise<RemovalRow[]> => rowsIn(session, 'removals', 'id', ids)

export const lockRemoval = (tx: Tx, id: string): Promise<RemovalRow | undefined> =>
  tx.db
    .selectFrom('removals')
    .selectAll()
    .where('id', '=', id as RemovalId)
    .$if(tx.dialect === 'postgresql', (query) => query.forUpdate())
    .executeTakeFirst()

/** Neither proved gone nor closed, the oldest first; `project` null: of every one. */
export const unfinishedRemovals = (session: Session, project: string | null): Promise<RemovalRow[]> =>
  session.db
    .selectFrom('removals')
    .selectAll()
    .where('state', 'not in', ['gone', 'closed'])
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('opened_at')
    .orderBy('id')
    .limit(5000)
    .execute()

/** Open ones and given-up ones, oldest first: nobody has proved these gone, and nobody has closed them. */
export const unfinishedRemovalsOf = async (session: Session, attemptIds: readonly AttemptId[]): Promise<RemovalRow[]> =>
  (await rowsIn(session, 'removals', 'attempt_id', attemptIds, { order: ['opened_at', 'id'] })).filter((row) => !isOverRemoval(row.state))

/** All that were ever ordered of it, oldest first. */
export const removalsOfAttempt = (session: Session, attemptId: AttemptId): Promise<RemovalRow[]> =>
  rowsIn(session, 'removals', 'attempt_id', [attemptId], { order: ['opened_at', 'id'] })

/** The open removals of these attempts: never two for one attempt. One that gave up is none (orphans R98). */
export const openRemovalsOf = async (session: Session, attemptIds: readonly AttemptId[]): Promise<RemovalRow[]> =>
  (await rowsIn(session, 'removals', 'attempt_id', attemptIds)).filter((row) => isOpenRemoval(row.state))

/**
 * orphans R91: an instance that ended, of which nothing is tried any more and not everything is gone, has given up from now on. The caller holds its lock.
 * What is still tried, or was never looked for, keeps it out of the sweeps' hands (orphans R54).
 */
export const markGaveUp = async (tx: Tx, instanceIds: readonly string[]): Promise<void> => {
  if (instanceIds.length === 0) return
  await tx.db
    .updateTable('instances')
    .set({ gave_up_at: tx.now, changed_at: tx.now })
    .where(sql<boolean>`id in ${among(tx, instanceIds)}`)
    .where('state', '=', 'terminating')
    .where('gave_up_at', 'is', null)
    .where((where) =>
      where.exists(
        where
          .selectFrom('removals')
          .select('removals.id')
          .whereRef('removals.instance_id', '=', 'instances.id')
          .where('removals.state', '=', 'gave-up'),
      ),
    )
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('removals')
            .select('removals.id')
            .whereRef('removals.instance_id', '=', 'instances.id')
            .where('removals.state', 'not in', ['gone', 'gave-up', 'closed']),
        ),
      ),
    )
    .execute()
}

/** What gave up and is proved gone by another removal, or by a look: the proof ends both. */
export const closeGivenUp = async (tx: Tx, attemptIds: readonly string[]): Promise<void> => {
  if (attemptIds.length === 0) return
  await tx.db
    .updateTable('removals')
    .set((set) => ({ ...unlocked(null), state: 'gone', gone_at: tx.now, lock_fence: set('lock_fence', '+', 1) }))
    .where(sql<boolean>`attempt_id in ${among(tx, attemptIds)}`)
    // Written out, as the index of these is.
    .where(sql<boolean>`state = 'gave-up'`)
    .execute()
}

/**
 * Somebody asks for what gave up once more: it gets its whole budget again, unless another removal of the same attempt is at work, which is then woken.
 * The caller holds the instance's lock.
 */
export const retryGivenUp = async (tx: Tx, removal: RemovalRow): Promise<void> => {
  const [other] = await openRemovalsOf(tx, [removal.attempt_id])
  if (other) return wakeRow(tx, 'removals', other.id)
  await tx.db
    .updateTable('removals')
    .set((set) => ({
      ...unlocked(tx.now),
      state: removal.started_at === null ? 'preparing' : 'removing',
      lock_fence: set('lock_fence', '+', 1),
      first_failed_at: null,
      accepted_at: null,
      failures: 0,
      polls: 0,
      stopped: null,
    }))
    .where('id', '=', removal.id)
    .execute()
  await tx.db
    .updateTable('instances')
    .set({ gave_up_at: null, changed_at: tx.now })
    .where('id', '=', removal.instance_id)
    .where('state', '=', 'terminating')
    .execute()
}

/** Newest last. */
export const removalsOfLeases = (session: Session, leaseIds: readonly string[]): Promise<RemovalRow[]> =>
  rowsIn(session, 'removals', 'lease_id', leaseIds, { order: ['opened_at', 'id'] })

/** Held removals are tried again at once: when a hold or a freeze goes. */
export const wakeHeldRemovals = async (tx: Tx): Promise<void> => {
  await tx.db
    .updateTable('removals')
    .set({ due_at: tx.now })
    .where('held_by', 'is not', null)
    .where('state', 'not in', ['gone', 'gave-up', 'closed'])
    .where('lock_owner', 'is', null)
    .where('due_at', 'is not', null)
    .execute()
}
