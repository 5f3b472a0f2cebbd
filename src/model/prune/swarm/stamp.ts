/**
 * What every object of a release carries from its creation on (prune 7.1): only what never changes, because a network and a volume can never be
 * given other labels. Who owns the release today stands in its record.
 */
import { sha256 } from '../../../lib/sha256.ts'
import type { SwarmKind } from '../names.ts'
import type { Labels } from './types.ts'

export const namespaceLabel = 'com.docker.stack.namespace'
export const imageLabel = 'com.docker.stack.image'
export const uidLabel = 'leasehold.uid'
export const claimLabel = 'leasehold.claim'
/** On configs and secrets only, which can be adopted: this controller made it (prune R64). */
export const createdLabel = 'leasehold.created'

/** A person may write neither: they are how we and Docker tell whose a thing is. */
export const reservedPrefixes = ['leasehold.', 'leasehold_', 'com.docker.stack.'] as const
export const isReserved = (label: string): boolean => reservedPrefixes.some((one) => label.toLowerCase().startsWith(one))

export interface Stamp {
  /** Of the release: random, and its for ever. */
  uid: string
}

/** Names one object of one release for ever: the same in every revision, so that a stamp alone never restarts a task. */
export const claimId = (uid: string, kind: SwarmKind, name: string): string => sha256(JSON.stringify([uid, kind, name])).slice(0, 24)

/** Null stamps nothing but the release's name, as `docker stack deploy` does. */
export const stamped = (labels: Labels | undefined, release: string, stamp: Stamp | null, kind: SwarmKind, name: string): Labels => ({
  ...labels,
  [namespaceLabel]: release,
  ...(stamp && { [uidLabel]: stamp.uid, [claimLabel]: claimId(stamp.uid, kind, name) }),
  ...(stamp && (kind === 'config' || kind === 'secret') ? { [createdLabel]: 'true' } : {}),
})
