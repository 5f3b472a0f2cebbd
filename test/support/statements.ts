/** Counts the statements that the work in question sends to the database, whatever the database. */
import type { QueryExecutor } from 'kysely'
import type { Store } from '../../src/store/store.ts'

const owner = (executor: object): { executeQuery: QueryExecutor['executeQuery'] } => {
  let at: object | null = executor
  while (at !== null && !Object.hasOwn(at, 'executeQuery')) at = Object.getPrototypeOf(at) as object | null
  if (at === null) throw new Error('no executor of statements here')
  return at as { executeQuery: QueryExecutor['executeQuery'] }
}

/** @returns the texts, in the order in which they were sent, of all that ran meanwhile */
export const statementsOf = async (store: Store, work: () => Promise<unknown>): Promise<string[]> => {
  const shared = await store.read(({ db }) => Promise.resolve(owner(db.getExecutor())))
  const original = shared.executeQuery
  const sent: string[] = []
  shared.executeQuery = function (this: QueryExecutor, ...args: Parameters<QueryExecutor['executeQuery']>) {
    sent.push(args[0].sql)
    return original.apply(this, args) as never
  }
  try {
    await work()
  } finally {
    shared.executeQuery = original
  }
  return sent
}
