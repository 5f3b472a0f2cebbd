/** What needs time or a person: durable, and not repeated while it stands (orphans U6). */
import { sql, type Selectable } from 'kysely'
import { forUpdate } from './bulk.ts'
import type { FindingCode } from '../model/codes.ts'
import type { FindingsTable } from './schema-sweeps.ts'
import type { AttemptId, ScopeId } from '../model/ids.ts'
import type { Session, Tx } from './store.ts'
import { storable } from './values.ts'

export type FindingRow = Selectable<FindingsTable>
export type NewFinding = Pick<
  FindingRow,
  'code' | 'project' | 'scope' | 'target_type' | 'target_id' | 'target_name' | 'message' | 'fingerprint'
> & {
  evidence: Record<string, unknown>
  sweep?: SweepColumns
}

/** One for each project, and of a resource one for each account: ids of two accounts may be the same. */
const openOne = (tx: Tx, finding: Pick<NewFinding, 'code' | 'project' | 'scope' | 'target_type' | 'target_id'>) =>
  forUpdate(
    tx,
    tx.db
      .selectFrom('findings')
      .selectAll()
      .where('code', '=', finding.code)
      .where('target_type', '=', finding.target_type)
      .where('target_id', '=', finding.target_id)
      .where('project', finding.project === null ? 'is' : '=', finding.project)
      .$if(finding.target_type === 'resource', (query) => query.where('scope', finding.scope === null ? 'is' : '=', finding.scope))
      .where('state', '=', 'open'),
  ).executeTakeFirst()

/** What a sweep notes on a finding: whom it is about, and how far its quarantine is. */
export type SweepColumns = Pick<
  FindingRow,
  'backend' | 'ref' | 'attempt_id' | 'standing_since' | 'complete_sightings' | 'last_complete_at' | 'sweep_id'
>
export const unswept: SweepColumns = {
  backend: null,
  ref: null,
  attempt_id: null,
  standing_since: null,
  complete_sightings: 0,
  last_complete_at: null,
  sweep_id: null,
}

export type Sighting = { kind: 'appeared' | 'changed' | 'again'; row: FindingRow }

