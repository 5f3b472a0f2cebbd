/** A person gives a controller id to this installation, because the key that registered it is lost (prune 7.3). */
import type { Actor } from '../../engine/actor.ts'
import { auditOperator } from '../../engine/admin/operator-audit.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { keysOf, ownerOf, rivalOf, rivalText } from '../../model/prune/controller.ts'
import { reclaimText } from '../../model/prune/records.ts'
import { recordName } from '../../model/prune/record-names.ts'
import type { Swarm } from '../../providers/swarm/index.ts'
import { addControllerKey } from '../../store/controllers.ts'
import type { Store } from '../../store/store.ts'
import { registrationLabels } from '../records/registration.ts'
import { type Identity, mayChangeControllers } from './identity.ts'
import { lookUp, stateOf } from './session.ts'

export interface ControllerWord {
  store: Store
  swarm: Swarm
  clusterId: string
  identity: Identity
  signal: AbortSignal
}

/**
 * A new epoch begins, and what the lost key signed counts as this installation's own from now on. The instance must be named as it is shown: nobody takes
 * an id by mistake.
 * @throws LeaseholdError not_found, bad_request, already_exists, removal_changed
 */
export const reclaimController = async (word: ControllerWord, actor: Actor, instance: string): Promise<{ epoch: number }> => {
  mayChangeControllers(actor)
  const { store, swarm, clusterId, identity, signal } = word
  const { controllerId, signer, instanceUid } = identity
  const seen = await lookUp(swarm, clusterId, controllerId, signal)
  if (seen.kind === 'absent')
    throw new LeaseholdError('not_found', `no controller "${controllerId}" is registered on this Swarm: it needs no reclaim`)
  if (seen.kind !== 'read') throw new LeaseholdError('bad_request', seen.why)
  const { registration } = seen
  const holder = ownerOf(registration)
  if (holder.publicKey === signer.publicKey)
    throw new LeaseholdError('already_exists', `the controller id "${controllerId}" is this installation's already`)
  if (holder.instanceUid !== instance)
    throw new LeaseholdError('bad_request', `${rivalText(rivalOf(registration))}, and not by ${instance}: nothing was done`)
  const epoch = registration.epoch + 1
  const fresh = { epoch, instanceUid, publicKey: signer.publicKey }
  const reclaim = { ...fresh, signature: signer.sign(reclaimText(registration.body, fresh)) }
  await store.write(async (tx) => {
    for (const publicKey of keysOf(registration))
      await addControllerKey(tx, {
        public_key: publicKey,
        private_key: null,
        controller_id: controllerId,
        instance_uid: instance,
        pinned_by: actor.name,
      })
    const body = { action: 'controller-reclaim', controllerId, clusterId, instance, epoch }
    await auditOperator(tx, actor, { project: null, scope: null }, body)
  })
  const labels = registrationLabels({
    ...stateOf(registration),
    epoch,
    holder: null,
    beat: registration.beat + 1,
    reclaims: [...registration.reclaims, reclaim],
  })
  const updated = await swarm.configs.update(
    registration.id,
    registration.version,
    { Name: recordName.controller(controllerId), Labels: labels },
    { signal },
  )
  if (updated.kind === 'updated') return { epoch }
  const again = await lookUp(swarm, clusterId, controllerId, signal)
  if (again.kind === 'read' && ownerOf(again.registration).publicKey === signer.publicKey) return { epoch: again.registration.epoch }
  throw new LeaseholdError(
    'removal_changed',
    `the registration of "${controllerId}" changed meanwhile, so its holder lives: nothing was taken`,
  )
}
