/**
 * What an owner brought along and nobody tagged, such as its system disk: taken in without tags, because it was made with the owner and hangs on it, and on
 * nothing else. Somebody else's tag refuses it (leases R85; I6).
 */
import type { Topology } from './topology.ts'

export interface MaybeInternal {
  resource: { kind: string; nativeId: string }
  tags: { ref: string | null; installation: string | null; attempt: string | null; mac: string | null }
  labels?: Readonly<Record<string, string>> | null
  fixedAttemptToken: string | null
  existence: 'exists' | 'going' | 'gone'
  attachedTo?: readonly string[]
}

/** Read, and empty: what can't be read is not untagged (case I2). */
export const isUntagged = ({ tags, labels }: Pick<MaybeInternal, 'tags' | 'labels'>): boolean =>
  Object.values(tags).every((value) => value === null) && labels !== undefined && labels !== null && Object.keys(labels).length === 0

/** Has the group room for it at all? */
export const maybeInternal = (topology: Topology | undefined, one: MaybeInternal): boolean =>
  topology?.internal?.includes(one.resource.kind) === true && isUntagged(one)

/**
 * @param owners what of the group is of the owner's kind and proved ours
 * @returns why it is not taken in; null: it is the owner's own
 */
export const whyNotInternal = (one: MaybeInternal, owners: readonly MaybeInternal[], attemptToken: string): string | null => {
  const [owner] = owners
  if (owner?.existence !== 'exists') return 'it carries no tags, and no living machine of its group says whose it is'
  const on = one.attachedTo ?? []
  if (on.length !== 1 || on[0] !== owner.resource.nativeId)
    return `it carries no tags, and it is not attached to ${owner.resource.kind} ${owner.resource.nativeId} alone`
  return one.fixedAttemptToken === attemptToken
    ? null
    : 'it carries no tags, and nothing fixed at its creation says that its attempt made it'
}
