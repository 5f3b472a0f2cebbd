/**
 * The filters of reports as conditions: true also where the database can not answer, so that a page of a list holds what is unknown beside what fits.
 * Which is which says `model/report-filter.ts`.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Label } from '../model/report-filter.ts'
import type { DialectName } from './store.ts'

/** What a list of leases or instances is narrowed by; null: not. Times in ms. */
export interface ReportConditions {
  owner: string | null
  kind: string | null
  label: Label | null
  createdUntil: number | null
}
export const anyReport: ReportConditions = { owner: null, kind: null, label: null, createdUntil: null }

/** Does a column with a JSON object of labels have this one? */
export const hasLabel = (dialect: DialectName, column: RawBuilder<unknown>, { key, value }: Label): RawBuilder<boolean> =>
  dialect === 'sqlite'
    ? sql<boolean>`exists (select 1 from json_each(${column}) where key = ${key} and value = ${value})`
    : sql<boolean>`coalesce(${column}::json ->> ${key} = ${value}, false)`

/** Of an instance that has no bound attempt, or one that recorded nothing, nobody knows the kind. */
const kindOf = (instanceId: RawBuilder<unknown>, kind: string): RawBuilder<boolean> =>
  sql<boolean>`not exists (select 1 from instances i join attempts a on a.id = i.attempt_id where i.id = ${instanceId} and a.kind <> ${kind})`

const every = (conditions: (RawBuilder<boolean> | null)[]): RawBuilder<boolean> | null => {
  const asked = conditions.filter((one) => one !== null)
  return asked.length === 0 ? null : sql<boolean>`(${sql.join(asked, sql` and `)})`
}

/** @returns null: nothing is asked */
export const leaseCondition = (dialect: DialectName, asked: ReportConditions): RawBuilder<boolean> | null =>
  every([
    asked.owner === null ? null : sql<boolean>`leases.owner = ${asked.owner}`,
    asked.createdUntil === null ? null : sql<boolean>`leases.created_at <= ${asked.createdUntil}`,
    asked.label === null ? null : hasLabel(dialect, sql`leases.labels`, asked.label),
    asked.kind === null ? null : kindOf(sql`leases.instance_id`, asked.kind),
  ])

/** Owner and labels are those of the lease; an instance without one has none that anybody knows. */
export const instanceCondition = (dialect: DialectName, asked: ReportConditions): RawBuilder<boolean> | null =>
  every([
    asked.createdUntil === null ? null : sql<boolean>`instances.created_at <= ${asked.createdUntil}`,
    asked.owner === null
      ? null
      : sql<boolean>`not exists (select 1 from leases l where l.id = instances.lease_id and l.owner <> ${asked.owner})`,
    asked.label === null
      ? null
      : sql<boolean>`not exists (select 1 from leases l where l.id = instances.lease_id and not ${hasLabel(dialect, sql`l.labels`, asked.label)})`,
    asked.kind === null ? null : kindOf(sql`instances.id`, asked.kind),
  ])
