/** Opens each database that a line of its input names, writes the project of its argument, prints the schema's version, and waits for the next. */
import { createInterface } from 'node:readline'
import { sql } from 'kysely'
import { openStore } from '../../../src/store/open.ts'

const [name] = process.argv.slice(2) as [string]
// Loaded before the start, so that the openings fall together.
await import('../../../src/store/postgres/index.ts')
await import('../../../src/store/sqlite/index.ts')
process.stdout.write('ready\n')
for await (const target of createInterface(process.stdin)) {
  const store = await openStore(target)
  await store.write(async (tx) => {
    await tx.db.insertInto('projects').values({ name, created_at: tx.now, deleted_at: null }).execute()
  })
  const { rows } = await store.read(({ db }) => sql<{ version: number }>`select version from schema_version`.execute(db))
  await store.close()
  process.stdout.write(`version ${rows.map((row) => row.version).join(',')}\n`)
}
