/**
 * `npm run bench [-- --only NAME] [--database sqlite|postgresql] [--json]`: a table on stderr as it goes, with `--json` the rows on stdout.
 * A speed is a ratio to something measured in the same run; the absolute numbers stand beside it.
 */
import { parseArgs } from 'node:util'
import { drain } from './drain.ts'
import { heartbeats } from './heartbeats.ts'
import { hung } from './hung.ts'
import { idle } from './idle.ts'
import { lists } from './lists.ts'
import { obsolete } from './obsolete.ts'
import { pickup } from './pickup.ts'
import { replicas } from './replicas.ts'
import { databases, table, type BenchDatabase, type Row } from './shared.ts'
import { slow } from './slow.ts'
import { start } from './start.ts'
import { sweep } from './sweep.ts'

/** `open`: another fresh database of the same kind. */
type Bench = (database: BenchDatabase, open: () => Promise<BenchDatabase>) => Promise<Row[]>
const benches: Record<string, Bench> = { heartbeats, drain, slow, hung, replicas, lists, pickup, obsolete, start, sweep, idle }
const { values } = parseArgs({ options: { only: { type: 'string' }, database: { type: 'string' }, json: { type: 'boolean' } } })
const unknown = values.only !== undefined && !(values.only in benches)
if (unknown || (values.database !== undefined && !['sqlite', 'postgresql'].includes(values.database))) {
  process.stderr.write(`usage: npm run bench [-- --only ${Object.keys(benches).join('|')}] [--database sqlite|postgresql] [--json]\n`)
  process.exit(2)
}
const opened = await databases(values.database)
const rows: Row[] = []
try {
  for (const [name, bench] of Object.entries(benches)) {
    if (values.only !== undefined && values.only !== name) continue
    for (const open of opened.make) {
      const database = await open()
      const measured = await bench(database, open)
      await database.drop()
      if (measured.length === 0) continue
      process.stderr.write(`${table(measured)}\n`)
      rows.push(...measured)
    }
  }
} finally {
  await opened.stop()
}
process.stdout.write(values.json ? `${JSON.stringify(rows, null, 2)}\n` : `\n${table(rows)}\n`)
