/**
 * A misspelt filter would show nothing, and nothing looks like "all is well": what is asked for must be known here. Known is also what is gone and has left
 * something behind: a deleted project, a backend that has drained, the owner of an old lease.
 */
import { sql } from 'kysely'
import { LeaseholdError } from '../model/errors.ts'
import { parseLabel, type ReportFilter } from '../model/report-filter.ts'
import { hasLabel } from '../store/report-conditions.ts'
import { listBackends } from '../store/backends.ts'
import { findProject, listProjects } from '../store/projects.ts'
import { listTokens } from '../store/tokens.ts'
import type { Session } from '../store/store.ts'
import { listedProject, type Actor } from './actor.ts'
import type { EngineContext } from './context.ts'

export interface Asked extends ReportFilter {
  project?: string | undefined
  backend?: string | undefined
  provider?: string | undefined
}

const most = 20
const namesOf = (names: Iterable<string>): string[] => [...new Set(names)].toSorted()
const listed = (names: readonly string[]): string =>
  names.length === 0
    ? 'there is none'
    : `there is ${names.slice(0, most).join(', ')}${names.length > most ? ` and ${names.length - most} more` : ''}`

const refuse = (field: string, name: string, what: string, there: readonly string[]): never => {
  throw new LeaseholdError('bad_request', `${field}: ${what} ${JSON.stringify(name)} is known here; ${listed(there)}`)
}

const exists = async (
  session: Session,
  table: 'sweeps' | 'instances' | 'findings' | 'leases',
  column: string,
  name: string,
  project: string | null,
) =>
  (
    await sql<{ one: number }>`select 1 as one from ${sql.table(table)} where ${sql.ref(column)} = ${name}
      ${project === null ? sql`` : sql`and project = ${project}`} limit 1`.execute(session.db)
  ).rows.length > 0

const requireProject = async (session: Session, actor: Actor, name: string): Promise<void> => {
  if (actor.project !== null) return
  const projects = (await listProjects(session)).map((row) => row.name)
  if (!projects.includes(name)) refuse('project', name, 'no project', projects)
}

/**
 * A project that something is to be made in, or done to; one that is deleted takes nothing new.
 * @throws LeaseholdError bad_request with those that there are
 */
export const requireLiving = async (session: Session, { project }: Pick<Actor, 'project'>, name: string): Promise<void> => {
  const known = await findProject(session, name)
  if (known?.deleted_at === null) return
  const rows = (await listProjects(session)).filter((row) => project === null || row.name === project)
  const living = rows.filter((row) => row.deleted_at === null).map((row) => row.name)
  refuse('project', name, known === undefined ? 'no project' : 'no living project', living)
}

/** @throws LeaseholdError bad_request with those that the project has */
export const refuseBackend = (project: string, name: string, rows: readonly { name: string }[]): never => {
  const names = namesOf(rows.map((row) => row.name))
  throw new LeaseholdError('bad_request', `backend: project "${project}" has no backend ${JSON.stringify(name)}; ${listed(names)}`)
}

/** Known is also what a project had. */
const requireBackend = async (session: Session, project: string | null, name: string): Promise<void> => {
  const backends = await listBackends(session, project)
  if (backends.some((row) => row.name === name)) return
  for (const table of ['sweeps', 'instances', 'findings'] as const) if (await exists(session, table, 'backend', name, project)) return
  refuse('backend', name, 'no backend', namesOf(backends.map((row) => row.name)))
}

const requireProvider = async (
  session: Session,
  context: Pick<EngineContext, 'providers'>,
  project: string | null,
  name: string,
): Promise<void> => {
  if (context.providers.has(name) || (await exists(session, 'instances', 'provider', name, project))) return
  const backends = await listBackends(session, project)
  if (backends.some((row) => row.provider === name)) return
  refuse('provider', name, 'no provider', namesOf([...context.providers.keys(), ...backends.map((row) => row.provider)]))
}

/** Whoever has a token, or had a lease. All names are read only where this one is none of them: of leases there may be many. */
const requireOwner = async (session: Session, actor: Actor, project: string | null, name: string): Promise<void> => {
  if (name === actor.name) return
  const tokens = (await listTokens(session, project)).map((row) => row.name)
  if (tokens.includes(name) || (await exists(session, 'leases', 'owner', name, project))) return
  const mine = project === null ? sql`` : sql`where project = ${project}`
  const { rows } = await sql<{ owner: string }>`select distinct owner from leases ${mine}`.execute(session.db)
  refuse('owner', name, 'nobody of the name', namesOf([...rows.map((row) => row.owner), ...tokens]))
}

const requireKind = (context: Pick<EngineContext, 'providers'>, name: string): void => {
  const kinds = namesOf([...context.providers.values()].flatMap((provider) => provider.kinds))
  if (!kinds.includes(name)) refuse('kind', name, 'no kind', kinds)
}

const mostLabels = 10_000

/**
 * A label that nobody has ever had would show nothing. Asked only where nothing is shown: what is shown as unknown says by itself that more may be there.
 * @throws LeaseholdError bad_request with the values that its key has, else the keys that there are
 */
export const requireLabel = async (session: Session, project: string | null, text: string): Promise<void> => {
  const label = parseLabel(text)
  if (label === null) return
  const mine = project === null ? sql`true` : sql`project = ${project}`
  const had = await sql<{ one: number }>`select 1 as one from leases where ${mine} and ${hasLabel(session.dialect, sql`labels`, label)}
    limit 1`.execute(session.db)
  // As a finding keeps what was listed; other texts of evidence look otherwise.
  const member = `%${`${JSON.stringify(label.key)}:${JSON.stringify(label.value)}`.replace(/[\\%_]/g, '\\$&')}%`
  const seen = await sql<{ one: number }>`select 1 as one from findings where ${mine} and evidence like ${member} escape '\\'
    limit 1`.execute(session.db)
  if (had.rows.length > 0 || seen.rows.length > 0) return
  const { rows } = await sql<{ labels: string }>`select distinct labels from leases where ${mine} limit ${mostLabels}`.execute(session.db)
  const all = rows.flatMap((row) => Object.entries(JSON.parse(row.labels) as Record<string, string>))
  const values = all.filter(([key]) => key === label.key).map(([key, value]) => `${key}=${value}`)
  refuse('label', text, 'nothing with the label', namesOf(values.length > 0 ? values : all.map(([key]) => key)))
}

/**
 * @returns where the list looks: null is every project
 * @throws LeaseholdError bad_request with what is wrong and what there is; not_found for a project that this token does not see
 */
export const requireKnown = async (
  context: Pick<EngineContext, 'providers'>,
  session: Session,
  actor: Actor,
  asked: Asked,
): Promise<string | null> => {
  const project = listedProject(actor, asked.project)
  if (asked.project !== undefined) await requireProject(session, actor, asked.project)
  if (asked.backend !== undefined) await requireBackend(session, project, asked.backend)
  if (asked.provider !== undefined) await requireProvider(session, context, project, asked.provider)
  if (asked.owner !== undefined) await requireOwner(session, actor, project, asked.owner)
  if (asked.kind !== undefined) requireKind(context, asked.kind)
  if (asked.label !== undefined && parseLabel(asked.label) === null)
    throw new LeaseholdError('bad_request', `label: must be key=value, not ${JSON.stringify(asked.label)}`)
  return project
}
