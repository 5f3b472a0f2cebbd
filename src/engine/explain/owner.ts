/** Everything that our own rows say of one ref: its ledger row, instance, attempts, lease, removals, open findings, and who holds it. */
import type { LeaseId } from '../../model/ids.ts'
import { resourceKey } from '../../model/removal.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import { recordsOfRemovals, type AuditRecord } from '../../store/audit.ts'
import { rowsIn } from '../../store/bulk.ts'
import { compactedByRef, type CompactedRow } from '../../store/compacted.ts'
import type { FindingRow } from '../../store/findings.ts'
import type { EventRow } from '../../store/events.ts'
import { everyScope, listFreezes, standingHolds, type FreezeRow, type HoldRow } from '../../store/holds.ts'
import { findInstance, type InstanceRow } from '../../store/instances.ts'
import { leftByFork, readInstallation } from '../../store/installation.ts'
import { leaseById, type LeaseRow } from '../../store/leases.ts'
import { ledgerByRef, type LedgerRow } from '../../store/ledger.ts'
import type { RemovalRow } from '../../store/removals.ts'
import type { Session } from '../../store/store.ts'

export interface Owner {
  ref: string
  /** When these rows were read. */
  readAt: number
  project: string
  ledger: LedgerRow
  /** Null: its row is gone. */
  instance: InstanceRow | null
  lease: LeaseRow | null
  /** What is left of instance and lease after their time. */
  compacted: CompactedRow | null
  /** Oldest first. */
  attempts: AttemptRow[]
  removals: RemovalRow[]
  audit: AuditRecord[]
  /** What happened to its attempts, as long as events are kept. */
  events: Pick<EventRow, 'at' | 'code' | 'message'>[]
  /** Open ones. */
  findings: FindingRow[]
  /** Standing ones, on it or on anything that it belongs to. */
  holds: HoldRow[]
  freezes: FreezeRow[]
  /** The installation that a fork of this database left it to; null: it is held here. */
  leftTo: string | null
}

/** `provider/location/native-id` of what an attempt recorded; null while it recorded nothing. */
export const keyOfAttempt = (provider: string, attempt: AttemptRow): string | null =>
  attempt.native_id === null ? null : resourceKey(provider, attempt.location, attempt.native_id)

const leaseOf = async (session: Session, ledger: LedgerRow, instance: InstanceRow | null): Promise<LeaseRow | null> => {
  // A fleet's box is nobody's in between, whoever had it first.
  if (instance !== null && instance.fleet !== null && instance.lease_id === null) return null
  const id = instance?.lease_id ?? (JSON.parse(ledger.parents) as { lease?: LeaseId }).lease ?? null
  return id === null ? null : ((await leaseById(session, id)) ?? null)
}

const openFindings = async (session: Session, ref: string, ids: readonly string[]): Promise<FindingRow[]> => {
  const rows = [...(await rowsIn(session, 'findings', 'ref', [ref])), ...(await rowsIn(session, 'findings', 'target_id', ids))]
  return [...new Map(rows.filter((row) => row.state === 'open').map((row) => [row.id, row])).values()]
}

const matching = (
  holds: readonly HoldRow[],
  owner: Pick<Owner, 'project' | 'lease' | 'instance' | 'ledger'>,
  keys: readonly string[],
  scopes: readonly string[],
): HoldRow[] => {
  const mine: Record<HoldRow['target_type'], readonly string[]> = {
    resource: keys,
    instance: [owner.instance?.id ?? owner.ledger.owner_id],
    lease: owner.lease ? [owner.lease.id] : [],
    project: [owner.project],
    scope: scopes,
  }
  return holds.filter((hold) => mine[hold.target_type].includes(hold.target_id))
}

const attemptEvents = (session: Session, ownerId: string) =>
  session.db
    .selectFrom('event_targets')
    .innerJoin('events', 'events.id', 'event_targets.event_id')
    .select(['events.at', 'events.code', 'events.message'])
    .where('event_targets.type', '=', 'instance')
    .where('event_targets.id', '=', ownerId)
    .where('events.code', 'like', 'attempt.%')
    .orderBy('events.at')
    .limit(20)
    .execute()

/** Undefined: nobody here issued the ref. */
export const loadOwner = async (session: Session, ref: string, now: number): Promise<Owner | undefined> => {
  const ledger = await ledgerByRef(session, ref)
  if (!ledger) return undefined
  const instance = (await findInstance(session, ref)) ?? null
  const lease = await leaseOf(session, ledger, instance)
  const attempts = (await rowsIn(session, 'attempts', 'ref', [ref])).toSorted((a, b) => a.number - b.number)
  const removals = (
    await rowsIn(
      session,
      'removals',
      'attempt_id',
      attempts.map((row) => row.id),
    )
  ).toSorted((a, b) => a.opened_at - b.opened_at)
  const audit = await recordsOfRemovals(
    session,
    removals.map((row) => row.id),
  )
  const compacted = instance === null ? ((await compactedByRef(session, ref)) ?? null) : null
  const provider = instance?.provider ?? lease?.provider ?? compacted?.provider ?? ''
  const keys = attempts.flatMap((row) => keyOfAttempt(provider, row) ?? [])
  const scopes = [...new Set(attempts.map((row): string => row.scope))]
  const owner = { ref, readAt: now, project: ledger.project, ledger, instance, lease }
  return {
    ...owner,
    compacted,
    attempts,
    removals,
    audit,
    events: await attemptEvents(session, ledger.owner_id),
    findings: await openFindings(session, ref, [ledger.owner_id, ...(lease ? [lease.id] : []), ...keys]),
    holds: matching(await standingHolds(session, now), owner, keys, scopes),
    freezes: (await listFreezes(session)).filter((row) => row.scope === everyScope || scopes.includes(row.scope)),
    leftTo: leftByFork(await readInstallation(session), ledger.issued_at),
  }
}
