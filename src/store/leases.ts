/** A holder's right to an instance. Ended rows stay as evidence (leases R12). */
import { sql, type Selectable } from 'kysely'
import { rowsIn } from './bulk.ts'
import { leaseCondition, type ReportConditions } from './report-conditions.ts'
import type { LeaseId } from '../model/ids.ts'
import type { LeaseState } from '../model/wire.ts'
import { systemActor } from '../model/removal-evidence.ts'
import type { CreateRequestsTable, LeasesTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type LeaseRow = Selectable<LeasesTable>
export type CreateRequestRow = Selectable<CreateRequestsTable>

export const leasesByIds = (session: Session, ids: readonly string[]): Promise<LeaseRow[]> => rowsIn(session, 'leases', 'id', ids)

/** Locks the rows for this transaction. */
export const lockLeases = (tx: Tx, ids: readonly string[]): Promise<LeaseRow[]> => rowsIn(tx, 'leases', 'id', ids, { lock: true })

export const leaseById = (session: Session, id: string): Promise<LeaseRow | undefined> =>
  session.db
    .selectFrom('leases')
    .selectAll()
    .where('id', '=', id as LeaseId)
    .executeTakeFirst()

/** A slug names live, unexpired leases only: slugs are not reserved after an end (leases R1). */
export const liveLeasesBySlug = (session: Session, slug: string, project: string | null, now: number): Promise<LeaseRow[]> =>
  session.db
    .selectFrom('leases')
    .selectAll()
    .where('slug', '=', slug)
    .where('state', 'in', ['provisioning', 'active'])
    .where('expires_at', '>', now)
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .execute()

/** Written into the statement, as the index of live leases is: with parameters SQLite would look at every lease that a project ever had. */
const isLiveText = sql<boolean>`state in ('provisioning', 'active')`

/** Of all that ever had it, the newest; live ones are found by `liveLeasesBySlug`. */
export const newestLeaseBySlug = (session: Session, slug: string, project: string | null): Promise<LeaseRow | undefined> =>
  session.db
    .selectFrom('leases')
    .selectAll()
    .where('slug', '=', slug)
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

export const slugIsLive = async (session: Session, project: string, slug: string): Promise<boolean> =>
  (await session.db
    .selectFrom('leases')
    .select('id')
    .where('project', '=', project)
    .where('slug', '=', slug)
    .where(isLiveText)
    .executeTakeFirst()) !== undefined

export const liveLeases = (session: Session, project: string): Promise<Pick<LeaseRow, 'owner' | 'state' | 'expires_at'>[]> =>
  session.db.selectFrom('leases').select(['owner', 'state', 'expires_at']).where('project', '=', project).where(isLiveText).execute()

export interface LeaseFilter {
  project: string | null
  states: readonly LeaseState[] | null
  provider: string | null
  owner: string | null
  report?: ReportConditions
  limit: number
}

const filtered = (session: Session, filter: LeaseFilter) => {
  const report = filter.report === undefined ? null : leaseCondition(session.dialect, filter.report)
  return session.db
    .selectFrom('leases')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project as string))
    .$if(filter.states !== null, (query) => query.where('state', 'in', filter.states as LeaseState[]))
    .$if(filter.provider !== null, (query) => query.where('provider', '=', filter.provider as string))
    .$if(filter.owner !== null, (query) => query.where('owner', '=', filter.owner as string))
    .$if(report !== null, (query) => query.where(report as NonNullable<typeof report>))
}

/** Newest first. */
export const listLeases = (session: Session, filter: LeaseFilter): Promise<LeaseRow[]> =>
  filtered(session, filter).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(filter.limit).execute()

/**
 * Leases with cleanup debt (leases R49): an error or a retry, a removal that is open, a resource that may exist, a reminder that
 * is overdue, what a closed removal may have left. Live ones first, then newest first.
 * @param since ms: what was ordered before is another installation's, which this one was forked from
 */
export const leasesWithDebt = (session: Session, filter: LeaseFilter, now: number, since: number): Promise<LeaseRow[]> =>
  filtered(session, filter)
    .where((where) =>
      where.or([
        where('may_exist', '=', 1),
        where.and([where('retained_at', 'is not', null), where('retain_until', '<=', now), where('release_deletes', '=', 0)]),
        where.exists(
          where
            .selectFrom('removals')
            .select('removals.id')
            .whereRef('removals.lease_id', '=', 'leases.id')
            .where('removals.state', 'not in', ['gone', 'closed']),
        ),
        // A person closed it, and nothing has proved since that nothing of it is left (orphans R91). What a fork left is nobody's debt here.
        where.exists(
          where
            .selectFrom('removals')
            .innerJoin('attempts', 'attempts.id', 'removals.attempt_id')
            .select('removals.id')
            .whereRef('removals.lease_id', '=', 'leases.id')
            .where('removals.state', '=', 'closed')
            .where('removals.closed_by', '<>', systemActor)
            .where('removals.opened_at', '>=', since)
            .where('attempts.outcome', '=', 'abandoned'),
        ),
      ]),
    )
    .orderBy(sql`case when state in ('provisioning', 'active') then 0 else 1 end`)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()

export const countLeases = async (session: Session): Promise<Record<string, number>> => {
  const rows = await session.db
    .selectFrom('leases')
    .select(['state', sql<number>`count(*)`.as('n')])
    .groupBy('state')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.n)]))
}

/**
 * Downtime is not idleness (decisions 1): idle deadlines that fell between `from` and `to` move to `until`, never past
 * createdAt + ttl. `due_at` stays: the pipeline moves it when it finds the lease not expired.
 * @returns how many moved
 */
export const forgiveIdleness = async (tx: Tx, from: number, to: number, until: number): Promise<number> => {
  const capped = sql<number>`case when created_at + ttl_seconds * 1000 < ${until} then created_at + ttl_seconds * 1000 else ${sql`cast(${until} as bigint)`} end`
  const result = await tx.db
    .updateTable('leases')
    .set({ expires_at: capped })
    .where('state', 'in', ['provisioning', 'active'])
    .where('expires_at', '>', from)
    .where('expires_at', '<=', to)
    .where(sql<boolean>`expires_at < created_at + ttl_seconds * 1000`)
    // Its end had come, and its removal was opened, which takes the due time away: nothing revives it (leases R22). Asked of the row itself, which is read again
    // after a wait for whoever opens one just now; what other tables said before that wait would stand.
    .where('due_at', 'is not', null)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Keys are random and long: one stands for one create, whatever the project. */
export const createRequest = (session: Session, requestKey: string): Promise<CreateRequestRow | undefined> =>
  session.db.selectFrom('create_requests').selectAll().where('request_key', '=', requestKey).executeTakeFirst()

/** Of two that come at once one waits for the other and loses. @returns false when the key is known already, as created or as cancelled */
export const claimCreateRequest = async (tx: Tx, row: Omit<CreateRequestRow, 'created_at'>): Promise<boolean> => {
  const result = await tx.db
    .insertInto('create_requests')
    .values({ ...row, created_at: tx.now })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** The tombstone: written before the lease is looked for, so that a create under way is either seen or refused. */
export const cancelCreateRequest = async (tx: Tx, row: Pick<CreateRequestRow, 'project' | 'request_key' | 'lease_id'>): Promise<void> => {
  await tx.db
    .insertInto('create_requests')
    .values({ ...row, state: 'canceled', request_hash: null, created_at: tx.now })
    .onConflict((conflict) => conflict.column('request_key').doUpdateSet({ state: 'canceled' }))
    .execute()
}
