/** Holds by what they are on: a scope may have hundreds, and a sweep asks them of every group that it judges (case M8). */
import type { HoldFacts } from './removal.ts'

export interface HoldTargets {
  resourceKeys: Iterable<string>
  instanceId: string | null | undefined
  leaseId: string | null | undefined
  project: string | null | undefined
  scope: string | null | undefined
}

type Index = ReadonlyMap<string, number>
/** Made once for each list, however often it is asked. */
const indexes = new WeakMap<readonly HoldFacts[], Index>()

const keyOf = (type: HoldFacts['targetType'], id: string): string => `${type} ${id}`

const indexOf = (holds: readonly HoldFacts[]): Index => {
  const known = indexes.get(holds)
  if (known) return known
  const index = new Map<string, number>()
  for (const [i, { targetType, targetId }] of holds.entries()) {
    const key = keyOf(targetType, targetId)
    if (!index.has(key)) index.set(key, i)
  }
  indexes.set(holds, index)
  return index
}

/** The first of the list that is on any of these; the list must not change once it was asked. */
export const holdAmong = (holds: readonly HoldFacts[], on: HoldTargets): HoldFacts | undefined => {
  if (holds.length === 0) return undefined
  const index = indexOf(holds)
  let first: number | undefined
  const look = (type: HoldFacts['targetType'], id: string | null | undefined): void => {
    const at = id == null ? undefined : index.get(keyOf(type, id))
    if (at !== undefined && (first === undefined || at < first)) first = at
  }
  for (const key of on.resourceKeys) look('resource', key)
  look('instance', on.instanceId)
  look('lease', on.leaseId)
  look('project', on.project)
  look('scope', on.scope)
  return first === undefined ? undefined : holds[first]
}
