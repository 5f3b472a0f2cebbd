/** What the benchmarks share: the databases, with every commit flushed, and the table that they print. */
import { postgresPrograms, startPostgres } from '../support/services/postgres.ts'
import { postgresDatabase, sqliteDatabase } from '../support/databases.ts'

export interface BenchDatabase {
  name: 'sqlite' | 'postgresql'
  target: string
  drop(): Promise<void>
}

export interface Row {
  bench: string
  database: string
  what: string
  /** What it should be, where that was decided. */
  target?: string
  figures: Record<string, number>
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** A fresh database for each bench. */
export const databases = async (wanted: string | undefined): Promise<{ make: (() => Promise<BenchDatabase>)[]; stop(): Promise<void> }> => {
  const make: (() => Promise<BenchDatabase>)[] = []
  let stop = async (): Promise<void> => {}
  if (wanted !== 'postgresql') make.push(async () => ({ name: 'sqlite', ...sqliteDatabase() }))
  if (wanted !== 'sqlite') {
    if (postgresPrograms() === null) throw new Error('PostgreSQL is missing (apt-get install postgresql); --database sqlite leaves it out')
    const server = await startPostgres({ durable: true })
    stop = () => server.stop()
    make.push(async () => ({ name: 'postgresql', ...(await postgresDatabase(server.url)) }))
  }
  return { make, stop }
}

const shown = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(2))

export const table = (rows: readonly Row[]): string => {
  const lines = rows.map((row) => [
    row.bench,
    row.database,
    row.what,
    Object.entries(row.figures)
      .map(([name, value]) => `${name} ${shown(value)}`)
      .join(', ') + (row.target === undefined ? '' : ` (target: ${row.target})`),
  ])
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => (line[column] as string).length)))
  return lines.map((line) => line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')).join('\n')
}
