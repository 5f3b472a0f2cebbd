/**
 * What a key names. An id is only what its prefix says; other words are looked up as a ref, a scope, the slug of a live lease, a backend, a fleet, a project, and
 * a native id, in this order.
 */
import { sql } from 'kysely'
import { isLeaseId, isRef } from '../../model/ids.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { AttemptId, RemovalId } from '../../model/ids.ts'
import { attemptById, type AttemptRow } from '../../store/attempts.ts'
import { findBackend, listBackends, type BackendRow } from '../../store/backends.ts'
import { compactedByLease, compactedBySlug, type CompactedRow } from '../../store/compacted.ts'
import { planById } from '../../store/plans.ts'
import { findingById, findingsAbout, type FindingRow } from '../../store/findings.ts'
import { fleetById, listFleets, type FleetRow } from '../../store/fleets.ts'
import { holdById, type HoldRow } from '../../store/holds.ts'
import { findInstance } from '../../store/instances.ts'
import { leaseById, liveLeasesBySlug, newestLeaseBySlug, type LeaseRow } from '../../store/leases.ts'
import { ledgerByRef } from '../../store/ledger.ts'
import { findProject, type ProjectRow } from '../../store/projects.ts'
import { sweepById, type SweepRow } from '../../store/sweeps.ts'
import { compare } from '../../model/group.ts'
import type { Session } from '../../store/store.ts'
import { seesProject, type Actor } from '../actor.ts'
import { keyOfAttempt } from './owner.ts'
import type { EventFacts } from './things.ts'

export type Named =
  | { kind: 'owner'; type: string; ref: string; subject: string; attemptId?: string; removalId?: string }
  | { kind: 'finding'; row: FindingRow }
  | { kind: 'sweep'; row: SweepRow }
  | { kind: 'hold'; row: HoldRow }
  | { kind: 'event'; event: EventFacts }
  | { kind: 'backend'; row: BackendRow }
  | { kind: 'fleet'; row: FleetRow }
  /** A lease whose box has another holder by now, or waits for one. */
  | { kind: 'returned'; lease: LeaseRow }
  | { kind: 'project'; row: ProjectRow }
  | { kind: 'scope'; scope: string }
  | { kind: 'nothing' }

const nothing: Named = { kind: 'nothing' }

const ofLease = async (session: Session, lease: LeaseRow): Promise<Named> => {
  if (lease.returned_at !== null) return { kind: 'returned', lease }
  const instance = await findInstance(session, lease.instance_id)
  const ref =
    instance?.ref ?? (await session.db.selectFrom('ledger').select('ref').where('owner_id', '=', lease.instance_id).executeTakeFirst())?.ref
  return ref === undefined ? nothing : { kind: 'owner', type: 'lease', ref, subject: `lease ${lease.id} (${lease.slug})` }
}

const ofCompacted = (row: CompactedRow | undefined): Named =>
  row === undefined
    ? nothing
    : {
        kind: 'owner',
        type: 'lease',
        ref: row.ref,
        subject: row.lease_id === null ? `instance ${row.instance_id}` : `lease ${row.lease_id} (${row.slug})`,
      }

const ofInstance = async (session: Session, id: string): Promise<Named> => {
  const instance = await findInstance(session, id)
  if (instance) return { kind: 'owner', type: 'instance', ref: instance.ref, subject: `instance ${instance.id} (${instance.name})` }
  // Its row may be gone: the ledger remembers it for ever.
  const row = await session.db.selectFrom('ledger').selectAll().where('owner_id', '=', id).executeTakeFirst()
  return row ? { kind: 'owner', type: 'instance', ref: row.ref, subject: `instance ${id} (${row.owner_name})` } : nothing
}

const ofAttempt = async (session: Session, id: string): Promise<Named> => {
  const row = await attemptById(session, id)
  return row
    ? {
        kind: 'owner',
        type: 'attempt',
        ref: row.ref,
        attemptId: row.id as AttemptId,
        subject: `attempt ${row.id} (number ${row.number} for ref ${row.ref})`,
      }
    : nothing
}

const ofRemoval = async (session: Session, id: string): Promise<Named> => {
  const row = await session.db
    .selectFrom('removals')
    .selectAll()
    .where('id', '=', id as RemovalId)
    .executeTakeFirst()
  return row ? { kind: 'owner', type: 'removal', ref: row.ref, removalId: row.id, subject: `removal ${row.id} of ${row.name}` } : nothing
}

const ofEvent = async (session: Session, id: string): Promise<Named> => {
  const event = await session.db.selectFrom('events').selectAll().where('id', '=', id).executeTakeFirst()
  if (!event) return nothing
  const targets = await session.db
    .selectFrom('event_targets')
    .selectAll()
    .where('event_id', '=', id)
    .orderBy('type')
    .orderBy('id')
    .execute()
  return { kind: 'event', event: { ...event, targets } }
}

