import type { Store } from './store.ts'

/**
 * @param target `postgres://…` (or `postgresql://…`) or the path of a SQLite file; the drivers are loaded on demand.
 */
export const openStore = async (target: string): Promise<Store> => {
  if (/^postgres(ql)?:\/\//.test(target)) return (await import('./postgres/index.ts')).openPostgresStore(target)
  return (await import('./sqlite/index.ts')).openSqliteStore(target)
}
