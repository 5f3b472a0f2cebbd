/** A fleet's box is given back to its queue, as far as it is still what it was. */
import { unlocked } from '../../store/due.ts'
import type { EngineContext } from '../context.ts'
import type { Held } from '../pipeline.ts'
import { reload, type ProvisionWork } from '../provision-load.ts'

interface Change {
  dead_at?: number
  checked_at?: number
}

/** Only while it is what it was: a lease that took it meanwhile has moved the fence on. */
export const settle = (context: EngineContext, held: Held, work: ProvisionWork, change: Change & { dueIn: number | null }): Promise<void> =>
  context.store.write(async (tx) => {
    const fresh = await reload(tx, held, work)
    if (!fresh) return
    const { dueIn, ...values } = change
    // Given up while it was looked at: its removal has it, and nothing brings it back to this queue (I9).
    const over = fresh.instance.state === 'terminating' || fresh.instance.state === 'terminated'
    await tx.db
      .updateTable('instances')
      .set(over ? unlocked(null) : { ...values, ...unlocked(dueIn === null ? null : tx.now + dueIn) })
      .where('id', '=', fresh.instance.id)
      .execute()
  })