/** The newest finding that holds a plan of this id. */
const ofPlan = async (session: Session, id: string): Promise<Named> => {
  const rows = await session.db
    .selectFrom('findings')
    .selectAll()
    .where('code', '=', 'plan-waiting')
    .orderBy('last_seen_at', 'desc')
    .execute()
  const row = rows.find((one) => (JSON.parse(one.evidence) as { plan?: string }).plan === id)
  if (row) return { kind: 'finding', row }
  // One that a person asked for is beyond no limit, and has no finding: its backend tells what is there.
  const plan = await planById(session, id)
  const backend = plan ? await findBackend(session, plan.project, plan.backend) : undefined
  return backend ? { kind: 'backend', row: backend } : nothing
}

type Maker = (session: Session, id: string) => Promise<Named>
const found =
  <Row>(kind: Named['kind'], read: (session: Session, id: string) => Promise<Row | undefined>): Maker =>
  async (session, id) => {
    const row = await read(session, id)
    return row === undefined ? nothing : ({ kind, row } as Named)
  }

const byPrefix: Record<string, Maker> = {
  in: ofInstance,
  at: ofAttempt,
  rm: ofRemoval,
  ev: ofEvent,
  pl: ofPlan,
  fd: found('finding', findingById),
  sw: found('sweep', sweepById),
  hd: found('hold', holdById),
}

const newestFinding = (rows: readonly FindingRow[]): FindingRow | undefined => rows.findLast((row) => row.state === 'open') ?? rows.at(-1)

const resourceOf = (attempt: AttemptRow, key: string): Named => ({
  kind: 'owner',
  type: 'resource',
  ref: attempt.ref,
  attemptId: attempt.id,
  subject: `resource ${key}`,
})

interface Recorded {
  key: string
  attempt: AttemptRow
}

/** Of several attempts that recorded the name, the newest: names are used again. */
const recordedAs = async (session: Session, nativeId: string, key: string | null): Promise<Recorded[]> => {
  const rows = await session.db
    .selectFrom('attempts')
    .leftJoin('instances', 'instances.ref', 'attempts.ref')
    .leftJoin('backends', (join) => join.onRef('backends.project', '=', 'attempts.project').onRef('backends.name', '=', 'attempts.backend'))
    .selectAll('attempts')
    .select((select) => select.fn.coalesce('instances.provider', 'backends.provider').as('provider'))
    .where('attempts.native_id', '=', nativeId)
    .orderBy('attempts.opened_at', 'desc')
    .execute()
  const recorded = rows.map((row) => ({ key: keyOfAttempt(row.provider ?? '', row) ?? '', attempt: row }))
  return key === null ? recorded : recorded.filter((one) => one.key === key)
}

/** A finding is about the leader of a group; its other members are in its evidence. */
export const withMember = async (session: Session, nativeId: string): Promise<{ key: string; row: FindingRow }[]> => {
  const rows = await session.db
    .selectFrom('findings')
    .selectAll()
    .where('target_type', '=', 'resource')
    .where(sql<boolean>`evidence like ${`%${JSON.stringify(nativeId).replace(/[\\%_]/g, '\\$&')}%`} escape '\\'`)
    .orderBy('last_seen_at', 'desc')
    .limit(200)
    .execute()
  return rows.flatMap((row) => {
    const provider = row.target_id.slice(0, row.target_id.indexOf('/'))
    const members = (JSON.parse(row.evidence) as { members?: { nativeId: string; location: string }[] }).members ?? []
    const member = members.find((one) => one.nativeId === nativeId)
    return member ? [{ key: `${provider}/${member.location}/${nativeId}`, row }] : []
  })
}

/** Two accounts of one provider may have the same id: what is told of the one must not be taken for the other. */
export const requireOneAccount = (key: string, met: readonly { scope: string | null; id: string }[], by = 'instance or finding'): void => {
  const names = new Map<string, string>()
  for (const { scope, id } of met) if (scope !== null) names.set(scope, id)
  if (names.size < 2) return
  const all = [...names].toSorted(([a], [b]) => compare(a, b)).map(([scope, id]) => `${id} in ${scope}`)
  throw new LeaseholdError('bad_request', `"${key}" is in several accounts: name what you mean by its ${by}, ${all.join(', ')}`)
}

const seesFinding = (actor: Actor, row: FindingRow): boolean => row.project === null || seesProject(actor, row.project)

