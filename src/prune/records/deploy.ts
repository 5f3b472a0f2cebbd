/**
 * A deploy with its records: names checked, head, intent, the objects, commit, head, history. Killed after any call, the same deploy run again goes on
 * from what is on the Swarm, and at no moment is there an object of the release that no signed revision claims (I1; prune R79).
 */
import { letterFirst } from '../../lib/ids.ts'
import { errorText } from '../../lib/redact.ts'
import type { Claim } from '../../model/prune/claims.ts'
import { newestOf } from '../../model/prune/history.ts'
import { controllerOf, ownerId, parseStamp } from '../../model/prune/owner.ts'
import { type ReleaseName, type ReleaseUid, releaseUidLength } from '../../model/prune/record-names.ts'
import { type NamedObject, nameProblems } from '../../model/prune/twins.ts'
import { trimHistory } from './history.ts'
import { type ReleaseRecords, type RevisionRecord, type SwarmRecords, readRecords } from './read.ts'
import { type Intent, beginRevision, commitRevision, createHead, saysSame, settleHead } from './release.ts'
import { type RecordsContext, type Write, type WriteFailure, refused, removeRecord } from './write.ts'

export interface Applying {
  uid: ReleaseUid
  revision: number
}
/** What became of the objects. `made`: claim ids to the Swarm's ids, of all that are there now. */
export type Applied = { kind: 'applied'; made: ReadonlyMap<string, string> } | { kind: 'failed'; error: string }

export interface DeployInput {
  application: string
  release: string
  /** What is to be: the same text is the same content. */
  manifest: string
  /** Of every object, by the uid of the release. */
  claims(uid: ReleaseUid): readonly Claim[]
  /** What is on the Swarm, of whomever: names that differ in case only are refused (prune R80). */
  present: readonly NamedObject[]
  historyMax: number
  /** Makes or changes the objects; must do no harm when it is repeated. */
  apply(at: Applying): Promise<Applied>
  /** Applies again what is recorded already, without a revision of its own: what drifted is put right. */
  again?: true
}

export type Deployed =
  | { kind: 'deployed'; uid: ReleaseUid; revision: number; trimmed: readonly number[]; warning: string | null }
  | { kind: 'unchanged'; uid: ReleaseUid; revision: number }
  /** Nothing was done to any object; empty names are never in it. */
  | { kind: 'refused'; why: readonly string[] }
  /** The intent stands, and the next run goes on from it. */
  | { kind: 'failed'; uid: ReleaseUid; revision: number; error: string }
  | WriteFailure

/** One listing, all records. Null where it could not be read whole: nothing follows from it then. */
export const loadRecords = async (
  context: Pick<RecordsContext, 'swarm' | 'clusterId' | 'own' | 'signal'>,
): Promise<{ kind: 'read'; records: SwarmRecords } | { kind: 'unknown'; error: string }> => {
  const listed = await context.swarm.configs.list({}, context)
  if (listed.kind === 'incomplete') return { kind: 'unknown', error: listed.why }
  return { kind: 'read', records: readRecords(listed.objects, context.clusterId, context.own) }
}

/** Whose it is by its newest revision, and where it has none by its head. */
const controllerBehind = ({ stamp, head }: ReleaseRecords): string | null =>
  controllerOf(parseStamp(stamp ?? head?.state.stamp)?.owner ?? '')

/** A head that a crash left before its first intent, beside another of that name: nothing was made for it, so it may go. */
const isEmpty = (context: RecordsContext, one: ReleaseRecords): boolean =>
  one.head !== null && one.highest === 0 && one.folded === null && one.head.key.publicKey === context.signer.publicKey

const sameName = (records: SwarmRecords, release: string): ReleaseRecords[] =>
  records.releases.filter((one) => one.release.toLowerCase() === release.toLowerCase())

