/** The database's time in the middle of a transaction: later than `tx.now` where the transaction had to wait for locks. */
import { sql } from 'kysely'
import type { Tx } from './store.ts'

/** What every statement on PostgreSQL takes its time from (I4). */
export const postgresTime = 'coalesce(clock.frozen_ms, floor(extract(epoch from clock_timestamp()) * 1000)::bigint + clock.offset_ms)'
export const postgresClock = `select ${postgresTime} as now from clock where id = 1`

/** @returns ms. On SQLite a transaction waits for nobody once it has begun, so its time is the one at its start. */
export const timeNow = async (tx: Tx): Promise<number> =>
  tx.dialect === 'sqlite' ? tx.now : ((await sql.raw<{ now: number }>(postgresClock).execute(tx.db)).rows[0]?.now ?? tx.now)
