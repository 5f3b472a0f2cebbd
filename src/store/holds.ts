/** A person's "not this", with a reason and an end; and the stop switch per scope. Every removal asks both. */
import type { Selectable } from 'kysely'
import type { FreezesTable, HoldsTable } from './schema.ts'
import type { Session, Tx } from './store.ts'

export type HoldRow = Selectable<HoldsTable>
export type FreezeRow = Selectable<FreezesTable>
/** Freezing this stops every scope. */
export const everyScope = '*'

export const insertHold = async (tx: Tx, row: Omit<HoldRow, 'created_at' | 'removed_at' | 'removed_by'>): Promise<HoldRow> => {
  const full: HoldRow = { ...row, created_at: tx.now, removed_at: null, removed_by: null }
  await tx.db.insertInto('holds').values(full).execute()
  return full
}

export const holdById = (session: Session, id: string): Promise<HoldRow | undefined> =>
  session.db.selectFrom('holds').selectAll().where('id', '=', id).executeTakeFirst()

export const removeHold = async (tx: Tx, id: string, by: string): Promise<void> => {
  await tx.db
    .updateTable('holds')
    .set({ removed_at: tx.now, removed_by: by })
    .where('id', '=', id)
    .where('removed_at', 'is', null)
    .execute()
}

/** Standing ones first, newest first; removed and ended ones only with `all`. */
export const listHolds = (session: Session, filter: { project: string | null; all: boolean; now: number }): Promise<HoldRow[]> =>
  session.db
    .selectFrom('holds')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project))
    .$if(!filter.all, (query) =>
      query.where('removed_at', 'is', null).where((where) => where.or([where('until_at', 'is', null), where('until_at', '>', filter.now)])),
    )
    .orderBy('created_at', 'desc')
    .execute()

/** The holds that stand at `now`: few, so the engine reads them all and matches in memory. */
export const standingHolds = (session: Session, now: number): Promise<HoldRow[]> => listHolds(session, { project: null, all: false, now })

export const listFreezes = (session: Session): Promise<FreezeRow[]> =>
  session.db.selectFrom('freezes').selectAll().orderBy('scope').execute()

/** Freezing what is frozen replaces the reason. */
export const freeze = async (tx: Tx, row: Omit<FreezeRow, 'created_at'>): Promise<FreezeRow> => {
  const full = { ...row, created_at: tx.now }
  await tx.db
    .insertInto('freezes')
    .values(full)
    .onConflict((conflict) => conflict.column('scope').doUpdateSet({ reason: row.reason, created_by: row.created_by, created_at: tx.now }))
    .execute()
  return full
}

/** @returns false when the scope was not frozen. */
export const unfreeze = async (tx: Tx, scope: string): Promise<boolean> =>
  (await tx.db.deleteFrom('freezes').where('scope', '=', scope).executeTakeFirst()).numDeletedRows > 0n
