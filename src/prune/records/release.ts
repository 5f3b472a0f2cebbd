/**
 * The records of one release as they change: its head, its revisions from intent to committed, and its claims, which shrink last. Each function is one
 * step and reads nothing by itself but what it wrote.
 */
import { type Claim, carriedBy, objectsAtStart, withObjects, withoutClaims } from '../../model/prune/claims.ts'
import { currentOf } from '../../model/prune/history.ts'
import { stampOf } from '../../model/prune/owner.ts'
import { type ReleaseName, type ReleaseUid, recordName } from '../../model/prune/record-names.ts'
import type { HeadBody, HeadLabels, HeadState, RevisionBody, RevisionLabels } from '../../model/prune/records.ts'
import { sha256 } from '../../lib/sha256.ts'
import type { FileSpec, SwarmObject } from '../../providers/swarm/index.ts'
import { RecordTooLargeError, encode } from './envelope.ts'
import { headLabels, revisionLabels } from './labels.ts'
import { type HeadRecord, type ReleaseRecords, type RevisionRecord, claimsOf } from './read.ts'
import {
  type RecordsContext,
  type Write,
  type WriteFailure,
  createRecord,
  lost,
  ownKey,
  refused,
  relabelRecord,
  removeRecord,
} from './write.ts'

const placedAt = ({ id, name, version, spec }: SwarmObject<FileSpec>) => ({
  configId: id,
  name,
  version: version ?? 0,
  data: spec.Data ?? '',
})

/** The head of a release that has none: before its first intent. */
export const createHead = async (
  context: RecordsContext,
  { uid, release, owner }: { uid: ReleaseUid; release: ReleaseName; owner: string },
): Promise<Write<HeadRecord>> => {
  const body: HeadBody = { uid, clusterId: context.clusterId, release, createdBy: context.controllerId, createdAt: await context.now() }
  const state: HeadLabels = { stamp: stampOf(owner, release), state: 'active', revision: 0, epoch: context.epoch }
  const { base64 } = encode('head', body, context.signer)
  const made = await createRecord(context, { name: recordName.head(uid), labels: headLabels(body, state, context.signer), base64 })
  return made.kind === 'done' ? { kind: 'done', value: { ...placedAt(made.value), body, state, key: ownKey(context) } } : made
}

/** Moves the head as it was read; a newer epoch's is not moved (case A4). */
export const moveHead = async (
  context: RecordsContext,
  head: HeadRecord,
  to: Partial<Omit<HeadLabels, 'epoch'>>,
): Promise<Write<HeadRecord>> => {
  if (head.key.controllerId === context.controllerId && head.state.epoch > context.epoch)
    return lost(`a later run of this controller (epoch ${head.state.epoch}) has the release ${head.body.release}`)
  const state: HeadLabels = { ...head.state, ...to, epoch: context.epoch }
  const moved = await relabelRecord(context, head, headLabels(head.body, state, context.signer))
  return moved.kind === 'done' ? { kind: 'done', value: { ...head, ...placedAt(moved.value), state, key: ownKey(context) } } : moved
}

export interface Intent {
  owner: string
  manifest: string
  claims: readonly Claim[]
}

/** Whether a revision says exactly that already: the same content for the same owner. */
export const saysSame = (revision: RevisionRecord, intent: Intent): boolean => {
  const ids = new Set(revision.body.claims.map((claim) => claim.id))
  return (
    revision.body.owner === intent.owner &&
    revision.body.manifestHash === sha256(intent.manifest) &&
    ids.size === new Set(intent.claims.map((claim) => claim.id)).size &&
    intent.claims.every((claim) => ids.has(claim.id) && Object.hasOwn(revision.objects, claim.id))
  )
}

/**
 * The intent: on the Swarm before the first object is made or changed, with all that was claimed before and all that will be (I1; prune R79, 7.1).
 * A number that another record has is passed over, five times at most.
 */
