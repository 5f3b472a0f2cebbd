/** A controller's registration: the config `leasehold.ctl.<id>`. Its data say who registered first, its labels who has the id and its lease today. */
import type { Reclaim, Registration } from '../../model/prune/controller.ts'
import { recordLabels as label, recordName } from '../../model/prune/record-names.ts'
import { type AppSetSource, type ControllerBody, countIn, fieldsOf, reclaimText } from '../../model/prune/records.ts'
import type { FileSpec, Labels, SwarmObject } from '../../providers/swarm/index.ts'
import { open, verifyOpened } from './envelope.ts'
import { isSigned, keyIdOf, keysBy } from './keys.ts'
import { checkRecordLabel } from './labels.ts'
import { PoisonError } from './poison.ts'

/** What changes of a registration. */
export interface LeaseState {
  epoch: number
  holder: string | null
  beat: number
  appSet: AppSetSource
  reclaims: readonly Reclaim[]
}

export const registrationLabels = (state: LeaseState): Labels => ({
  [label.record]: 'controller',
  [label.epoch]: String(state.epoch),
  [label.beat]: String(state.beat),
  [label.appSet]: state.appSet.fingerprint,
  [label.source]: state.appSet.source,
  ...(state.holder !== null && { [label.holder]: state.holder }),
  ...(state.reclaims.length > 0 && { [label.reclaims]: JSON.stringify(state.reclaims) }),
})

const readReclaims = (text: string | undefined, body: ControllerBody): Reclaim[] => {
  if (text === undefined) return []
  const bad = new PoisonError('bad-labels', 'what it says of reclaims can not be read')
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    throw bad
  }
  if (!Array.isArray(list)) throw bad
  return list.map((one: unknown) => {
    const { epoch, instanceUid, publicKey, signature } = fieldsOf(one)
    if (!Number.isSafeInteger(epoch) || typeof instanceUid !== 'string' || typeof publicKey !== 'string' || typeof signature !== 'string')
      throw bad
    const reclaim = { epoch: epoch as number, instanceUid, publicKey }
    if (!isSigned(reclaimText(body, reclaim), signature, publicKey))
      throw new PoisonError('wrong-signature', 'a reclaim in it is not signed by its own key')
    return { ...reclaim, signature }
  })
}

/**
 * Signed by its own key: that proves nothing of who it is, only that whoever registered had that key (prune 7.3).
 * @throws PoisonError
 */
export const readRegistration = (config: SwarmObject<FileSpec>, clusterId: string): Registration => {
  const { labels } = config
  checkRecordLabel(labels, 'controller')
  const opened = open('controller', config.spec.Data)
  const { body, keyId } = opened
  if (body.clusterId !== clusterId) throw new PoisonError('other-cluster', `it was written for the Swarm ${body.clusterId}`)
  if (config.name !== recordName.controller(body.controllerId))
    throw new PoisonError('copied', `it was written for the controller ${body.controllerId}`)
  if (keyId !== keyIdOf(body.publicKey)) throw new PoisonError('wrong-signature', 'it is not signed by the key that it registers')
  verifyOpened('controller', opened, keysBy([{ publicKey: body.publicKey, controllerId: body.controllerId, standing: 'registered' }]))
  const epoch = countIn(labels[label.epoch])
  const beat = countIn(labels[label.beat])
  const fingerprint = labels[label.appSet]
  const source = labels[label.source]
  if (epoch === null || beat === null || fingerprint === undefined || source === undefined)
    throw new PoisonError('bad-labels', 'its labels are not those of a registration')
  return {
    id: config.id,
    version: config.version ?? 0,
    body,
    epoch,
    beat,
    holder: labels[label.holder] ?? null,
    appSet: { fingerprint, source },
    reclaims: readReclaims(labels[label.reclaims], body),
    writtenAt: config.updatedAt,
  }
}
