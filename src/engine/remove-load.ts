/** What a removal needs to know, read for many at once. */
import type { RemovalTarget } from '../model/removal.ts'
import { resourceKey } from '../model/removal.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import type { AttemptRow } from '../store/attempts.ts'
import { rowsIn } from '../store/bulk.ts'
import { identitiesOf, plannedOf } from './removal-row.ts'
import { instancesByIds } from '../store/instances.ts'
import { readObstacles, type Obstacles } from '../store/obstacles.ts'
import { removalsByIds, type RemovalRow } from '../store/removals.ts'
import type { Store } from '../store/store.ts'

export interface RemovalWork extends Obstacles {
  removal: RemovalRow
  attempt: AttemptRow
  config: Record<string, unknown>
  /** Its row is gone: nobody can say by which configuration the account is reached (orphans R92). */
  backendMissing: boolean
  target: RemovalTarget
}

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
    const rows = [...removals.values()]
    const attempts = await rowsIn(
      session,
      'attempts',
      'id',
      rows.map((row) => row.attempt_id),
    )
    const byAttempt = new Map(attempts.map((row) => [row.id, row]))
    const configs = new Map(
      (await session.db.selectFrom('backends').select(['project', 'name', 'config']).execute()).map((row) => [
        `${row.project}/${row.name}`,
        row.config,
      ]),
    )
    const { holds, frozenScopes } = await readObstacles(session, now)
    // A sweep's removal ends no lease, and a hold on the one that the box was for stops it all the same.
    const instances = await instancesByIds(
      session,
      rows.filter((row) => row.lease_id === null).map((row) => row.instance_id),
    )
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
