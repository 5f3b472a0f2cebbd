/** A person said that something is gone, and a read shows it: that word counts no more, and the removal says so (leases R91). */
import { isLapsed, missingText, type Acknowledged } from '../model/stopped.ts'
import { stillHeld, unlocked } from '../store/due.ts'
import { appendEvents } from '../store/events.ts'
import { removalsByIds } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import { event } from './record.ts'
import { targetsOf } from './remove-apply.ts'
import type { RemovalWork } from './remove-load.ts'
import { acknowledgedOf } from './removal-row.ts'

type Read = readonly { kind: string; immutableId: string }[]

const wordsOf = (lapsed: readonly Acknowledged[]): { missing: string; by: string } => ({
  missing: lapsed.map(missingText).join(', '),
  by: [...new Set(lapsed.map((one) => one.by))].join(', '),
})

export const lapsedText = (lapsed: readonly Acknowledged[]): string => {
  const { missing, by } = wordsOf(lapsed)
  return `${missing} ${lapsed.length === 1 ? 'is' : 'are'} there, and ${by} had said that ${lapsed.length === 1 ? 'it is' : 'they are'} gone: that counts no more`
}

/** The caller has compared the fence. @returns what was taken out */
export const lapse = async (tx: Tx, work: RemovalWork, there: Read): Promise<Acknowledged[]> => {
  const [stored] = await removalsByIds(tx, [work.removal.id])
  const all = stored ? acknowledgedOf(stored) : []
  const lapsed = all.filter((one) => isLapsed(one, there))
  if (lapsed.length === 0) return []
  await tx.db
    .updateTable('removals')
    .set({ acknowledged: JSON.stringify(all.filter((one) => !lapsed.includes(one))) })
    .where('id', '=', work.removal.id)
    .execute()
  const about = { project: work.removal.project, targets: targetsOf(work) }
  await appendEvents(tx, [event(tx, 'removal.acknowledgement-lapsed', wordsOf(lapsed), about)])
  return lapsed
}

/** And the removal is looked at again at once, by what is there. */
export const applyLapsed = async (tx: Tx, held: Held, work: RemovalWork, there: Read): Promise<void> => {
  if ((await stillHeld(tx, 'removals', [held])).size === 0) return
  const lapsed = await lapse(tx, work, there)
  await tx.db
    .updateTable('removals')
    .set({ ...unlocked(tx.now), error: lapsed.length === 0 ? work.removal.error : lapsedText(lapsed), held_by: null })
    .where('id', '=', work.removal.id)
    .execute()
}