const ofResource = async (session: Session, actor: Actor, key: string): Promise<Named> => {
  const about = (await findingsAbout(session, null, key)).filter((row) => seesFinding(actor, row))
  const nativeId = key.split('/').slice(2).join('/')
  const all = (await recordedAs(session, nativeId, key)).filter((one) => seesProject(actor, one.attempt.project))
  const instances = all.toReversed().map(({ attempt }) => ({ scope: attempt.scope, id: attempt.instance_id }))
  requireOneAccount(key, [...about, ...instances])
  const open = about.findLast((row) => row.state === 'open')
  if (open) return { kind: 'finding', row: open }
  const [recorded] = all
  if (recorded) return resourceOf(recorded.attempt, key)
  const members = (await withMember(session, nativeId)).filter((one) => one.key === key && seesFinding(actor, one.row))
  requireOneAccount(
    key,
    members.map((one) => one.row),
  )
  const row = newestFinding(about) ?? members[0]?.row
  return row ? { kind: 'finding', row } : nothing
}

/** By the native id alone: only where no two resources have it. */
const ofNativeId = async (session: Session, actor: Actor, nativeId: string): Promise<Named> => {
  const recorded = (await recordedAs(session, nativeId, null)).filter((one) => seesProject(actor, one.attempt.project))
  const members = (await withMember(session, nativeId)).filter((one) => seesFinding(actor, one.row))
  const keys = new Set([...recorded, ...members].map((one) => one.key))
  if (keys.size > 1)
    throw new LeaseholdError('not_found', `"${nativeId}" alone is not enough: it names ${[...keys].toSorted().join(' and ')}`)
  const [key] = keys
  return key === undefined ? nothing : ofResource(session, actor, key)
}

const ofBackendName = async (session: Session, actor: Actor, name: string): Promise<Named> => {
  const rows = (await listBackends(session, actor.project)).filter((row) => row.name === name)
  return rows.length === 1 ? { kind: 'backend', row: rows[0] as BackendRow } : nothing
}

const ofFleetName = async (session: Session, actor: Actor, name: string): Promise<Named> => {
  const rows = (await listFleets(session, actor.project)).filter((row) => row.name === name)
  return rows.length === 1 ? { kind: 'fleet', row: rows[0] as FleetRow } : nothing
}

/** Live ones only: a slug is not reserved after an end (leases R1), and other names go before that of an ended lease. */
const ofSlug = async (session: Session, actor: Actor, slug: string, now: number): Promise<Named> => {
  const leases = await liveLeasesBySlug(session, slug, actor.project, now)
  if (leases.length > 1)
    throw new LeaseholdError(
      'not_found',
      `the slug "${slug}" is used in ${leases.map((row) => row.project).join(' and ')}: name the lease by its id`,
    )
  return leases[0] ? ofLease(session, leases[0]) : nothing
}

/** Where nothing else has the name: the newest lease that ever had it as its slug. A receipt is of all of them, and does not ask this. */
export const resolveEndedSlug = async (session: Session, actor: Actor, slug: string): Promise<Named> => {
  const ended = await newestLeaseBySlug(session, slug, actor.project)
  return ended ? ofLease(session, ended) : ofCompacted(await compactedBySlug(session, actor.project, slug))
}

export const resolveKey = async (session: Session, actor: Actor, key: string, now: number): Promise<Named> => {
  if (isLeaseId(key)) {
    const lease = await leaseById(session, key)
    return lease ? ofLease(session, lease) : ofCompacted(await compactedByLease(session, key))
  }
  const maker = byPrefix[/^([a-z]{2})_[0-9a-f]{10,}$/.exec(key)?.[1] ?? '']
  if (maker) return maker(session, key)
  if (isRef(key) && (await ledgerByRef(session, key))) return { kind: 'owner', type: 'ref', ref: key, subject: `ref ${key}` }
  if (/^[^/\s]+\/[^/\s]+\/\S+$/.test(key)) return ofResource(session, actor, key)
  const [, project, backend] = /^([^/\s]+)\/([^/\s]+)$/.exec(key) ?? []
  if (project !== undefined && backend !== undefined) {
    const row = await findBackend(session, project, backend)
    if (row) return { kind: 'backend', row }
    const fleet = await fleetById(session, key)
    return fleet ? { kind: 'fleet', row: fleet } : nothing
  }
  // The only names with a colon.
  if (/^[^:/\s]+:\S+$/.test(key)) return { kind: 'scope', scope: key }
  const slug = await ofSlug(session, actor, key, now)
  if (slug.kind !== 'nothing') return slug
  const named = await ofBackendName(session, actor, key)
  if (named.kind !== 'nothing') return named
  const fleet = await ofFleetName(session, actor, key)
  if (fleet.kind !== 'nothing') return fleet
  const row = seesProject(actor, key) ? await findProject(session, key) : undefined
  return row ? { kind: 'project', row } : ofNativeId(session, actor, key)
}
