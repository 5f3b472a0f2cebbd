/** Enrolled backends of projects in which nothing happens, each due once in an interval; for the suite and the bench that count what they cost. */
import { sql } from 'kysely'
import { insertEach } from '../../src/store/bulk.ts'
import type { Store } from '../../src/store/store.ts'
import { testScope } from './scripted-provider.ts'

export const idlePerProject = 10
const part = 2_000

/** @param withinMs they come due evenly spread over so many ms from now; 0: all are due */
export const seedIdleBackends = async (store: Store, provider: string, count: number, withinMs = 0): Promise<void> => {
  for (let from = 0; from < count; from += part)
    await store.write(async (tx) => {
      const numbers = Array.from({ length: Math.min(part, count - from) }, (_, i) => from + i)
      const places = numbers.map((i) => ({ project: `idle-${Math.floor(i / idlePerProject)}`, name: `b${i % idlePerProject}`, i }))
      const projects = [...new Set(places.map((place) => place.project))]
      // Activity long before the last clean sweep: what the gate reads is there, and opens nothing.
      const hourAgo = tx.now - 3_600_000
      const longAgo = tx.now - 30 * 86_400_000
      await insertEach(
        tx,
        'projects',
        projects.map((name) => ({ name, created_at: longAgo })),
      )
      await insertEach(
        tx,
        'ledger',
        projects.flatMap((project, i) =>
          Array.from({ length: 5 }, (_, j) => ({
            ref: `r${(from + i).toString(36).padStart(9, '0')}${j.toString().padStart(2, '0')}`,
            project,
            owner_kind: 'instance',
            owner_id: `in_${from + i}_${j}`,
            owner_name: 'gone',
            parents: '{}',
            issued_at: longAgo,
            owner_closed_at: longAgo + j,
          })),
        ),
      )
      await insertEach(
        tx,
        'backends',
        places.map(({ project, name }) => ({
          project,
          name,
          provider,
          config: '{}',
          scope: testScope,
          is_default: 0,
          created_at: longAgo,
          deleted_at: null,
        })),
      )
      await insertEach(
        tx,
        'cleanups',
        places.map(({ project, name, i }) => ({
          id: `${project}/${name}`,
          project,
          backend: name,
          enrolled_at: longAgo,
          clean_at: hourAgo,
          clean_mode: 'report',
          listed_at: hourAgo,
          outcome: 'clean',
          requested_at: null,
          due_at: tx.now + Math.round((i * withinMs) / count),
          lock_owner: null,
          lock_until: null,
        })),
      )
    })
  if (store.dialect === 'postgresql') await store.read(({ db }) => sql`analyze`.execute(db))
}
