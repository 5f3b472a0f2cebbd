/**
 * May a resource of this name still come? A hold on something that nobody has seen yet is good for what will be made or listed; one on a misspelt provider or
 * location would hold nothing for ever, and look as if it held.
 */
import { LeaseholdError } from '../../model/errors.ts'
import { usedLocations } from '../../store/attempts.ts'
import { listBackends } from '../../store/backends.ts'
import { findingsAbout } from '../../store/findings.ts'
import type { Session } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'

export interface ResourceName {
  provider: string
  location: string
  nativeId: string
}

/** @throws LeaseholdError bad_request: it is no `provider/location/native-id` */
export const parseResourceName = (text: string): ResourceName => {
  const [, provider, location, nativeId] = /^([^/\s]+)\/([^/\s]+)\/(\S+)$/.exec(text) ?? []
  if (provider === undefined || location === undefined || nativeId === undefined)
    throw new LeaseholdError('bad_request', `targetID: "${text}" names no resource; write provider/location/native-id`)
  return { provider, location, nativeId }
}

const listed = (names: Iterable<string>): string => [...new Set(names)].toSorted().join(', ')

/**
 * The location is one that a backend is configured for, or one that was ever used (orphans U8).
 * @throws LeaseholdError bad_request with what there is
 */
export const requirePlace = async (context: EngineContext, { provider: name, location }: ResourceName): Promise<void> => {
  const all = await context.store.read((session) => listBackends(session, null))
  const backends = all.filter((row) => row.provider === name)
  const provider = context.providers.get(name)
  if (provider === undefined && backends.length === 0)
    throw new LeaseholdError(
      'bad_request',
      `targetID: no provider "${name}" is known here; there is ${listed([...context.providers.keys(), ...all.map((row) => row.provider)])}`,
    )
  const configured = backends.flatMap((row) => provider?.locationsOf?.(JSON.parse(row.config) as Record<string, unknown>) ?? [])
  const known = new Set([...(provider?.locations ?? []), ...configured])
  for (const row of backends) {
    if (known.has(location)) return
    for (const used of await usedLocations(context.store, row.project, row.name)) known.add(used)
  }
  if (!known.has(location))
    throw new LeaseholdError('bad_request', `targetID: provider "${name}" has no location "${location}" here; there is ${listed(known)}`)
}

/** Did anybody here ever meet it: an attempt that recorded it, a finding about it? */
export const wasSeen = async (session: Session, target: string, { location, nativeId }: ResourceName): Promise<boolean> => {
  const recorded = await session.db
    .selectFrom('attempts')
    .select('id')
    .where('native_id', '=', nativeId)
    .where('location', '=', location)
    .limit(1)
    .executeTakeFirst()
  return recorded !== undefined || (await findingsAbout(session, 'resource', target)).length > 0
}
