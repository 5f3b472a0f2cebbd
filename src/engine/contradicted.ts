/** Which removals an open finding contradicts: what they were refused for may never change by itself, so a person may end them (orphans R91). */
import { resourceKey } from '../model/removal.ts'
import { listFindings } from '../store/findings.ts'
import type { RemovalRow } from '../store/removals.ts'
import type { Session } from '../store/store.ts'
import { identitiesOf, plannedOf } from './removal-row.ts'

/** @returns ids of removals. By the finding's own word, or because it is about a member: a sweep that sees the same tells of it in words of its own. */
export const contradictedRemovals = async (session: Session, removals: readonly RemovalRow[]): Promise<Set<string>> => {
  const findings = []
  for (const project of new Set(removals.map((row) => row.project)))
    findings.push(...(await listFindings(session, { project, state: 'open', codes: ['contradiction'], limit: 5000 })))
  const named = new Set(findings.map((row) => (JSON.parse(row.evidence) as { removal?: string }).removal))
  const about = new Set(findings.map((row) => `${row.scope} ${row.target_id}`))
  const isAbout = (row: RemovalRow): boolean =>
    [...identitiesOf(row), ...plannedOf(row)].some((one) =>
      about.has(`${row.scope} ${resourceKey(row.provider, one.location, one.nativeId)}`),
    )
  return new Set(removals.filter((row) => named.has(row.id) || isAbout(row)).map((row) => row.id))
}
