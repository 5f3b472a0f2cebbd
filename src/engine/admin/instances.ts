/** Reading instances: one project's, or all for a token over every project. */
import { LeaseholdError } from '../../model/errors.ts'
import type { InstanceState, InstanceView } from '../../model/wire.ts'
import { shownBy, type ReportFilter } from '../../model/report-filter.ts'
import { boundKinds, findInstance, listInstances as list } from '../../store/instances.ts'
import { leasesByIds, type LeaseRow } from '../../store/leases.ts'
import { requireFull, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { requireKnown, requireLabel } from '../known.ts'
import { conditionsOf, marked } from '../report-marks.ts'
import { instanceViews } from '../views.ts'

/** Newest first. */
export const listInstances = async (
  context: EngineContext,
  actor: Actor,
  input: ReportFilter & { state?: InstanceState; project?: string; limit: number },
): Promise<InstanceView[]> => {
  requireFull(actor)
  const now = await context.store.now()
  return context.store.read(async (session) => {
    const project = await requireKnown(context, session, actor, input)
    const rows = await list(session, { project, state: input.state ?? null, report: conditionsOf(input, now), limit: input.limit })
    const views = await instanceViews(session, rows)
    if (rows.length === 0 && input.label !== undefined) await requireLabel(session, project, input.label)
    if (input.owner === undefined && input.kind === undefined && input.label === undefined) return views
    const kinds = await boundKinds(
      session,
      rows.map((row) => row.id),
    )
    const leases = new Map(
      (
        await leasesByIds(
          session,
          rows.flatMap((row) => row.lease_id ?? []),
        )
      ).map((row): [string, LeaseRow] => [row.id, row]),
    )
    return views.map((view) => {
      const lease = leases.get(view.leaseID ?? '')
      const kind = kinds.get(view.id)
      const labels = lease === undefined ? null : [JSON.parse(lease.labels) as Record<string, string>]
      return marked(view, shownBy(input, { owner: lease?.owner ?? null, kinds: kind === undefined ? null : [kind], labels }))
    })
  })
}

/**
 * @param key an id or a ref
 * @throws LeaseholdError not_found, also for an instance of another project
 */
export const getInstance = async (context: EngineContext, actor: Actor, key: string): Promise<InstanceView> => {
  requireFull(actor)
  return context.store.read(async (session) => {
    const row = await findInstance(session, key)
    if (!row || !seesProject(actor, row.project))
      throw new LeaseholdError('not_found', `no instance "${key}" is visible to this token; "leasehold instances" lists those that are`)
    return (await instanceViews(session, [row]))[0] as InstanceView
  })
}
