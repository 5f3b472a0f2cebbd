/**
 * Whose is a resource that somebody of one project wants to hold? Its attempt says so of an owner resource; of a companion (a disk, a nic) the findings and
 * removals that met it do, and where nobody has met it yet, a fresh look at what it is tagged with.
 */
import { isRef } from '../../model/ids.ts'
import { rowsIn } from '../../store/bulk.ts'
import type { Session } from '../../store/store.ts'
import type { Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { lookFor } from '../explain/look.ts'
import { withMember } from '../explain/resolve.ts'
import { boundAs } from '../receipt/asked.ts'
import type { ResourceName } from './hold-places.ts'

/** By the ledger: a backend's findings are of what it lists, and that may be another project's. */
const ownersOfRefs = async (session: Session, refs: readonly string[]): Promise<string[]> =>
  (await rowsIn(session, 'ledger', 'ref', refs.filter(isRef))).map((row) => row.project)

/** @returns every project that our rows name, none twice */
const recordedOwners = async (session: Session, target: string, { provider, location, nativeId }: ResourceName): Promise<Set<string>> => {
  const attempts = await session.db
    .selectFrom('attempts')
    .innerJoin('instances', 'instances.id', 'attempts.instance_id')
    .select('attempts.project')
    .distinct()
    .where('attempts.native_id', '=', nativeId)
    .where('attempts.location', '=', location)
    .where('instances.provider', '=', provider)
    .execute()
  const met = (await withMember(session, nativeId)).flatMap((one) => (one.key === target && one.row.ref !== null ? [one.row.ref] : []))
  const bound = await boundAs(session, target)
  return new Set([...attempts.map((row) => row.project), ...(await ownersOfRefs(session, met)), ...bound.map((row) => row.project)])
}

/** What was fixed at its creation names the attempt that made it, whatever its tags say: a machine's own disk may carry none (leases R85). */
const ownersOfToken = async (session: Session, token: string): Promise<string[]> =>
  (await rowsIn(session, 'attempts', 'token', [token])).map((row) => row.project)

/** Whoever holds something is in a hurry: what the provider does not say by then is not waited for. */
const lookMs = 15_000

export interface Whose {
  /** Every project that has it, as far as anybody knows. */
  owners: string[]
  /** The provider shows it, whosever it is. */
  there: boolean
}

/** Before anything is locked: it may scan, and asks the provider where no row of ours knows it. */
export const ownersOf = async (context: EngineContext, actor: Actor, target: string, name: ResourceName): Promise<Whose> => {
  const recorded = await context.store.read((session) => recordedOwners(session, target, name))
  if (recorded.size > 0) return { owners: [...recorded], there: false }
  const look = await lookFor(context, actor, target, AbortSignal.timeout(lookMs))
  if (look.kind === 'unknown') return { owners: [], there: false }
  const { ref } = look
  const token = look.kind === 'judged' ? (look.token ?? null) : null
  const owners = await context.store.read(async (session) => {
    if (ref !== null) return ownersOfRefs(session, [ref])
    return token === null ? [] : ownersOfToken(session, token)
  })
  return { owners, there: true }
}
