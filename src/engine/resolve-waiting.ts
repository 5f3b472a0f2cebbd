/** A person is waited for no more: the findings that said so are over, unless another removal of the same instance still waits. */
import type { RemovalRow } from '../store/removals.ts'
import { rowsIn } from '../store/bulk.ts'
import type { Tx } from '../store/store.ts'
import { resolveAbout } from './record.ts'

const waits = (row: Pick<RemovalRow, 'state' | 'due_at' | 'lock_owner'>): boolean =>
  row.due_at === null && row.lock_owner === null && !['gone', 'gave-up', 'closed'].includes(row.state)

/** @param removals those that wait no more */
export const resolveWaiting = async (tx: Tx, removals: readonly Pick<RemovalRow, 'id' | 'instance_id'>[]): Promise<void> => {
  const over = new Set(removals.map((row) => row.id as string))
  const instances = [...new Set(removals.map((row) => row.instance_id))]
  const others = (await rowsIn(tx, 'removals', 'instance_id', instances)).filter((row) => !over.has(row.id) && waits(row))
  const waiting = new Set(others.map((row) => row.instance_id))
  const settled = instances.filter((id) => !waiting.has(id))
  for (const code of ['unexplained-absence', 'removal-needs-person'] as const) await resolveAbout(tx, 'instance', settled, code)
}
