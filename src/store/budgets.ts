/** The rate budgets of accounts, shared by all replicas. No row: nothing limits it. */
import type { Selectable } from 'kysely'
import type { Bucket, BucketName, Budget } from '../model/budget.ts'
import type { ScopeId } from '../model/ids.ts'
import { forUpdate } from './bulk.ts'
import type { BudgetsTable } from './schema-sweeps.ts'
import type { Session, Tx } from './store.ts'

export type BudgetRow = Selectable<BudgetsTable>

const thousandths = <T extends number | null>(value: T): T => (value === null ? value : (Math.round(value * 1000) as T))
const whole = <T extends number | null>(value: T): T => (value === null ? value : ((value / 1000) as T))

export const bucketOf = (row: BudgetRow): Bucket => ({
  rate: whole(row.rate),
  tokens: whole(row.tokens),
  at: row.at,
  blockedUntil: row.blocked_until,
  throttledAt: row.throttled_at,
  throttles: row.throttles,
  peak: whole(row.peak),
})

const budgetOf = (rows: readonly BudgetRow[]): Budget => Object.fromEntries(rows.map((row) => [row.class, bucketOf(row)]))

const rowsOf = ({ db }: Session, provider: string, scope: string) =>
  db
    .selectFrom('budgets')
    .selectAll()
    .where('provider', '=', provider)
    .where('scope', '=', scope as ScopeId)

export const readBudget = async (session: Session, provider: string, scope: string): Promise<Budget> =>
  budgetOf(await rowsOf(session, provider, scope).execute())

/** Locked for this transaction. */
export const lockBudget = async (tx: Tx, provider: string, scope: string): Promise<Budget> => {
  const row = { provider, scope: scope as ScopeId, class: 'all', rate: null, tokens: 0, at: tx.now, throttles: 0 } as const
  // The row of the whole account is there for the lock, also where no setting limits it.
  await tx.db
    .insertInto('budgets')
    .values({ ...row, blocked_until: null, throttled_at: null, peak: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const all = rowsOf(tx, provider, scope)
  await forUpdate(tx, all.where('class', '=', 'all')).execute()
  const { all: account, ...classes } = budgetOf(await all.execute())
  return account === undefined || account.rate === null ? classes : { ...classes, all: account }
}

const cells = (bucket: Bucket) => ({
  rate: thousandths(bucket.rate),
  tokens: thousandths(bucket.tokens),
  at: bucket.at,
  blocked_until: bucket.blockedUntil === null ? null : Math.ceil(bucket.blockedUntil),
  throttled_at: bucket.throttledAt,
  throttles: bucket.throttles,
  peak: thousandths(bucket.peak),
})

/** What limits nothing is let go of. @param budget as `lockBudget` answered in this transaction, and changed */
export const saveBudget = async (tx: Tx, provider: string, scope: string, budget: Budget): Promise<void> => {
  for (const [name, bucket] of Object.entries(budget) as [BucketName, Bucket][]) {
    const key = { provider, scope: scope as ScopeId, class: name }
    if (name !== 'all' && bucket.rate === null && (bucket.blockedUntil ?? 0) <= tx.now) {
      await rowsOfClass(tx, provider, scope, name).execute()
      continue
    }
    const values = cells(bucket)
    await tx.db
      .insertInto('budgets')
      .values({ ...key, ...values })
      .onConflict((conflict) => conflict.columns(['provider', 'scope', 'class']).doUpdateSet(values))
      .execute()
  }
}

const rowsOfClass = ({ db }: Tx, provider: string, scope: string, name: BucketName) =>
  db
    .deleteFrom('budgets')
    .where('provider', '=', provider)
    .where('scope', '=', scope as ScopeId)
    .where('class', '=', name)

export const listBudgets = (session: Session): Promise<BudgetRow[]> =>
  session.db.selectFrom('budgets').selectAll().orderBy('provider').orderBy('scope').orderBy('class').execute()
