/** What this installation knows of itself when it judges what a listing shows, and what tells it that its ledger is older than the world (decisions 6). */
import type { SeenResource } from './evidence.ts'
import type { Group } from './group.ts'
import type { MacVerdict } from './mac.ts'
import type { VerdictReason } from './verdict-reasons.ts'

export interface Own {
  /** Ids that this database had before it was forked: what bears them is another's. */
  former: readonly string[]
  /** ms: what was issued before belongs to a former one; 0: it was never forked. */
  heldSince: number
  /** The newest that this database has given. */
  epoch: number
  /** ms, the last adoption; null: there was none. */
  adoptedAt: number | null
  /** Since when what is made here carries a keyed tag, in ms; null: the provider has no room for it. */
  macSince: number | null
  judgeMac(tags: SeenResource['tags'], scope: string): MacVerdict
}

/** Must it carry a keyed tag, if it was made here? Where its age is not known, nothing is expected of it. */
export const macExpected = (own: Own, seen: SeenResource): boolean =>
  own.macSince !== null && seen.createdAt !== null && seen.createdAt > own.macSince

/** A sign that things were made which this ledger has forgotten. */
export interface Rewind {
  ref: string
  reason: VerdictReason
  /** From a valid keyed tag; null: none could be proved. */
  epoch: number | null
  createdAt: number | null
}

/**
 * Does this group say that the ledger is older than the world? Null also for what an adoption has acknowledged: what was made before it is reported and left
 * alone, and only what appears after it says that somebody else still works under this name.
 */
export const rewindOf = (reason: VerdictReason, group: Group, own: Own): Rewind | null => {
  if (reason !== 'contradiction.unknown-ref-of-ours' && reason !== 'contradiction.newer-epoch') return null
  const epochs = group.members.flatMap((member) => {
    const mac = own.judgeMac(member.tags, member.resource.scope)
    return mac.kind === 'valid' ? [mac.epoch] : []
  })
  const made = group.members.flatMap((member) => (member.createdAt === null ? [] : [member.createdAt]))
  const epoch = epochs.length === 0 ? null : Math.max(...epochs)
  const createdAt = made.length === 0 ? null : Math.max(...made)
  const rewind = { ref: group.ref ?? '', reason, epoch, createdAt }
  if (own.adoptedAt === null || (epoch !== null && epoch > own.epoch)) return rewind
  return createdAt !== null && createdAt > own.adoptedAt ? rewind : null
}
