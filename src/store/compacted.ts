/** What has ended and was proved gone long since: its rows are let go of, and this one says for ever what it was. The ledger, attempts, removals and the audit stay. */
import { sql } from 'kysely'
import type { Selectable } from 'kysely'
import type { InstanceId, LeaseId, Ref } from '../model/ids.ts'
import { rowsIn } from './bulk.ts'
import { lockInstances, type InstanceRow } from './instances.ts'
import { lockLeases, type LeaseRow } from './leases.ts'
import type { CompactedTable } from './schema-fleets.ts'
import type { Session, Tx } from './store.ts'

export type CompactedRow = Selectable<CompactedTable>

export const compactedByRef = (session: Session, ref: string): Promise<CompactedRow | undefined> =>
  session.db
    .selectFrom('compacted')
    .selectAll()
    .where('ref', '=', ref as Ref)
    .executeTakeFirst()

export const compactedByLease = (session: Session, id: string): Promise<CompactedRow | undefined> =>
  session.db
    .selectFrom('compacted')
    .selectAll()
    .where('lease_id', '=', id as LeaseId)
    .executeTakeFirst()

/** The newest of this slug. */
export const compactedBySlug = (session: Session, project: string | null, slug: string): Promise<CompactedRow | undefined> =>
  session.db
    .selectFrom('compacted')
    .selectAll()
    .where('slug', '=', slug)
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()

/** Where a page ended: what is up to it has been looked at. */
export interface Place {
  /** ms */
  at: number
  id: string
}

/**
 * Is there nothing left to say of it? Proved gone, no lease that lives or whose box is kept, no removal but proved ones, no attempt of which something may still
 * surface, and nobody's hold, which names what it holds by its row (I10).
 */
const nothingLeft = (now: number) => sql`i.state = 'terminated' and i.gave_up_at is null
  and not exists (select 1 from removals r where r.instance_id = i.id and r.state <> 'gone')
  and not exists (select 1 from attempts a where a.ref = i.ref and a.outcome in ('open', 'abandoned'))
  and not exists (select 1 from findings f where f.ref = i.ref and f.state = 'open')
  and not exists (select 1 from leases s where s.id = i.lease_id and (s.state in ('provisioning', 'active') or s.due_at is not null))
  and not exists (select 1 from holds h where h.removed_at is null and (h.until_at is null or h.until_at > ${now})
    and ((h.target_type = 'lease' and h.target_id = i.lease_id) or (h.target_type = 'instance' and h.target_id = i.id)))`

const compactedOf = (instance: InstanceRow, lease: LeaseRow | undefined, now: number): CompactedRow => ({
  ref: instance.ref,
  project: instance.project,
  instance_id: instance.id,
  lease_id: lease?.id ?? null,
  slug: lease?.slug ?? instance.name,
  owner: lease?.owner ?? null,
  provider: instance.provider,
  backend: instance.backend,
  lease_state: lease?.state ?? null,
  created_at: instance.created_at,
  ended_at: Math.max(instance.terminated_at ?? 0, lease?.ended_at ?? 0),
  compacted_at: now,
})

/** One page of the instances whose end is before `cutoff` (ms), the oldest first. */
export const readEnded = async (session: Session, cutoff: number, limit: number, after: Place): Promise<Place[]> => {
  const query = sql<Place>`select id, terminated_at as at from instances where terminated_at is not null and terminated_at < ${cutoff}
    and (terminated_at > ${after.at} or (terminated_at = ${after.at} and id > ${after.id})) order by terminated_at, id limit ${limit}`
  return (await query.execute(session.db)).rows
}

/**
 * Lets the rows of these instances go, with the leases' that they were for; what something is left to say of stays. Ledger, attempts, removals and audit stay in
 * any case: what is still there of one is known as ours by them (orphans R51).
 */
export const compact = async (tx: Tx, ids: readonly string[]): Promise<number> => {
  const leaseIds = (await rowsIn(tx, 'instances', 'id', ids)).flatMap((row) => row.lease_id ?? [])
  const leases = new Map((await lockLeases(tx, leaseIds)).map((row) => [row.id, row]))
  const instances = new Map((await lockInstances(tx, ids as InstanceId[])).map((row) => [row.id, row]))
  if (instances.size === 0) return 0
  const among = sql.join([...instances.keys()].map((id) => sql`${id}`))
  const query = sql<{ id: InstanceId }>`select i.id from instances i where i.id in (${among}) and ${nothingLeft(tx.now)}`
  const going = (await query.execute(tx.db)).rows.flatMap((row) => instances.get(row.id) ?? [])
  if (going.length === 0) return 0
  const rows = going.map((row) => compactedOf(row, row.lease_id === null ? undefined : leases.get(row.lease_id), tx.now))
  await tx.db
    .insertInto('compacted')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const ended = rows.flatMap((row) => row.lease_id ?? [])
  if (ended.length > 0) {
    await tx.db.deleteFrom('create_requests').where('lease_id', 'in', ended).execute()
    await tx.db.deleteFrom('leases').where('id', 'in', ended).execute()
  }
  await tx.db
    .deleteFrom('instances')
    .where(
      'id',
      'in',
      going.map((row) => row.id),
    )
    .execute()
  return going.length
}

/** Findings that were resolved before `cutoff`, a page of them. @returns how many went */
export const dropResolvedFindings = async (tx: Tx, cutoff: number, limit: number): Promise<number> => {
  const page = sql`select id from findings where state = 'resolved' and resolved_at < ${cutoff} order by resolved_at limit ${limit}`
  const result = await sql`delete from findings where state = 'resolved' and id in (${page})`.execute(tx.db)
  return Number(result.numAffectedRows ?? 0)
}

/**
 * Certificates of sweeps from before `cutoff`, a page of them: not the newest of a backend, and none that a removal stands on, which its audit records name.
 * @param after where the page before ended
 * @returns where this page ended; null: there is no older one
 */
export const dropSweepsAfter = async (tx: Tx, cutoff: number, limit: number, after: Place): Promise<Place | null> => {
  const query = sql<{ id: string; started_at: number; kept: number }>`select s.id, s.started_at,
    case when exists (select 1 from removals r where r.scope = s.scope and r.opened_at between s.started_at and s.finished_at)
      or exists (select 1 from removals r where r.scope = s.scope and r.begun_at is not null and r.begun_at between s.started_at and s.finished_at)
      or not exists (select 1 from sweeps n where n.project = s.project and n.backend = s.backend and n.started_at > s.started_at)
      then 1 else 0 end as kept
    from sweeps s
    where s.started_at < ${cutoff} and s.finished_at is not null
      and (s.started_at > ${after.at} or (s.started_at = ${after.at} and s.id > ${after.id}))
    order by s.started_at, s.id limit ${limit}`
  const { rows } = await query.execute(tx.db)
  const last = rows.at(-1)
  if (!last) return null
  const going = rows.filter((row) => Number(row.kept) === 0).map((row) => row.id)
  if (going.length > 0) await tx.db.deleteFrom('sweeps').where('id', 'in', going).execute()
  return { at: last.started_at, id: last.id }
}
