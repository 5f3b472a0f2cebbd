/** What a removal needs to know, read for many at once. */
import type { RemovalTarget, HoldFacts } from '../model/removal.ts'
import { resourceKey } from '../model/removal.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import type { AttemptRow } from '../store/attempts.ts'
import type { Stop } from '../model/stop.ts'
import { standingHolds, listFreezes } from '../store/holds.ts'
import { readStops } from '../store/stops.ts'
import { identitiesOf, plannedOf } from './removal-row.ts'
import { instancesByIds } from '../store/instances.ts'
import { removalsByIds, type RemovalRow } from '../store/removals.ts'
import type { Session, Store } from '../store/store.ts'

export interface RemovalWork {
  removal: RemovalRow
  attempt: AttemptRow
  config: Record<string, unknown>
  /** Its row is gone: nobody can say by which configuration the account is reached (orphans R92). */
  backendMissing: boolean
  target: RemovalTarget
  holds: HoldFacts[]
  frozenScopes: (string | Stop)[]
}

export const standingHoldFacts = async (session: Session, now: number): Promise<HoldFacts[]> =>
  (await standingHolds(session, now)).map((row) => ({ id: row.id, targetType: row.target_type, targetId: row.target_id }))

/** What stands in the way of removals at `now`. */
export const readObstacles = async (session: Session, now: number): Promise<Pick<RemovalWork, 'holds' | 'frozenScopes'>> => ({
  holds: await standingHoldFacts(session, now),
  frozenScopes: [...(await readStops(session)), ...(await listFreezes(session)).map((row) => row.scope)],
})

/** A hold on any resource that goes stops all of it: its attempt's, and each that is bound. */
export const namesOf = (removal: RemovalRow, attempt: AttemptRow): string[] => {
  const bound: ResourceIdentity[] = [...identitiesOf(removal), ...plannedOf(removal)]
  return [
    resourceKey(removal.provider, attempt.location, attempt.native_id ?? `${attempt.ref}-${attempt.number}`),
    ...bound.map((member) => resourceKey(removal.provider, member.location, member.nativeId)),
  ]
}

/** Answers in the order of the ids; undefined where the removal or its attempt is not there. */
export const loadRemovals = async (store: Store, ids: readonly string[]): Promise<(RemovalWork | undefined)[]> => {
  const now = await store.now()
  return store.read(async (session) => {
    const removals = new Map((await removalsByIds(session, ids)).map((row) => [row.id as string, row]))
    if (removals.size === 0) return ids.map(() => undefined)
    const attempts = await session.db
      .selectFrom('attempts')
      .selectAll()
      .where(
        'id',
        'in',
        [...removals.values()].map((row) => row.attempt_id),
      )
      .execute()
    const byAttempt = new Map(attempts.map((row) => [row.id, row]))
    const configs = new Map(
      (await session.db.selectFrom('backends').select(['project', 'name', 'config']).execute()).map((row) => [
        `${row.project}/${row.name}`,
        row.config,
      ]),
    )
    const { holds, frozenScopes } = await readObstacles(session, now)
    const instances = await instancesByIds(
      session,
      [...removals.values()].map((row) => row.instance_id),
    )
    // A sweep's removal ends no lease, and a hold on the one that the box was for stops it all the same.
    const leaseOf = new Map(instances.map((row) => [row.id, row.lease_id]))
    return ids.map((id) => {
      const removal = removals.get(id)
      const attempt = removal && byAttempt.get(removal.attempt_id)
      if (!removal || !attempt) return undefined
      return {
        removal,
        attempt,
        backendMissing: !configs.has(`${removal.project}/${removal.backend}`),
        config: JSON.parse(configs.get(`${removal.project}/${removal.backend}`) ?? '{}') as Record<string, unknown>,
        holds,
        frozenScopes,
        target: {
          resourceKeys: namesOf(removal, attempt),
          instanceId: removal.instance_id,
          leaseId: removal.lease_id ?? leaseOf.get(removal.instance_id) ?? null,
          project: removal.project,
          scope: removal.scope,
          madeAt: attempt.opened_at,
        },
      }
    })
  })
}
