/** Which removals a key asks for: those of a lease, an instance, a ref, an attempt or a resource, or one by its own id. */
import { sql } from 'kysely'
import { membersIn } from '../../model/removal-record.ts'
import { resourceKey } from '../../model/removal.ts'
import { rowsIn } from '../../store/bulk.ts'
import { ledgerByRef, type LedgerRow } from '../../store/ledger.ts'
import type { RemovalRow } from '../../store/removals.ts'
import type { Session } from '../../store/store.ts'
import type { ResourceIdentity } from '../../providers/contract.ts'
import { seesProject, type Actor } from '../actor.ts'
import { requireOneAccount, resolveKey, type Named } from '../explain/resolve.ts'

export interface Asked {
  subject: string
  project: string | null
  /** Every removal of the refs, the ones asked for and their siblings. */
  all: RemovalRow[]
  /** Newest first. */
  asked: RemovalRow[]
}

interface Resource {
  location: string
  nativeId: string
}

const mostNames = 50
const mostScanned = 50

export const membersOf = (removal: RemovalRow): ResourceIdentity[] => membersIn<ResourceIdentity>(removal.identity) ?? []

const newestFirst = (rows: readonly RemovalRow[]): RemovalRow[] =>
  rows.toSorted((a, b) => b.opened_at - a.opened_at || (a.id < b.id ? 1 : -1))

/** By the owner, whose index there is; the ledger knows it also when its row is gone. */
const removalsOfOwners = async (session: Session, ledgers: readonly LedgerRow[]): Promise<RemovalRow[]> => {
  const refs = new Set(ledgers.map((row) => row.ref))
  const ids = ledgers.map((row) => row.owner_id)
  return (await rowsIn(session, 'removals', 'instance_id', ids)).filter((row) => refs.has(row.ref))
}

const isOf = (removal: RemovalRow, resource: Resource, attempts: ReadonlySet<string>): boolean =>
  attempts.has(removal.attempt_id) ||
  membersOf(removal).some((one) => one.location === resource.location && one.nativeId === resource.nativeId)

const resourceOf = (key: string): Resource => {
  const [, location = '', ...rest] = key.split('/')
  return { location, nativeId: rest.join('/') }
}

/** Removals that bound it although no attempt recorded it and no finding is kept any more: a scan, so only where nothing else knows the key. */
export const boundAs = async (session: Session, key: string): Promise<RemovalRow[]> => {
  const provider = key.slice(0, key.indexOf('/'))
  const { location, nativeId } = resourceOf(key)
  const rows = await session.db
    .selectFrom('removals')
    .selectAll()
    .where('provider', '=', provider)
    .where(sql<boolean>`identity like ${`%${JSON.stringify(nativeId).replace(/[\\%_]/g, '\\$&')}%`} escape '\\'`)
    .orderBy('opened_at', 'desc')
    .limit(mostScanned)
    .execute()
  return rows.filter((row) => isOf(row, { location, nativeId }, new Set()))
}

const ofRef = async (session: Session, ref: string, subject: string, keep: (row: RemovalRow) => boolean): Promise<Asked | undefined> => {
  const ledger = await ledgerByRef(session, ref)
  if (!ledger) return undefined
  const all = await removalsOfOwners(session, [ledger])
  return { subject, project: ledger.project, all, asked: newestFirst(all.filter(keep)) }
}

/** Attempts of this ref that recorded exactly this resource. */
const recordedBy = async (session: Session, ref: string, { location, nativeId }: Resource): Promise<Set<string>> => {
  const rows = await session.db
    .selectFrom('attempts')
    .select('id')
    .where('ref', '=', ref as never)
    .where('location', '=', location)
    .where('native_id', '=', nativeId)
    .execute()
  return new Set(rows.map((row) => row.id))
}

const ofResource = async (session: Session, ref: string, key: string): Promise<Asked | undefined> => {
  const resource = resourceOf(key)
  const attempts = await recordedBy(session, ref, resource)
  return ofRef(session, ref, `resource ${key}`, (row) => isOf(row, resource, attempts))
}

const ofNamed = (session: Session, named: Named): Promise<Asked | undefined> | undefined => {
  if (named.kind === 'owner') {
    if (named.type === 'resource') return ofResource(session, named.ref, named.subject.replace(/^resource /, ''))
    return ofRef(
      session,
      named.ref,
      named.subject,
      (row) =>
        (named.removalId === undefined || row.id === named.removalId) &&
        (named.attemptId === undefined || row.attempt_id === named.attemptId),
    )
  }
  if (named.kind === 'finding' && named.row.ref !== null && named.row.target_type === 'resource')
    return ofResource(session, named.row.ref, named.row.target_id)
  return undefined
}

/** A slug or an instance's name, also of what has ended long since: all that ever had it. */
const ofName = async (session: Session, actor: Actor, name: string): Promise<Asked | undefined> => {
  const rows = await session.db
    .selectFrom('ledger')
    .selectAll()
    .where('owner_name', '=', name)
    .orderBy('issued_at', 'desc')
    .limit(mostNames)
    .execute()
  const mine = rows.filter((row) => seesProject(actor, row.project))
  const [first] = mine
  if (!first) return undefined
  const all = await removalsOfOwners(session, mine)
  return { subject: `everything named ${name}`, project: first.project, all, asked: newestFirst(all) }
}

/**
 * @param key a removal, a lease by id or slug, an instance, an attempt, a ref, a finding, `provider/location/native-id`
 * @throws LeaseholdError bad_request for a resource that is in several accounts, with what to name instead
 * @returns undefined: it names none of these; whether the asker may see it is the caller's question
 */
export const removalsAskedFor = async (session: Session, actor: Actor, key: string, now: number): Promise<Asked | undefined> => {
  const named = await ofNamed(session, await resolveKey(session, actor, key, now))
  if (named) return named
  const byName = await ofName(session, actor, key)
  if (byName) return byName
  if (!/^[^/\s]+\/[^/\s]+\/\S+$/.test(key)) return undefined
  const bound = (await boundAs(session, key)).filter((row) => seesProject(actor, row.project))
  requireOneAccount(key, bound, 'removal')
  const [first] = bound
  const mine = bound.filter((row) => row.project === first?.project)
  return first && { subject: `resource ${key}`, project: first.project, all: mine, asked: newestFirst(mine) }
}

/** `provider/location/native-id`, for the sentences of a receipt. */
export const keyOf = (removal: RemovalRow, one: { location: string; nativeID: string }): string =>
  resourceKey(removal.provider, one.location, one.nativeID)
