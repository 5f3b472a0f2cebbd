/** A fleet's box that a look does not show as ours any more: told, and set aside until a look shows it as what was made. Nothing takes it back by itself. */
import { resourceKey } from '../../model/removal.ts'
import type { ResourceIdentity } from '../../providers/contract.ts'
import { unlocked } from '../../store/due.ts'
import type { EngineContext } from '../context.ts'
import type { Held } from '../pipeline.ts'
import { reload, type ProvisionWork } from '../provision-load.ts'
import { reportFinding, resolveAbout } from '../record.ts'

const lookAgainMs = 60_000

const keyOf = ({ instance }: ProvisionWork, identity: ResourceIdentity): string =>
  resourceKey(instance.provider, identity.location, identity.nativeId)

export const disown = (context: EngineContext, held: Held, work: ProvisionWork, identity: ResourceIdentity, why: string): Promise<void> =>
  context.store.write(async (tx) => {
    const fresh = await reload(tx, held, work)
    if (!fresh) return
    const { instance, fleet } = fresh
    await tx.db
      .updateTable('instances')
      .set({ ...unlocked(tx.now + lookAgainMs), checked_at: null })
      .where('id', '=', instance.id)
      .execute()
    const key = keyOf(fresh, identity)
    await reportFinding(tx, {
      code: 'contradiction',
      project: instance.project,
      scope: identity.scope,
      target: { type: 'resource', id: key, name: key },
      message: `a box of fleet ${fleet?.name ?? instance.fleet} is set aside, and nothing of it is touched: ${why}`,
      evidence: { ref: instance.ref, instance: instance.id, fleet: instance.fleet, why },
    })
  })

/** It is again, or still, what was made. */
export const ownAgain = (context: EngineContext, work: ProvisionWork, identity: ResourceIdentity): Promise<void> =>
  work.instance.checked_at === null
    ? context.store.write((tx) => resolveAbout(tx, 'resource', [keyOf(work, identity)], 'contradiction'))
    : Promise.resolve()