/** The records to deploy by, with a head. */
const findOrMake = async (
  context: RecordsContext,
  read: SwarmRecords,
  release: ReleaseName,
  owner: string,
): Promise<Write<ReleaseRecords>> => {
  const group = sameName(read, release)
  const [first, second] = group
  if (first !== undefined && second === undefined) {
    const controller = controllerBehind(first)
    if (controller !== context.controllerId)
      return refused(`the release ${release} is the controller ${controller ?? 'of nobody'}'s: adopt it first`)
    if (first.head === null) return refused(`the records of ${release} have no head: a person must look at ${first.uid}`)
    return { kind: 'done', value: first }
  }
  if (group.length > 1) {
    for (const one of group.filter((each) => isEmpty(context, each))) {
      if (one.head === null) continue
      const removed = await removeRecord(context, one.head)
      if (removed.kind !== 'done') return removed
    }
    return refused(`${group.map((one) => one.uid).join(' and ')} both are records of ${release}: nothing is deployed until one is left`)
  }
  const uid = letterFirst(releaseUidLength) as ReleaseUid
  const made = await createHead(context, { uid, release, owner })
  if (made.kind !== 'done') return made
  // Names of releases are not unique by themselves: who came at the same time is seen now, by both or by the later one.
  const again = await loadRecords(context)
  if (again.kind !== 'read') return again
  const rivals = sameName(again.records, release)
  const own = rivals.find((one) => one.uid === uid)
  if (own === undefined) return { kind: 'unknown', error: `the head of ${release} was made and is not listed` }
  if (rivals.length === 1) return { kind: 'done', value: own }
  const removed = await removeRecord(context, made.value)
  return removed.kind === 'done'
    ? refused(`another controller began a release "${release}" at the same moment: the next pass tries again`)
    : removed
}

/** The revision to work under: the current one if it says the same, a begun one gone on with, or a new intent. */
const revisionFor = async (
  context: RecordsContext,
  records: ReleaseRecords,
  intent: Intent,
): Promise<Write<{ revision: RevisionRecord; recorded: boolean }>> => {
  const newest = newestOf(records.revisions)
  // One with a higher number that can't be read may be newer: then a new one is written, above both.
  if (newest !== null && newest.number === records.highest && saysSame(newest, intent))
    return { kind: 'done', value: { revision: newest, recorded: newest.state === 'committed' } }
  const begun = await beginRevision(context, records, intent)
  return begun.kind === 'done' ? { kind: 'done', value: { revision: begun.value, recorded: false } } : begun
}

const replaced = (records: ReleaseRecords, revision: RevisionRecord): ReleaseRecords => ({
  ...records,
  highest: Math.max(records.highest, revision.number),
  revisions: [...records.revisions.filter((one) => one.number !== revision.number), revision].toSorted((a, b) => a.number - b.number),
})

export const deployRecorded = async (context: RecordsContext, input: DeployInput): Promise<Deployed> => {
  const loaded = await loadRecords(context)
  if (loaded.kind !== 'read') return loaded
  const release = input.release as ReleaseName
  const owner = ownerId(context.controllerId, input.application)
  const known = sameName(loaded.records, release).find((one) => one.release === release)
  const why = nameProblems({
    release,
    // Names do not depend on the uid; claim ids do.
    planned: input.claims(known?.uid ?? ('aaaaaaaaaaaa' as ReleaseUid)),
    releases: loaded.records.releases.map((one) => one.release),
    present: input.present,
  })
  if (why.length > 0) return { kind: 'refused', why }
  const found = await findOrMake(context, loaded.records, release, owner)
  if (found.kind === 'refused') return { kind: 'refused', why: [found.why] }
  if (found.kind !== 'done') return found
  let records = found.value
  const intent: Intent = { owner, manifest: input.manifest, claims: input.claims(records.uid) }
  const begun = await revisionFor(context, records, intent)
  if (begun.kind === 'refused') return { kind: 'refused', why: [begun.why] }
  if (begun.kind !== 'done') return begun
  let { revision } = begun.value
  const { uid } = records
  records = replaced(records, revision)
  if (!begun.value.recorded || input.again === true) {
    const applied = await input
      .apply({ uid, revision: revision.number })
      .catch((error: unknown): Applied => ({ kind: 'failed', error: errorText(error) }))
    if (applied.kind === 'failed') return { kind: 'failed', uid, revision: revision.number, error: applied.error }
    const committed = await commitRevision(context, revision, applied.made)
    if (committed.kind !== 'done') return committed
    revision = committed.value
    records = replaced(records, revision)
  }
  const settled = await settleHead(context, records)
  if (settled.kind !== 'done') return settled
  if (begun.value.recorded && input.again !== true) return { kind: 'unchanged', uid, revision: revision.number }
  const trimmed = await trimHistory(context, { ...records, head: settled.value }, input.historyMax)
  // What is deployed is deployed: the next one trims (prune R39).
  return trimmed.kind === 'done'
    ? { kind: 'deployed', uid, revision: revision.number, trimmed: trimmed.value, warning: null }
    : { kind: 'deployed', uid, revision: revision.number, trimmed: [], warning: 'why' in trimmed ? trimmed.why : trimmed.error }
}
