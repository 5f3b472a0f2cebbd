/**
 * What makes a box itself and no other. Its **network** is made first, and the Engine gives that an id which is never used again: it is the box's immutable
 * id, and volume and container carry it from their making on, so that whatever is left of a box says which one it was. Network and volume have the
 * attempt's token in a name that can't be changed; the container was made with both of them. These are the second fact, beside the labels.
 *
 * A volume has no id, and the time that an Engine says it was made at moves with what is written into it (seen on 20.10): it is known by its name, which
 * holds the token, and its labels.
 */
import type { ScopeId } from '../../model/ids.ts'
import type { CreateRequest, ResourceIdentity } from '../contract.ts'
import type { Labels } from './api.ts'
import { engineLocation, note, ownerKind, tag } from './words.ts'

/** `leasehold-<ref>-<attempt number>`: the container's name, and the box's. */
export const nativeIdOf = (ref: string, attemptNumber: number | string): string => `leasehold-${ref}-${attemptNumber}`

/** Of network and volume. */
export const partName = (request: Pick<CreateRequest, 'ref' | 'attemptNumber' | 'attemptToken'>): string =>
  `${nativeIdOf(request.ref, request.attemptNumber)}-${request.attemptToken}`

export interface PartName {
  nativeId: string
  ref: string
  token: string
}

const partPattern = /^(leasehold-([a-z][a-z0-9]{11})-\d{1,9})-([A-Za-z0-9_.-]{16,64})$/

/** Null for a name that no attempt gave. */
export const parsePartName = (name: string): PartName | null => {
  const [, nativeId, ref, token] = partPattern.exec(name) ?? []
  return nativeId && ref && token ? { nativeId, ref, token } : null
}

/** Null for text that this provider never wrote. */
export const refOfNativeId = (nativeId: string): string | null => /^leasehold-([a-z][a-z0-9]{11})-\d{1,9}$/.exec(nativeId)?.[1] ?? null

/** An id as the Engine gives them to networks and containers. */
export const isEngineId = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

export interface BoxFacts {
  token: string
  volume: string
  /** Null: it was never seen, or is gone. */
  container: string | null
  folder: string | null
  user: string | null
}

export const identityOf = (scope: ScopeId, nativeId: string, network: string, facts: BoxFacts): ResourceIdentity => ({
  scope,
  location: engineLocation,
  kind: ownerKind,
  nativeId,
  immutableId: network,
  facts: {
    attemptToken: facts.token,
    volume: facts.volume,
    ...(facts.container === null ? {} : { container: facts.container }),
    ...(facts.folder === null ? {} : { folder: facts.folder }),
    ...(facts.user === null ? {} : { user: facts.user }),
  },
})

/** On everything that one create makes. What is known of the network goes on what is made after it. */
export const labelsOf = (
  request: CreateRequest,
  made: { network: string | null; folder: string; user: string },
): Record<string, string> => ({
  ...request.labels,
  [tag.ref]: request.ref,
  [tag.installation]: request.installation,
  [tag.attempt]: request.attemptToken,
  ...(request.mac === null ? {} : { [tag.mac]: request.mac }),
  [note.name]: request.name,
  [note.folder]: made.folder,
  [note.user]: made.user,
  ...(made.network === null ? {} : { [note.network]: made.network }),
})

/** Do the labels say what the name says? */
export const agree = (name: PartName, labels: Labels | null): boolean =>
  labels?.[tag.ref] === name.ref && labels[tag.attempt] === name.token