export const beginRevision = async (context: RecordsContext, records: ReleaseRecords, intent: Intent): Promise<Write<RevisionRecord>> => {
  const live = claimsOf(records)
  const first = Math.max(records.highest, records.head?.state.revision ?? 0) + 1
  const createdAt = await context.now()
  let failure: WriteFailure = refused('no number was free')
  for (let number = first; number < first + 5; number++) {
    const body: RevisionBody = {
      uid: records.uid,
      clusterId: context.clusterId,
      release: records.release,
      owner: intent.owner,
      number,
      epoch: context.epoch,
      createdAt,
      manifestHash: sha256(intent.manifest),
      manifest: intent.manifest,
      claims: intent.claims.map(({ id, kind, name }) => ({ id, kind, name })),
      carried: carriedBy(intent.claims, live),
    }
    const state: RevisionLabels = { state: 'intent', objects: objectsAtStart(intent.claims, live) }
    try {
      const { base64, hash } = encode('revision', body, context.signer)
      const labels = revisionLabels(body, hash, state, context.signer)
      const made = await createRecord(context, { name: recordName.revision(records.uid, number), labels, base64 })
      if (made.kind === 'done')
        return { kind: 'done', value: { ...placedAt(made.value), ...state, body, number, hash, key: ownKey(context) } }
      failure = made
    } catch (error) {
      if (error instanceof RecordTooLargeError)
        return refused(`${error.message}: make the release smaller, or let what it dropped be pruned`)
      throw error
    }
    if (failure.kind !== 'lost' || !context.stands()) return failure
  }
  return failure
}

const relabelRevision = async (
  context: RecordsContext,
  revision: RevisionRecord,
  state: RevisionLabels,
): Promise<Write<RevisionRecord>> => {
  try {
    const labels = revisionLabels(revision.body, revision.hash, state, context.signer)
    const written = await relabelRecord(context, revision, labels)
    return written.kind === 'done' ? { kind: 'done', value: { ...revision, ...placedAt(written.value), ...state } } : written
  } catch (error) {
    if (error instanceof RecordTooLargeError) return refused(error.message)
    throw error
  }
}

/** All of it is made: with the ids of the objects, by their claims. */
export const commitRevision = (
  context: RecordsContext,
  revision: RevisionRecord,
  made: ReadonlyMap<string, string>,
): Promise<Write<RevisionRecord>> =>
  relabelRevision(context, revision, { state: 'committed', objects: withObjects(revision.objects, made) })

/** After, and only after, their objects were verified gone (prune 7.1). @param gone claim ids */
export const shrinkRevision = (
  context: RecordsContext,
  revision: RevisionRecord,
  gone: ReadonlySet<string>,
): Promise<Write<RevisionRecord>> =>
  relabelRevision(context, revision, { state: revision.state, objects: withoutClaims(revision.objects, gone) })

/** The head says what its newest committed revision says; after a crash between the two it is moved on. */
export const settleHead = async (
  context: RecordsContext,
  records: ReleaseRecords,
  state: HeadState = 'active',
): Promise<Write<HeadRecord>> => {
  const current = currentOf(records.revisions)
  if (records.head === null || current === null) return refused(`the release ${records.release} has nothing that its head could say`)
  const wanted = { stamp: stampOf(current.body.owner, current.body.release), revision: current.number, state }
  const { head } = records
  const same = head.state.stamp === wanted.stamp && head.state.revision === wanted.revision && head.state.state === wanted.state
  return same ? { kind: 'done', value: head } : moveHead(context, head, wanted)
}

/**
 * The last step of a release's removal, when nothing of it is left (prune R31): revisions and claims first and the head last, so that a crash leaves a
 * head to go on from.
 */
export const removeRecords = async (context: RecordsContext, records: ReleaseRecords): Promise<Write<null>> => {
  if (records.head === null) return refused(`the release ${records.release} has no head`)
  if (records.doubts.length > 0) return refused(records.doubts.map((doubt) => doubt.why).join('; '))
  if (records.head.state.state !== 'removing') {
    const moved = await moveHead(context, records.head, { state: 'removing' })
    if (moved.kind !== 'done') return moved
  }
  const rest = [...records.revisions, ...(records.folded === null ? [] : [records.folded]), records.head]
  for (const record of rest) {
    const removed = await removeRecord(context, record)
    if (removed.kind !== 'done') return removed
  }
  return { kind: 'done', value: null }
}
