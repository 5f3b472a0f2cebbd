/** A removal takes one group back, member by member in the order bound: the progress is the list of immutable ids that are proved gone. */
import type { ResourceIdentity } from '../providers/contract.ts'
import { unlocked, stillHeld } from '../store/due.ts'
import type { RemovalRow } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import { recordProofs } from './remove-apply.ts'
import type { Gone } from './remove-gone.ts'

const bound = (removal: RemovalRow): ResourceIdentity[] =>
  removal.identity === null ? [] : (JSON.parse(removal.identity) as ResourceIdentity[])
const done = (removal: RemovalRow): string[] => JSON.parse(removal.progress) as string[]

/** The member whose turn it is; undefined while nothing is bound, or when all are gone. */
export const currentMember = (removal: RemovalRow): ResourceIdentity | undefined => {
  const gone = new Set(done(removal))
  return bound(removal).find((member) => !gone.has(member.immutableId))
}

/** Is this the last one? A removal that binds only now has one member: the owner that the attempt recorded. */
export const isLastMember = (removal: RemovalRow, member: ResourceIdentity): boolean => {
  const gone = new Set([...done(removal), member.immutableId])
  return bound(removal).every((one) => gone.has(one.immutableId))
}

/** One member is proved gone: written before the next is touched, and only ever appended to. */
export const applyProgress = async (tx: Tx, { held, work, identity, proof }: Omit<Gone, 'contradictions'>): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  const progress = [...done(work.removal), identity.immutableId]
  await tx.db
    .updateTable('removals')
    .set({
      ...unlocked(tx.now),
      state: 'removing',
      progress: JSON.stringify(progress),
      accepted_at: null,
      polls: 0,
      failures: 0,
      error: null,
      failed_at: null,
      retry_at: null,
    })
    .where('id', '=', work.removal.id)
    .execute()
  await recordProofs(tx, [{ work, identity, proof }])
}
