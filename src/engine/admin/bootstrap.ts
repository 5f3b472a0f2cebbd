/** What the first start makes, so that a newcomer has something to lease: project `default`, backend `local`, and one admin token. */
import { LeaseholdError } from '../../model/errors.ts'
import { forUpdate } from '../../store/bulk.ts'
import { insertBackend } from '../../store/backends.ts'
import { appendEvents } from '../../store/events.ts'
import { insertProject } from '../../store/projects.ts'
import type { EngineContext } from '../context.ts'
import { event, systemActor } from '../record.ts'
import { makeToken, tokenPrefix } from './tokens.ts'

export const defaultProject = 'default'
const localBackend = 'local'

/** True while nobody could ever sign in. Ask this first, write the secret to its file, then hand it to `firstStart`: a crash between loses nothing. */
export const needsAdminToken = async (context: EngineContext): Promise<boolean> =>
  (await context.store.read((session) => session.db.selectFrom('tokens').select('id').limit(1).executeTakeFirst())) === undefined

/**
 * Idempotent, also when several replicas start at once: the project's row is what they wait for.
 * @param given a secret (`lhx_…`) that is already in its file; without it one is made
 * @returns the admin token's secret if this call made it, else null
 */
export const firstStart = async (context: EngineContext, given?: string): Promise<{ adminToken: string | null }> => {
  if (given !== undefined && !(given.startsWith(tokenPrefix) && given.length >= tokenPrefix.length + 43))
    throw new LeaseholdError('bad_request', `the secret for the admin token is none of ours: ${tokenPrefix} and at least 43 characters`)
  return context.store.write(async (tx) => {
    const fresh = await insertProject(tx, defaultProject)
    await forUpdate(tx, tx.db.selectFrom('projects').select('name').where('name', '=', defaultProject)).execute()
    if (fresh) {
      await insertBackend(tx, {
        project: defaultProject,
        name: localBackend,
        provider: 'process',
        config: '{}',
        scope: null,
        is_default: 1,
      })
      const about = { project: defaultProject, actor: systemActor }
      const backendTarget = { type: 'backend', id: `${defaultProject}/${localBackend}`, name: localBackend }
      await appendEvents(tx, [
        event(tx, 'project.created', {}, { ...about, targets: [{ type: 'project', id: defaultProject, name: defaultProject }] }),
        event(tx, 'backend.created', { provider: 'process', scope: null }, { ...about, targets: [backendTarget] }),
      ])
    }
    const anyToken = await tx.db.selectFrom('tokens').select('id').limit(1).executeTakeFirst()
    if (anyToken) return { adminToken: null }
    const { secret } = await makeToken(tx, systemActor, { name: 'admin', role: 'admin', project: null }, given)
    return { adminToken: secret }
  })
}
