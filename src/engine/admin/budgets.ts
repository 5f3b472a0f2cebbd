/** How many calls accounts get now, and what waits for them, for `status`. */
import { sql } from 'kysely'
import { refilled } from '../../model/budget.ts'
import type { BudgetView } from '../../model/wire.ts'
import { bucketOf, listBudgets } from '../../store/budgets.ts'
import type { QueueTable } from '../../store/due.ts'
import type { Session } from '../../store/store.ts'
import type { Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { isoOrNull } from '../views.ts'
import { scopesOfProject } from './scopes.ts'

/** Of one project: the accounts of its own backends. Only what is limited. */
export const visibleBudgets = async (session: Session, context: EngineContext, { project }: Actor, now: number): Promise<BudgetView[]> => {
  const own = project === null ? null : await scopesOfProject(session, project)
  return (await listBudgets(session))
    .filter((row) => own === null || own.has(row.scope))
    .flatMap((row): BudgetView[] => {
      const bucket = refilled(bucketOf(row), now)
      // A setting that was taken back since limits nothing.
      const rate = row.class === 'all' ? context.callsPerSecond(row.provider) : bucket.rate
      const blockedUntil = bucket.blockedUntil !== null && bucket.blockedUntil > now ? bucket.blockedUntil : null
      if (rate === null && blockedUntil === null) return []
      const { tokens, throttledAt, throttles } = bucket
      return [
        {
          provider: row.provider,
          scope: row.scope,
          operation: row.class,
          callsPerSecond: rate,
          left: Math.round(tokens * 10) / 10,
          blockedUntil: isoOrNull(blockedUntil),
          throttledAt: isoOrNull(throttledAt),
          throttles,
        },
      ]
    })
}

export const countWaiting = async (
  session: Session,
  project: string | null,
): Promise<Record<'creates' | 'removals' | 'sweeps', number>> => {
  const count = async (table: QueueTable): Promise<number> => {
    const of = project === null ? sql`` : sql`and project = ${project}`
    const query = sql<{ n: number }>`select count(*) as n from ${sql.table(table)}
      where due_at is not null and due_at = waits_until and lock_owner is null ${of}`
    return Number((await query.execute(session.db)).rows[0]?.n ?? 0)
  }
  return { creates: await count('instances'), removals: await count('removals'), sweeps: await count('cleanups') }
}
