/** Up to when each cell was provably seen. A kind that may not be listed keeps what it had, and holds back nothing else (orphans R81, R102). */
import { cellKey, type Inventory } from '../../model/inventory.ts'
import { nextCleanAt, type Ended } from '../../model/sweep.ts'
import { mostRemembered } from '../../model/tag-shape.ts'
import { cellsOf, saveCells, type CellRow, type CellsOf } from '../../store/cells.ts'
import type { Tx } from '../../store/store.ts'
import { readableIn, unreadableIn } from './guard.ts'
import type { SweepWork } from './load.ts'
import type { Inspected } from './run.ts'

type Kept = Omit<CellRow, keyof CellsOf>

/** By `cellKey`. */
export type Watermarks = ReadonlyMap<string, number | null>

const whyOf = (cell: Inventory['cells'][number]): string | null =>
  cell.state.kind === 'complete' ? null : cell.state.kind === 'denied' ? cell.state.permission : cell.state.why

/** @returns the watermark of each cell after this sweep */
export const noteCells = async (tx: Tx, work: SweepWork, inspected: Inspected, ended: Ended): Promise<Watermarks> => {
  const { inventory, listing, scope } = inspected
  const of = { project: work.backend.project, backend: work.backend.name, scope }
  const before = new Map((await cellsOf(tx, of)).map((row) => [cellKey(row.location, row.kind), row]))
  const plausible = inventory.guard.kind !== 'tripped'
  const rows = inventory.cells.map((cell): Kept => {
    const row = before.get(cellKey(cell.location, cell.kind))
    const complete = cell.state.kind === 'complete'
    const counts = complete && plausible
    const cleanAt = row?.clean_at ?? null
    return {
      location: cell.location,
      kind: cell.kind,
      state: cell.state.kind,
      why: whyOf(cell),
      listed_at: inventory.startedAt,
      clean_at: complete && ended.outcome === 'clean' ? nextCleanAt(cleanAt, inventory.startedAt, work.marginMs) : cleanAt,
      readable: counts ? readableIn(listing, cell.location, cell.kind) : (row?.readable ?? null),
      unreadable: counts
        ? JSON.stringify(unreadableIn(listing, cell.location, cell.kind).slice(0, mostRemembered))
        : (row?.unreadable ?? '[]'),
    }
  })
  await saveCells(tx, of, rows)
  return new Map(rows.map((row) => [cellKey(row.location, row.kind), row.clean_at]))
}
