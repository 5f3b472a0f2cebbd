/** What changes of a record, in its labels: signed as well, and bound to the very record that they stand on. */
import type { HeldClaim } from '../../model/prune/claims.ts'
import { recordLabels as label, type RecordType } from '../../model/prune/record-names.ts'
import { namespaceLabel } from '../../model/prune/swarm/stamp.ts'
import {
  type ClaimsBody,
  type HeadBody,
  type HeadLabels,
  type RevisionBody,
  type RevisionLabels,
  countIn,
  foldedText,
  headLabelsText,
  headStates,
  mostLabelBytes,
  parseFolded,
  parseObjects,
  revisionLabelsText,
} from '../../model/prune/records.ts'
import { stampOf } from '../../model/prune/owner.ts'
import type { Labels } from '../../providers/swarm/index.ts'
import { RecordTooLargeError } from './envelope.ts'
import { type Keys, type KnownKey, type Signer, isSigned } from './keys.ts'
import { PoisonError } from './poison.ts'

const bad = (why: string): PoisonError => new PoisonError('bad-labels', why)

const signed = (type: RecordType, text: string, signer: Signer): Record<string, string> => ({
  [label.record]: type,
  [label.key]: signer.keyId,
  [label.signature]: signer.sign(text),
})

/** Whose key signed the labels. @throws PoisonError */
const signedBy = (labels: Labels, text: string, keys: Keys): KnownKey => {
  const key = keys.get(labels[label.key] ?? '')
  if (key === undefined) throw new PoisonError('unknown-key', 'its labels are signed with no registered key')
  if (!isSigned(text, labels[label.signature] ?? '', key.publicKey))
    throw new PoisonError('wrong-signature', 'its labels are not as they were signed')
  return key
}

/** prune 2.4: what a stack would take along is no record. @throws PoisonError */
export const checkRecordLabel = (labels: Labels, type: RecordType): void => {
  if (Object.hasOwn(labels, namespaceLabel)) throw new PoisonError('stack-label', 'it carries the label of a stack')
  if (labels[label.record] !== type) throw bad(`its label ${label.record} is not ${type}`)
}

const json = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? '') as unknown
  } catch {
    return null
  }
}
const bounded = (text: string): string => {
  if (Buffer.byteLength(text) <= mostLabelBytes) return text
  throw new RecordTooLargeError(
    `the claims of the release have ${Buffer.byteLength(text)} bytes, and a label surely takes ${mostLabelBytes}`,
  )
}

export const headLabels = (body: HeadBody, state: HeadLabels, signer: Signer): Labels => ({
  ...signed('head', headLabelsText(body, state), signer),
  [label.owner]: state.stamp,
  [label.state]: state.state,
  [label.revision]: String(state.revision),
  [label.epoch]: String(state.epoch),
})

/** @throws PoisonError */
export const readHeadLabels = (body: HeadBody, labels: Labels, keys: Keys): { state: HeadLabels; key: KnownKey } => {
  const state = headStates.find((one) => one === labels[label.state])
  const revision = countIn(labels[label.revision])
  const epoch = countIn(labels[label.epoch])
  const stamp = labels[label.owner]
  if (state === undefined || revision === null || epoch === null || stamp === undefined) throw bad('its labels are not those of a head')
  const read: HeadLabels = { stamp, state, revision, epoch }
  return { state: read, key: signedBy(labels, headLabelsText(body, read), keys) }
}

export const revisionLabels = (body: RevisionBody, data: string, state: RevisionLabels, signer: Signer): Labels => ({
  ...signed('revision', revisionLabelsText(body, data, state), signer),
  [label.owner]: stampOf(body.owner, body.release),
  [label.revision]: String(body.number),
  [label.state]: state.state,
  [label.objects]: bounded(JSON.stringify(state.objects)),
})

/** @throws PoisonError */
export const readRevisionLabels = (body: RevisionBody, data: string, labels: Labels, keys: Keys): RevisionLabels => {
  const state = labels[label.state]
  const objects = parseObjects(json(labels[label.objects]), body)
  if ((state !== 'intent' && state !== 'committed') || objects === null) throw bad('its labels are not those of a revision')
  // prune R2: the same stamp in the label and in what is signed.
  if (labels[label.owner] !== stampOf(body.owner, body.release)) throw bad('its stamp is not the one that it was signed with')
  if (labels[label.revision] !== String(body.number)) throw bad('its number is not the one that it was signed with')
  const read: RevisionLabels = { state, objects }
  signedBy(labels, revisionLabelsText(body, data, read), keys)
  return read
}

export const foldedLabels = (body: ClaimsBody, folded: readonly HeldClaim[], signer: Signer): Labels => {
  const text = bounded(JSON.stringify(folded))
  return { ...signed('claims', foldedText(body, text), signer), [label.folded]: text }
}

/** @throws PoisonError */
export const readFolded = (body: ClaimsBody, labels: Labels, keys: Keys): { claims: HeldClaim[]; key: KnownKey } => {
  const text = labels[label.folded]
  const folded = parseFolded(json(text))
  if (text === undefined || folded === null) throw bad('its labels are not those of folded claims')
  return { claims: folded, key: signedBy(labels, foldedText(body, text), keys) }
}
