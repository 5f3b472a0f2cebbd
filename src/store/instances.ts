/** The records that provision. A row is never deleted (decisions 5). */
import { sql, type Selectable } from 'kysely'
import { rowsIn } from './bulk.ts'
import { instanceCondition, type ReportConditions } from './report-conditions.ts'
import type { InstanceId, Ref } from '../model/ids.ts'
import type { InstanceState } from '../model/wire.ts'
import type { InstancesTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type InstanceRow = Selectable<InstancesTable>

export const instancesByIds = (session: Session, ids: readonly string[]): Promise<InstanceRow[]> => rowsIn(session, 'instances', 'id', ids)

/** Locks the rows for this transaction. */
export const lockInstances = (tx: Tx, ids: readonly string[]): Promise<InstanceRow[]> => rowsIn(tx, 'instances', 'id', ids, { lock: true })

/** @param key an instance id or a ref */
export const findInstance = (session: Session, key: string): Promise<InstanceRow | undefined> =>
  session.db
    .selectFrom('instances')
    .selectAll()
    .where((where) => where.or([where('id', '=', key as InstanceId), where('ref', '=', key as Ref)]))
    .executeTakeFirst()

/** The kind of what each is bound to; one that recorded nothing is not in it. */
export const boundKinds = async (session: Session, ids: readonly string[]): Promise<Map<string, string>> => {
  const instances = await instancesByIds(session, ids)
  const attempts = await rowsIn(
    session,
    'attempts',
    'id',
    instances.flatMap((row) => row.attempt_id ?? []),
  )
  return new Map(attempts.flatMap((row) => (row.kind === null ? [] : [[row.instance_id, row.kind] as const])))
}

export interface InstanceFilter {
  project: string | null
  state: InstanceState | null
  report?: ReportConditions
  limit: number
}

export const listInstances = (session: Session, filter: InstanceFilter): Promise<InstanceRow[]> => {
  const report = filter.report === undefined ? null : instanceCondition(session.dialect, filter.report)
  return session.db
    .selectFrom('instances')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project as string))
    .$if(filter.state !== null, (query) => query.where('state', '=', filter.state as InstanceState))
    .$if(report !== null, (query) => query.where(report as NonNullable<typeof report>))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()
}

export const countInstances = async (session: Session): Promise<Record<string, number>> => {
  const rows = await session.db
    .selectFrom('instances')
    .select(['state', sql<number>`count(*)`.as('n')])
    .groupBy('state')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.n)]))
}
