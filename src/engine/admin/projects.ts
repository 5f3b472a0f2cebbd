/** Projects: who owns. A deleted one drains: its row and its backends stay until nothing of ours is left there (orphans U7). */
import { LeaseholdError } from '../../model/errors.ts'
import type { ProjectView } from '../../model/wire.ts'
import { listBackends } from '../../store/backends.ts'
import { forUpdate } from '../../store/bulk.ts'
import { listFleets } from '../../store/fleets.ts'
import { appendEvents } from '../../store/events.ts'
import { findProject, insertProject, listProjects as list, markProjectDeleted, type ProjectRow } from '../../store/projects.ts'
import type { Session, Tx } from '../../store/store.ts'
import { requireFull, requireGlobalAdmin, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { event } from '../record.ts'
import { iso, isoOrNull } from '../views.ts'
import { defaultProject } from './bootstrap.ts'

/** Of projects and of backends. */
export const namePattern = /^[a-z][a-z0-9-]{0,38}$/
export const checkName = (what: string, name: string): void => {
  if (!namePattern.test(name))
    throw new LeaseholdError('bad_request', `name: "${name}" can't name a ${what}; take a-z, 0-9 and -, at most 39, a letter first`)
}

const target = (name: string) => ({ type: 'project', id: name, name })

const views = async (session: Session, rows: readonly ProjectRow[]): Promise<ProjectView[]> => {
  const defaults = new Map((await listBackends(session, null)).filter((row) => row.is_default === 1).map((row) => [row.project, row.name]))
  return rows.map((row) => ({
    name: row.name,
    createdAt: iso(row.created_at),
    deletedAt: isoOrNull(row.deleted_at),
    defaultBackend: defaults.get(row.name) ?? null,
  }))
}
const viewOf = async (tx: Tx, name: string): Promise<ProjectView> =>
  (await views(tx, [(await findProject(tx, name)) as ProjectRow]))[0] as ProjectView

/** @throws LeaseholdError forbidden, bad_request, already_exists (a deleted project's name is not given again: its rows still name it) */
export const createProject = async (context: EngineContext, actor: Actor, name: string): Promise<ProjectView> => {
  requireGlobalAdmin(actor)
  checkName('project', name)
  return context.store.write(async (tx) => {
    if (!(await insertProject(tx, name)))
      throw new LeaseholdError('already_exists', `project "${name}" exists, or existed and its name is still needed; take another`)
    await appendEvents(tx, [event(tx, 'project.created', {}, { project: name, actor: actor.name, targets: [target(name)] })])
    return viewOf(tx, name)
  })
}

export const listProjects = async (context: EngineContext, actor: Actor): Promise<ProjectView[]> => {
  requireFull(actor)
  return context.store.read(async (session) =>
    views(
      session,
      (await list(session)).filter((row) => seesProject(actor, row.name)),
    ),
  )
}

/**
 * `default` is never deleted: requests that name no project go there. Boxes that a release kept stay where they are, and are reported.
 * @throws LeaseholdError forbidden, not_found, in_use
 */
export const deleteProject = async (context: EngineContext, actor: Actor, name: string): Promise<ProjectView> => {
  requireGlobalAdmin(actor)
  return context.store.write(async (tx) => {
    const known = await forUpdate(tx, tx.db.selectFrom('projects').selectAll().where('name', '=', name)).executeTakeFirst()
    if (!known) throw new LeaseholdError('not_found', `project "${name}" does not exist; "leasehold project list" lists those that do`)
    if (known.deleted_at !== null) return viewOf(tx, name)
    if (name === defaultProject)
      throw new LeaseholdError('in_use', `project "${name}" can't be deleted: requests that name no project go there`)
    const live = await tx.db
      .selectFrom('leases')
      .select('id')
      .where('project', '=', name)
      .where('state', 'in', ['provisioning', 'active'])
      .limit(5)
      .execute()
    if (live.length > 0)
      throw new LeaseholdError(
        'in_use',
        `project "${name}" has live leases (${live.map((row) => row.id).join(', ')}${live.length === 5 ? ', …' : ''}); release them first`,
      )
    const fleets = (await listFleets(tx, name)).filter((row) => row.deleted_at === null)
    if (fleets.length > 0)
      throw new LeaseholdError(
        'in_use',
        `project "${name}" keeps boxes ready (fleet ${fleets.map((row) => row.name).join(', ')}); "leasehold fleet delete" first`,
      )
    await markProjectDeleted(tx, name)
    await appendEvents(tx, [event(tx, 'project.deleted', {}, { project: name, actor: actor.name, targets: [target(name)] })])
    return viewOf(tx, name)
  })
}