/** @returns false when somebody else has opened the same one at this moment. */
const insertOpen = async (tx: Tx, row: FindingRow): Promise<boolean> => {
  const result = await tx.db
    .insertInto('findings')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/**
 * Opens the finding, or counts one more sighting of the open one.
 * @param makeId called for a new one
 */
export const sight = async (tx: Tx, finding: NewFinding, makeId: () => string): Promise<Sighting> => {
  const { evidence, sweep, ...columns } = finding
  for (;;) {
    const open = await openOne(tx, finding)
    if (open) {
      const changed = open.fingerprint !== finding.fingerprint
      const values = {
        message: finding.message,
        evidence: JSON.stringify(evidence),
        fingerprint: finding.fingerprint,
        last_seen_at: tx.now,
        ...sweep,
      }
      await tx.db
        .updateTable('findings')
        .set({ ...values, times_seen: open.times_seen + 1 })
        .where('id', '=', open.id)
        .execute()
      return { kind: changed ? 'changed' : 'again', row: { ...open, ...values, times_seen: open.times_seen + 1 } }
    }
    const row: FindingRow = {
      ...columns,
      evidence: JSON.stringify(evidence),
      id: makeId(),
      state: 'open',
      first_seen_at: tx.now,
      last_seen_at: tx.now,
      times_seen: 1,
      reported_at: null,
      resolved_at: null,
      ...unswept,
      ...sweep,
    }
    if (await insertOpen(tx, row)) return { kind: 'appeared', row }
  }
}

export const markReported = async (tx: Tx, id: string): Promise<void> => {
  await tx.db.updateTable('findings').set({ reported_at: tx.now }).where('id', '=', id).execute()
}

/** Whose: only of this project, and of this account. */
export interface Whose {
  project?: string
  scope?: string
}

/** @param code null resolves every open finding about these targets. @returns what was open. */
export const resolveFindings = async (
  tx: Tx,
  code: string | null,
  targetType: string,
  targetIds: readonly string[],
  whose: Whose = {},
): Promise<FindingRow[]> => {
  if (targetIds.length === 0) return []
  const open = await tx.db
    .selectFrom('findings')
    .selectAll()
    .where('target_type', '=', targetType)
    .where('target_id', 'in', targetIds)
    .where('state', '=', 'open')
    .$if(code !== null, (query) => query.where('code', '=', code as string))
    .$if(whose.project !== undefined, (query) => query.where('project', '=', whose.project as string))
    .$if(whose.scope !== undefined, (query) => query.where('scope', '=', whose.scope as ScopeId))
    .execute()
  if (open.length > 0)
    await tx.db
      .updateTable('findings')
      .set({ state: 'resolved', resolved_at: tx.now })
      .where(
        'id',
        'in',
        open.map((row) => row.id),
      )
      .execute()
  return open
}

export interface About {
  code: FindingCode
  targetType: string
  targetId: string
}

/** Which of these stand open; in one statement, for most often it is none. */
export const openAmong = async (session: Session, abouts: readonly About[]): Promise<About[]> => {
  if (abouts.length === 0) return []
  const json = JSON.stringify(abouts.map(({ code, targetType, targetId }) => [code, targetType, storable(targetId)]))
  const wanted =
    session.dialect === 'sqlite'
      ? sql`(select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') from json_each(${json}))`
      : sql`(select value->>0, value->>1, value->>2 from json_array_elements(${json}::json))`
  const { rows } = await sql<About>`select distinct code, target_type as "targetType", target_id as "targetId" from findings
    where state = 'open' and (code, target_type, target_id) in ${wanted}`.execute(session.db)
  return rows
}

export interface FindingFilter {
  project: string | null
  state: 'open' | 'resolved' | null
  /** Missing or empty: of every code. */
  codes?: readonly string[]
  backend?: string | null
  /** ms: first seen no later than this. */
  firstSeenUntil?: number | null
  /** Only what comes after this one in the order of the list. */
  after?: Pick<FindingRow, 'last_seen_at' | 'id'> | null
  limit: number
}

/** Of a backend are what its sweeps found, what is about itself, and what is about its instances. */
const ofBackend = (backend: string) =>
  sql<boolean>`(backend = ${backend} or (target_type = 'backend' and target_name = ${backend})
    or exists (select 1 from instances i where i.ref = findings.ref and i.backend = ${backend}))`

export const listFindings = (session: Session, filter: FindingFilter): Promise<FindingRow[]> =>
  session.db
    .selectFrom('findings')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project))
    .$if(filter.state !== null, (query) => query.where('state', '=', filter.state as 'open'))
    .$if((filter.codes ?? []).length > 0, (query) => query.where('code', 'in', filter.codes as string[]))
    .$if(filter.backend != null, (query) => query.where(ofBackend(filter.backend as string)))
    .$if(filter.firstSeenUntil != null, (query) => query.where('first_seen_at', '<=', filter.firstSeenUntil as number))
    .$if(filter.after != null, (query) => {
      const { last_seen_at: at, id } = filter.after as Pick<FindingRow, 'last_seen_at' | 'id'>
      return query.where((where) =>
        where.or([where('last_seen_at', '<', at), where.and([where('last_seen_at', '=', at), where('id', '<', id)])]),
      )
    })
    .orderBy('last_seen_at', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()

/** Newest last. @param targetType null: of every type */
export const findingsAbout = (session: Session, targetType: string | null, targetId: string): Promise<FindingRow[]> =>
  session.db
    .selectFrom('findings')
    .selectAll()
    .where('target_id', '=', targetId)
    .$if(targetType !== null, (query) => query.where('target_type', '=', targetType as string))
    .orderBy('last_seen_at')
    .orderBy('id')
    .execute()

export const findingById = (session: Session, id: string): Promise<FindingRow | undefined> =>
  session.db.selectFrom('findings').selectAll().where('id', '=', id).executeTakeFirst()

/** What was seen of an attempt's orphans so far counts no more: their quarantine begins with the next sighting (leases R59). */
export const restartQuarantine = async (tx: Tx, attemptId: AttemptId, scope: ScopeId): Promise<void> => {
  await tx.db
    .updateTable('findings')
    .set({ standing_since: null, complete_sightings: 0, last_complete_at: null })
    .where('attempt_id', '=', attemptId)
    .where('scope', '=', scope)
    .where('state', '=', 'open')
    .where('code', '=', 'orphan')
    .execute()
}
