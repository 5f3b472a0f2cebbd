/** A database server that ends its clients' connections: a restart, a failover, an administrator. What was answered stands, and the work goes on. */
import { sql } from 'kysely'
import { expect, inject, it, onTestFinished } from 'vitest'
import { postgresDatabase } from '../support/databases.ts'
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
})
