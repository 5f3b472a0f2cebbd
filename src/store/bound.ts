/** What active instances of one backend are bound to, read along an index by the million: in place of a look-up for each page of a listing. */
import { CompiledQuery } from 'kysely'
import type { BoundWords } from '../model/bound-table.ts'
import type { Session } from './store.ts'

/** Written into the statement: PostgreSQL, which plans it once for all values, then knows that it is after a few. */
export const boundAStatement = 500

const activeText = (project: string, backend: string, after: string): string =>
  `instances where project = ${project} and backend = ${backend} and ref > ${after} and state in ('provisioning', 'idle', 'busy')
    order by ref limit ${boundAStatement}`

const wordsText = (active: string, attemptKey: string): string =>
  `select i.ref, a.token || '\n' || a.scope || '\n' || a.location as place, a.kind || '\n' || a.immutable_id as identity
  from (select ref, attempt_id from ${active}) i left join attempts a on a.ref = i.ref and ${attemptKey} = i.attempt_id order by i.ref`

const wordsTexts = {
  // The plus keeps SQLite to the index that covers the look.
  sqlite: wordsText(activeText('?', '?', '?'), '+a.id'),
  postgresql: wordsText(activeText('$1', '$2', '$3'), 'a.id'),
}

/** @returns `boundAStatement` of them in the order of refs, or all that are left */
export const boundWordsOf = async (session: Session, project: string, backend: string, after: string): Promise<BoundWords[]> =>
  (await session.db.executeQuery<BoundWords>(CompiledQuery.raw(wordsTexts[session.dialect], [project, backend, after]))).rows

/**
 * Refs of a project whose instances changed.
 * @param since ms, inclusive
 */
export const changedInstances = async (session: Session, project: string, since: number): Promise<string[]> =>
  (await session.db.selectFrom('instances').select('ref').where('project', '=', project).where('changed_at', '>=', since).execute()).map(
    (row) => row.ref,
  )

/**
 * How many active instances of a backend have been bound since `until` at the latest, by location.
 * @param after, upTo refs: the first not included; upTo null: to the end
 * @param until ms
 */
export const countBound = async (
  session: Session,
  where: { project: string; backend: string; after: string; upTo: string | null; until: number },
): Promise<{ location: string; count: number }[]> => {
  let query = session.db
    .selectFrom('instances')
    .select(({ fn }) => ['location', fn.countAll<number>().as('count')])
    .where('project', '=', where.project)
    .where('backend', '=', where.backend)
    .where('state', 'in', ['provisioning', 'idle', 'busy'])
    .where('ref', '>', where.after as never)
    .where('changed_at', '<=', where.until)
    .where('attempt_id', 'is not', null)
  if (where.upTo !== null) query = query.where('ref', '<=', where.upTo as never)
  const rows = await query.groupBy('location').execute()
  return rows.map(({ location, count }) => ({ location, count: Number(count) }))
}
