/** Plans of removals, and what became of each. */
import type { Selectable } from 'kysely'
import { forUpdate } from './bulk.ts'
import type { PlansTable } from './schema-sweeps.ts'
import type { Session, Tx } from './store.ts'

export type PlanRow = Selectable<PlansTable>

export const planById = (session: Session, id: string): Promise<PlanRow | undefined> =>
  session.db.selectFrom('plans').selectAll().where('id', '=', id).executeTakeFirst()

/** Those whose id begins so: a person types the first characters of a hash. */
export const plansByPrefix = (session: Session, prefix: string, limit: number): Promise<PlanRow[]> =>
  session.db.selectFrom('plans').selectAll().where('id', 'like', `${prefix}%`).orderBy('id').limit(limit).execute()

export const lockPlan = (tx: Tx, id: string): Promise<PlanRow | undefined> =>
  forUpdate(tx, tx.db.selectFrom('plans').selectAll().where('id', '=', id)).executeTakeFirst()

export interface PlanFilter {
  project: string | null
  backend: string | null
  state: PlanRow['state'] | null
  limit: number
}

/** Newest first. */
export const listPlans = (session: Session, filter: PlanFilter): Promise<PlanRow[]> =>
  session.db
    .selectFrom('plans')
    .selectAll()
    .$if(filter.project !== null, (query) => query.where('project', '=', filter.project as string))
    .$if(filter.backend !== null, (query) => query.where('backend', '=', filter.backend as string))
    .$if(filter.state !== null, (query) => query.where('state', '=', filter.state as PlanRow['state']))
    .orderBy('seen_at', 'desc')
    .orderBy('id')
    .limit(filter.limit)
    .execute()

/** Those of a backend that somebody approved and that are not settled yet, the oldest approval first. */
export const approvedPlans = (session: Session, project: string, backend: string): Promise<PlanRow[]> =>
  session.db
    .selectFrom('plans')
    .selectAll()
    .where('project', '=', project)
    .where('backend', '=', backend)
    .where('state', '=', 'approved')
    .orderBy('approved_at')
    .orderBy('id')
    .execute()

/** The same plan again is the same row; one that was settled waits anew. One that is approved stays so. */
export const savePlan = async (tx: Tx, row: Omit<PlanRow, 'made_at' | 'seen_at'>): Promise<void> => {
  const before = await lockPlan(tx, row.id)
  if (before?.state === 'approved') return
  if (before?.state === 'waiting') {
    await tx.db.updateTable('plans').set({ seen_at: tx.now, entries: row.entries, why: row.why }).where('id', '=', row.id).execute()
    return
  }
  const fresh = { ...row, made_at: tx.now, seen_at: tx.now }
  await tx.db
    .insertInto('plans')
    .values(fresh)
    .onConflict((conflict) => conflict.column('id').doUpdateSet(fresh))
    .execute()
}

/** Nobody approved them for so long that nothing of them would stand. */
export const dropOldPlans = async (tx: Tx, project: string, backend: string, before: number): Promise<void> => {
  await tx.db
    .deleteFrom('plans')
    .where('project', '=', project)
    .where('backend', '=', backend)
    .where('state', '=', 'waiting')
    .where('seen_at', '<', before)
    .execute()
}
