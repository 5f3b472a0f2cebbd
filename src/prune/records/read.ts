/**
 * Everything that a Swarm has on record, from one listing of its configs. A record is whole, signed and in its place, or it is poison: reported, left as
 * it is, and no reason to stop anything but the deletion of the release that it may be of (prune R78).
 */
import { type HeldClaim, liveClaims } from '../../model/prune/claims.ts'
import { type Registration, keysOf } from '../../model/prune/controller.ts'
import { newestOf } from '../../model/prune/history.ts'
import { controllerOf, parseStamp, stampOf } from '../../model/prune/owner.ts'
import { type ParsedName, type ReleaseName, type ReleaseUid, parseRecordName, pretends } from '../../model/prune/record-names.ts'
import type { ClaimsBody, HeadBody, HeadLabels, RevisionBody, RevisionLabels } from '../../model/prune/records.ts'
import type { FileSpec, SwarmObject } from '../../providers/swarm/index.ts'
import { type Opened, open, verifyOpened } from './envelope.ts'
import { type Keys, type KnownKey, keysBy } from './keys.ts'
import { checkRecordLabel, readFolded, readHeadLabels, readRevisionLabels } from './labels.ts'
import { type Poison, PoisonError } from './poison.ts'
import { readRegistration } from './registration.ts'

export type Config = SwarmObject<FileSpec>

/** Where a record is: what a change of it is bound to. */
interface Placed {
  configId: string
  name: string
  version: number
  data: string
}
export interface HeadRecord extends Placed {
  body: HeadBody
  state: HeadLabels
  key: KnownKey
}
export interface RevisionRecord extends Placed, RevisionLabels {
  body: RevisionBody
  number: number
  hash: string
  key: KnownKey
}
export interface FoldedRecord extends Placed {
  body: ClaimsBody
  claims: HeldClaim[]
  key: KnownKey
}

export type DoubtCode = 'unreadable-record' | 'missing-head' | 'missing-revision' | 'same-name' | 'handover' | 'foreign-key'
/** Why nothing of a release may be deleted on the word of its records. */
export interface Doubt {
  code: DoubtCode
  why: string
}

export interface ReleaseRecords {
  uid: ReleaseUid
  release: ReleaseName
  head: HeadRecord | null
  /** In the order of their numbers. */
  revisions: RevisionRecord[]
  folded: FoldedRecord | null
  /** The highest number that any record of it has, readable or not. */
  highest: number
  /** Of the newest revision: what says whose the release is today (prune R8). */
  stamp: string | undefined
  /** Empty: its records are whole, and of keys that our own database knows. */
  doubts: Doubt[]
}

export interface SwarmRecords {
  clusterId: string
  /** By name, then uid. */
  releases: ReleaseRecords[]
  controllers: Registration[]
  poison: Poison[]
}

const placed = (config: Config): Placed => ({
  configId: config.id,
  name: config.name,
  version: config.version ?? 0,
  data: config.spec.Data ?? '',
})

type ReleaseType = 'head' | 'revision' | 'claims'

/** In its place: the Swarm, the uid and the number that it was written for (cases prune 4; prune 7.2). @throws PoisonError */
const openAt = <T extends ReleaseType>(config: Config, type: T, uid: ReleaseUid, clusterId: string): Opened<T> => {
  checkRecordLabel(config.labels, type)
  const opened = open(type, config.spec.Data)
  if (opened.body.clusterId !== clusterId) throw new PoisonError('other-cluster', `it was written for the Swarm ${opened.body.clusterId}`)
  if (opened.body.uid !== uid)
    throw new PoisonError('copied', `it was written for the release ${opened.body.release} with the uid ${opened.body.uid}`)
  return opened
}

/** A controller's key speaks for that controller alone. @throws PoisonError */
const speaksFor = (key: KnownKey, controllerId: string | null): void => {
  if (key.controllerId !== controllerId)
    throw new PoisonError('wrong-controller', `the controller ${key.controllerId} signed it, and it names ${controllerId ?? 'none'}`)
}

const readHead = (config: Config, uid: ReleaseUid, clusterId: string, keys: Keys): HeadRecord => {
  const opened = openAt(config, 'head', uid, clusterId)
  speaksFor(verifyOpened('head', opened, keys), opened.body.createdBy)
  const { state, key } = readHeadLabels(opened.body, config.labels, keys)
  const stamp = parseStamp(state.stamp)
  if (stamp?.release !== opened.body.release) throw new PoisonError('bad-labels', 'its stamp names another release')
  speaksFor(key, controllerOf(stamp.owner))
  return { ...placed(config), body: opened.body, state, key }
}

const readRevision = (config: Config, uid: ReleaseUid, number: number, clusterId: string, keys: Keys): RevisionRecord => {
  const opened = openAt(config, 'revision', uid, clusterId)
  const { body, hash } = opened
  if (body.number !== number) throw new PoisonError('copied', `it was written as revision ${body.number}`)
  const key = verifyOpened('revision', opened, keys)
  speaksFor(key, controllerOf(body.owner))
  return { ...placed(config), body, number, hash, key, ...readRevisionLabels(body, hash, config.labels, keys) }
}

interface Found {
  heads: Map<ReleaseUid, HeadRecord>
  revisions: Map<ReleaseUid, RevisionRecord[]>
  folded: Map<ReleaseUid, FoldedRecord>
  highest: Map<ReleaseUid, number>
}

