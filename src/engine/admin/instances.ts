/** Reading instances: one project's, or all for a token over every project. */
import { LeaseholdError } from '../../model/errors.ts'
import type { InstanceState, InstanceView } from '../../model/wire.ts'
import { findInstance, listInstances as list } from '../../store/instances.ts'
import { listedProject, requireFull, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { instanceViews } from '../views.ts'

/** Newest first. */
export const listInstances = async (
  context: EngineContext,
  actor: Actor,
  input: { state?: InstanceState; project?: string; limit: number },
): Promise<InstanceView[]> => {
  requireFull(actor)
  const filter = { project: listedProject(actor, input.project), state: input.state ?? null, limit: input.limit }
  return context.store.read(async (session) => instanceViews(session, await list(session, filter)))
}

/**
 * @param key an id or a ref
 * @throws LeaseholdError not_found, also for an instance of another project
 */
export const getInstance = async (context: EngineContext, actor: Actor, key: string): Promise<InstanceView> => {
  requireFull(actor)
  return context.store.read(async (session) => {
    const row = await findInstance(session, key)
    if (!row || !seesProject(actor, row.project)) throw new LeaseholdError('not_found', `no instance "${key}" is visible to this token`)
    return (await instanceViews(session, [row]))[0] as InstanceView
  })
}
