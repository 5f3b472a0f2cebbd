/** Who this installation is as a controller: its id is the instance, and its key is made once, in the database that its replicas share (decisions 10). */
import { requireGlobalAdmin, type Actor } from '../../engine/actor.ts'
import { controllerIdProblem, controllerNameProblem } from '../../model/prune/owner.ts'
import { addControllerKey, listControllerKeys, signingKey } from '../../store/controllers.ts'
import { lockInstallation } from '../../store/installation.ts'
import type { Session, Store } from '../../store/store.ts'
import { type KnownKey, type Signer, freshSigningKey, signerOf } from '../records/keys.ts'

export interface Identity {
  controllerId: string
  /** The installation's id. */
  instanceUid: string
  signer: Signer
}

/**
 * The first one to ask makes the key; everybody then signs with the same.
 * @throws for an id that no Swarm could keep (prune R3, R79)
 */
export const identityOf = async (store: Store, controllerId: string): Promise<Identity> => {
  const problem = controllerIdProblem(controllerId) ?? controllerNameProblem(controllerId)
  if (problem !== null) throw new Error(problem)
  const fresh = freshSigningKey()
  const row = await store.write(async (tx) => {
    const { installation_id: instanceUid } = await lockInstallation(tx)
    const known = await signingKey(tx, controllerId, instanceUid)
    if (known) return known
    const made = {
      public_key: fresh.publicKey,
      private_key: fresh.privateKey,
      controller_id: controllerId,
      instance_uid: instanceUid,
      pinned_by: null,
    }
    await addControllerKey(tx, made)
    return made
  })
  const signer = signerOf({ publicKey: row.public_key, privateKey: row.private_key ?? '' })
  return { controllerId, instanceUid: row.instance_uid, signer }
}

/** Whose word counts as our own: our keys, and those that a person took over. */
export const ownKeys = async (session: Session, instanceUid: string): Promise<KnownKey[]> =>
  (await listControllerKeys(session))
    .filter((row) => row.instance_uid === instanceUid || row.pinned_by !== null)
    .map((row) => ({ publicKey: row.public_key, controllerId: row.controller_id, standing: 'own' }))

export const mayChangeControllers = (actor: Actor): void => requireGlobalAdmin(actor)
