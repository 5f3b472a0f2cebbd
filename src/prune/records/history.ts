/** Revisions that are too many go, oldest first, and none before its claims stand elsewhere (prune R71, R39). */
import { foldInto } from '../../model/prune/claims.ts'
import { currentOf, tooMany } from '../../model/prune/history.ts'
import { recordName } from '../../model/prune/record-names.ts'
import type { ClaimsBody } from '../../model/prune/records.ts'
import { RecordTooLargeError, encode } from './envelope.ts'
import { foldedLabels } from './labels.ts'
import type { FoldedRecord, ReleaseRecords, RevisionRecord } from './read.ts'
import { type RecordsContext, type Write, createRecord, ownKey, refused, relabelRecord, removeRecord } from './write.ts'

/** Before a revision goes, what it claims is in `leasehold.claims.<uid>`, and that was read back. */
export const foldRevision = async (
  context: RecordsContext,
  records: Pick<ReleaseRecords, 'uid' | 'release' | 'folded'>,
  revision: RevisionRecord,
): Promise<Write<FoldedRecord>> => {
  const claims = foldInto(records.folded?.claims ?? [], { ...revision.body, objects: revision.objects })
  return writeFolded(context, records, claims)
}

/** As they are, under this controller's signature. */
export const writeFolded = async (
  context: RecordsContext,
  { uid, release, folded }: Pick<ReleaseRecords, 'uid' | 'release' | 'folded'>,
  claims: FoldedRecord['claims'],
): Promise<Write<FoldedRecord>> => {
  const body: ClaimsBody = folded?.body ?? { uid, clusterId: context.clusterId, release }
  const name = recordName.claims(uid)
  try {
    const labels = foldedLabels(body, claims, context.signer)
    const written =
      folded === null
        ? await createRecord(context, { name, labels, base64: encode('claims', body, context.signer).base64 })
        : await relabelRecord(context, folded, labels)
    if (written.kind !== 'done') return written
    const { id, version, spec } = written.value
    return { kind: 'done', value: { configId: id, name, version: version ?? 0, data: spec.Data ?? '', body, claims, key: ownKey(context) } }
  } catch (error) {
    // Too many to fold: the revision stays, and its proof with it.
    if (error instanceof RecordTooLargeError) return refused(error.message)
    throw error
  }
}

/**
 * @param historyMax how many revisions stay; 0: all
 * @returns the numbers of those that went; a failure after some went is the failure
 */
export const trimHistory = async (context: RecordsContext, records: ReleaseRecords, historyMax: number): Promise<Write<number[]>> => {
  const gone: number[] = []
  let { folded } = records
  // The head must know the current one before anything older goes.
  if (records.head === null || currentOf(records.revisions)?.number !== records.head.state.revision) return { kind: 'done', value: gone }
  // A record of it that can't be read may speak of any of its claims.
  if (records.doubts.some((doubt) => doubt.code === 'unreadable-record')) return { kind: 'done', value: gone }
  for (const revision of tooMany(records.revisions, historyMax)) {
    const kept = await foldRevision(context, { ...records, folded }, revision)
    if (kept.kind !== 'done') return kept
    folded = kept.value
    const removed = await removeRecord(context, revision)
    if (removed.kind !== 'done') return removed
    gone.push(revision.number)
  }
  return { kind: 'done', value: gone }
}
