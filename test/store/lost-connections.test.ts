/** A database server that ends its clients' connections: a restart, a failover, an administrator. What was answered stands, and the work goes on. */
import { sql } from 'kysely'
import { expect, inject, it, onTestFinished } from 'vitest'
import { isDatabaseUnavailable } from '../../src/api/database-errors.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { postgresDatabase } from '../support/databases.ts'
import { startProxy } from '../support/proxy.ts'
import { serviceOr } from '../support/services/skip.ts'
import { until } from '../support/until.ts'

const { url } = inject('postgres')

serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)('a store whose server ends its connections', () => {
  it('loses no answered write, refuses what was under way, and serves again, idle or busy', async () => {
    const database = await postgresDatabase(url as string)
    onTestFinished(() => database.drop())
    const [store, other] = [await database.open(), await database.open()]
    onTestFinished(async () => {
      await store.close()
      await other.close()
    })
    const cut = () =>
      other.read(({ db }) =>
        sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`.execute(
          db,
        ),
      )
    const answered: string[] = []
    let refused = 0
    const add = async (name: string): Promise<void> => {
      try {
        await store.write((tx) => tx.db.insertInto('projects').values({ name, created_at: tx.now, deleted_at: null }).execute())
        answered.push(name)
      } catch {
        refused++
      }
    }
    const names = async (): Promise<string[]> =>
      (await other.read(({ db }) => db.selectFrom('projects').select('name').execute())).map((row) => row.name)
    for (let round = 0; round < 10; round++) {
      await Promise.all([...Array.from({ length: 20 }, (_, i) => add(`p${round}-${i}`)), cut()])
      // Idle connections are cut too; nothing listens to them but the pool.
      await cut()
    }
    await until(async () => {
      const before = answered.length
      await add(`last-${answered.length}-${refused}`)
      return answered.length > before
    }, 'it serves again')
    const there = new Set(await names())
    expect(answered.filter((name) => !there.has(name))).toEqual([])
    expect(answered.length).toBeGreaterThan(0)
  })

  it('is not held by a connection that carries nothing any more: what was asked fails in time, and it serves by new ones', async () => {
    const database = await postgresDatabase(url as string)
    onTestFinished(() => database.drop())
    const proxy = await startProxy(database.target)
    onTestFinished(() => proxy.close())
    const store = await openPostgresStore(proxy.through(database.target), { statementMs: 500 })
    const add = (name: string) =>
      store.write((tx) => tx.db.insertInto('projects').values({ name, created_at: tx.now, deleted_at: null }).execute())
    await add('before')
    proxy.halfOpen()
    const asked = await Promise.allSettled([
      add('meanwhile'),
      store.now(),
      store.read(({ db }) => db.selectFrom('projects').select('name').execute()),
    ])
    expect(asked.map((one) => one.status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(asked.map((one) => one.status === 'rejected' && isDatabaseUnavailable(one.reason))).toEqual([true, true, true])
    proxy.reset()
    await add('after')
    const names = await store.read(({ db }) => db.selectFrom('projects').select('name').where('name', '<>', 'default').execute())
    expect(names.map((row) => row.name).toSorted()).toEqual(['after', 'before'])
    await store.close()
  })

  it('waits longer for a row than a holder of it may stand still in the middle of a transaction', async () => {
    const database = await postgresDatabase(url as string)
    onTestFinished(() => database.drop())
    const store = await database.open()
    onTestFinished(() => store.close())
    const { rows } = await store.read(({ db }) =>
      sql<{ name: string; setting: string }>`select name, setting from pg_settings
        where name in ('idle_in_transaction_session_timeout', 'lock_timeout') order by name`.execute(db),
    )
    const [still, patience] = rows.map((row) => Number(row.setting))
    expect(still).toBeGreaterThan(0)
    expect(patience).toBeGreaterThan(still as number)
  })
})