const readOne = (
  config: Config,
  parsed: Exclude<ParsedName, { type: 'controller' }>,
  clusterId: string,
  keys: Keys,
  found: Found,
): void => {
  const { uid } = parsed
  if (parsed.type === 'head') found.heads.set(uid, readHead(config, uid, clusterId, keys))
  else if (parsed.type === 'revision') {
    const read = readRevision(config, uid, parsed.number, clusterId, keys)
    found.revisions.set(uid, [...(found.revisions.get(uid) ?? []), read])
  } else {
    const opened = openAt(config, 'claims', uid, clusterId)
    verifyOpened('claims', opened, keys)
    found.folded.set(uid, { ...placed(config), body: opened.body, ...readFolded(opened.body, config.labels, keys) })
  }
}

/**
 * @param configs all of the Swarm, from one complete listing
 * @param own the keys that our own database knows, also of controllers that a person adopted from
 */
export const readRecords = (configs: readonly Config[], clusterId: string, own: readonly KnownKey[]): SwarmRecords => {
  const poison: Poison[] = []
  const controllers: Registration[] = []
  const rest: { config: Config; parsed: Exclude<ParsedName, { type: 'controller' }> }[] = []
  const guarded = (config: Config, parsed: ParsedName | null, body: () => void): void => {
    try {
      body()
    } catch (error) {
      if (!(error instanceof PoisonError)) throw error
      const uid = parsed !== null && parsed.type !== 'controller' ? parsed.uid : null
      poison.push({
        code: error.code,
        id: config.id,
        name: config.name,
        uid,
        why: `the record ${config.name} is not read: ${error.message}`,
      })
    }
  }
  const found: Found = { heads: new Map(), revisions: new Map(), folded: new Map(), highest: new Map() }
  for (const config of configs.filter((one) => pretends(one)).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const parsed = parseRecordName(config.name)
    if (parsed?.type === 'revision') found.highest.set(parsed.uid, Math.max(parsed.number, found.highest.get(parsed.uid) ?? 0))
    guarded(config, parsed, () => {
      if (parsed === null) throw new PoisonError('bad-name', 'no record has such a name')
      if (parsed.type === 'controller') controllers.push(readRegistration(config, clusterId))
      else rest.push({ config, parsed })
    })
  }
  const registered = controllers.flatMap((one) =>
    keysOf(one).map((publicKey): KnownKey => ({ publicKey, controllerId: one.body.controllerId, standing: 'registered' })),
  )
  const keys = keysBy([...own, ...registered])
  for (const { config, parsed } of rest) guarded(config, parsed, () => readOne(config, parsed, clusterId, keys, found))
  return { clusterId, releases: releasesOf(found, poison), controllers, poison }
}

const releasesOf = (found: Found, poison: readonly Poison[]): ReleaseRecords[] => {
  const uids = new Set([...found.heads.keys(), ...found.revisions.keys(), ...found.folded.keys()])
  const releases = [...uids].map((uid): ReleaseRecords => {
    const head = found.heads.get(uid) ?? null
    const revisions = (found.revisions.get(uid) ?? []).toSorted((a, b) => a.number - b.number)
    const folded = found.folded.get(uid) ?? null
    const newest = newestOf(revisions)
    const release = (head ?? newest ?? folded)?.body.release as ReleaseName
    const stamp = newest === null ? undefined : stampOf(newest.body.owner, newest.body.release)
    const read = { uid, release, head, revisions, folded, highest: found.highest.get(uid) ?? 0, stamp }
    return { ...read, doubts: doubtsOf(read, poison) }
  })
  const names = Map.groupBy(releases, (one) => one.release.toLowerCase())
  for (const group of names.values()) {
    if (group.length < 2) continue
    const why = `${group.map((one) => `${one.release} (${one.uid})`).join(' and ')} have records under one name`
    for (const one of group) one.doubts.push({ code: 'same-name', why })
  }
  return releases.toSorted((a, b) => (a.release < b.release ? -1 : a.release > b.release ? 1 : a.uid < b.uid ? -1 : 1))
}

const doubtsOf = (read: Omit<ReleaseRecords, 'doubts'>, poison: readonly Poison[]): Doubt[] => {
  const { uid, head, revisions, folded, stamp } = read
  const doubts: Doubt[] = poison.filter((one) => one.uid === uid).map((one) => ({ code: 'unreadable-record', why: one.why }))
  const blame = (code: DoubtCode, why: string): void => void doubts.push({ code, why })
  if (head === null) blame('missing-head', `the release ${read.release} has records and no head`)
  else {
    if (revisions.some((one) => one.body.release !== head.body.release)) blame('same-name', `the records of ${uid} name several releases`)
    if (head.state.revision > 0 && head.state.state === 'active' && !revisions.some((one) => one.number === head.state.revision))
      blame('missing-revision', `the revision ${head.state.revision} of ${read.release}, which its head names, is not there`)
    if (stamp !== undefined && stamp !== head.state.stamp)
      blame('handover', `the head of ${read.release} says ${head.state.stamp}, its newest revision ${stamp}`)
  }
  const foreign = [head, folded, ...revisions].find((one) => one?.key.standing === 'registered')
  if (foreign) blame('foreign-key', `the controller ${foreign.key.controllerId} signed records of ${read.release}, and its key is not ours`)
  return doubts
}

/** What the release claims by all that is readable of it. */
export const claimsOf = ({ revisions, folded }: Pick<ReleaseRecords, 'revisions' | 'folded'>): HeldClaim[] =>
  liveClaims(
    revisions.map((one) => ({ number: one.number, claims: one.body.claims, carried: one.body.carried, objects: one.objects })),
    folded?.claims ?? [],
  )
