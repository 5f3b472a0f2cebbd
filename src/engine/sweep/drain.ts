/** A deleted backend is swept until nothing of ours is left; then its row and secrets go (orphans R34, R100, U7). */
import { sql } from 'kysely'
import { completeCell } from '../../model/inventory.ts'
import { lateSurfaceMs } from '../../model/sweep.ts'
import { dropCells } from '../../store/cells.ts'
import { readInstallation } from '../../store/installation.ts'
import type { Tx } from '../../store/store.ts'
import type { SweepWork } from './load.ts'
import type { Inspected } from './run.ts'

/** Is there nothing of ours left, and is that proved? Then a deleted backend has drained (orphans R34, U7). */
export const isDrained = (work: SweepWork, inspected: Inspected): boolean =>
  work.backend.deleted_at !== null &&
  inspected.oursInScope === 0 &&
  inspected.expected === 0 &&
  inspected.inventory.cells.every((cell) => completeCell(inspected.inventory, cell.location, cell.kind) !== null)

/**
 * A listing shows what is there now. What is still being made, looked for or taken back needs the backend's configuration, and what was closed a moment ago
 * may yet surface (orphans R40).
 */
export const nothingOpen = async (tx: Tx, work: SweepWork): Promise<boolean> => {
  const { project, name: backend } = work.backend
  // What a fork left to another installation is not waited for.
  const from = (await readInstallation(tx))?.held_since ?? 0
  const since = tx.now - lateSurfaceMs - work.marginMs
  const any = (rows: ReturnType<typeof sql>) => sql<number>`case when exists (select 1 from ${rows}) then 1 else 0 end`
  const ours = sql`project = ${project} and backend = ${backend}`
  const query = sql<{ open: number }>`select
    ${any(sql`instances where ${ours} and state <> 'terminated' and created_at >= ${from}`)}
    + ${any(sql`removals where ${ours} and state not in ('gone', 'closed') and opened_at >= ${from}`)}
    + ${any(sql`attempts where ${ours} and opened_at >= ${from} and (outcome in ('open', 'abandoned') or (called_at is not null and ended_at > ${since}))`)} as open`
  return Number((await query.execute(tx.db)).rows[0]?.open) === 0
}

/** A drained backend's row and secrets go, and with them its schedule. */
export const dropDrained = async (tx: Tx, work: SweepWork): Promise<void> => {
  await tx.db.deleteFrom('cleanups').where('id', '=', work.cleanup.id).execute()
  await dropCells(tx, work.backend.project, work.backend.name)
  await tx.db.deleteFrom('backends').where('project', '=', work.backend.project).where('name', '=', work.backend.name).execute()
}
