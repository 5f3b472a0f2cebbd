/** Whose account is it? A scope can stand behind backends of several projects; stopping it stops all of them. */
import { LeaseholdError } from '../../model/errors.ts'
import type { ScopeId } from '../../model/ids.ts'
import { findScope } from '../../store/scopes.ts'
import type { Session } from '../../store/store.ts'
import type { Actor } from '../actor.ts'

/** Draining backends count: what they still hold is removed there. */
export const projectsOfScope = async (session: Session, scope: string): Promise<string[]> =>
  (
    await session.db
      .selectFrom('backends')
      .select('project')
      .distinct()
      .where('scope', '=', scope as ScopeId)
      .execute()
  ).map((row) => row.project)

/** The scopes behind a project's backends. */
export const scopesOfProject = async (session: Session, project: string): Promise<Set<string>> =>
  new Set(
    (await session.db.selectFrom('backends').select('scope').where('project', '=', project).where('scope', 'is not', null).execute()).map(
      (row) => row.scope as string,
    ),
  )

/**
 * May this operator stop the scope? One of a single project only if no other project works in it.
 * @throws LeaseholdError not_found for a scope that nobody uses, or that is not visible; forbidden for a shared one
 */
export const requireScope = async (session: Session, actor: Actor, scope: string): Promise<void> => {
  const users = await projectsOfScope(session, scope)
  const known = actor.project === null ? users.length > 0 || (await findScope(session, scope)) !== undefined : users.includes(actor.project)
  if (!known) throw new LeaseholdError('not_found', `no scope "${scope}" is known to this token; "leasehold backend list" shows them`)
  if (actor.project !== null && users.length > 1)
    throw new LeaseholdError(
      'forbidden',
      `scope "${scope}" is used by other projects too: only an operator of every project may stop it or let it go on`,
    )
}
