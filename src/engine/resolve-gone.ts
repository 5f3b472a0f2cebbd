/** What stood open about what is gone is over: what contradicted it, what called it an orphan, what waited for a person. */
import { resourceKey } from '../model/removal.ts'
import type { ResourceIdentity } from '../providers/contract.ts'
import { openAmong, type About } from '../store/findings.ts'
import type { Tx } from '../store/store.ts'
import { resolveAbout } from './record.ts'
import { identitiesOf } from './removal-row.ts'
import type { RemovalWork } from './remove-load.ts'
import { resolveWaiting } from './resolve-waiting.ts'

const about =
  (code: About['code'], targetType: string) =>
  (targetId: string): About => ({ code, targetType, targetId })

interface Gone {
  work: RemovalWork
  identity: ResourceIdentity
  contradictions: readonly unknown[]
}

/** Most often nothing stands, which one look shows. */
export const resolveGone = async (tx: Tx, gone: readonly Gone[]): Promise<void> => {
  const keysOf = ({ work, identity }: Gone): string[] =>
    [identity, ...identitiesOf(work.removal)].map((one) => resourceKey(work.removal.provider, one.location, one.nativeId))
  const keys = [...new Set(gone.flatMap(keysOf))]
  const leaseIds = gone.flatMap(({ work }) => (work.removal.lease_id ? [work.removal.lease_id] : []))
  const instanceIds = [...new Set<string>(gone.map(({ work }) => work.removal.instance_id))]
  const open = await openAmong(tx, [
    ...keys.map(about('contradiction', 'resource')),
    ...keys.map(about('orphan', 'resource')),
    ...leaseIds.map(about('retained-overdue', 'lease')),
    ...instanceIds.map(about('unexplained-absence', 'instance')),
    ...instanceIds.map(about('removal-needs-person', 'instance')),
  ])
  const standing = new Set(open.map((one) => one.targetId))
  const stands = (id: string | null): boolean => id !== null && standing.has(id)
  // Of this account only: another one may have the same ids.
  for (const some of Map.groupBy(gone, ({ work }) => `${work.removal.scope} ${work.removal.project}`).values()) {
    const { project, scope } = (some[0] as Gone).work.removal
    const clear = some.filter((one) => one.contradictions.length === 0)
    await resolveAbout(tx, 'resource', clear.flatMap(keysOf).filter(stands), 'contradiction', { project, scope })
    await resolveAbout(tx, 'resource', some.flatMap(keysOf).filter(stands), 'orphan', { project, scope })
  }
  await resolveAbout(tx, 'lease', leaseIds.filter(stands), 'retained-overdue')
  await resolveWaiting(
    tx,
    gone.flatMap(({ work }) => (stands(work.removal.instance_id) ? [work.removal] : [])),
  )
}
