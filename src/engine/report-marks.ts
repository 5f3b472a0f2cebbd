/** What a filter could not answer is marked in what it shows (`model/report-filter.ts`). */
import { parseLabel, type ReportFilter, type Shown } from '../model/report-filter.ts'
import type { ReportConditions } from '../store/report-conditions.ts'

/** @param now ms: what an age is counted from */
export const conditionsOf = (asked: ReportFilter, now: number): ReportConditions => ({
  owner: asked.owner ?? null,
  kind: asked.kind ?? null,
  label: asked.label === undefined ? null : parseLabel(asked.label),
  createdUntil: asked.olderThanSeconds === undefined ? null : now - asked.olderThanSeconds * 1000,
})

/** There only while it says something. */
export const marked = <View extends object>(view: View, shown: Shown): View & { unknown?: string[] } =>
  shown === null || shown.length === 0 ? view : { ...view, unknown: [...shown] }
