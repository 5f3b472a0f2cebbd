/** What records on a Swarm are called, and the labels that they carry (prune 7.1, 7.3); those of objects are in `swarm/stamp.ts`. */
declare const brand: unique symbol
/** Names one release for ever: random, 12 characters, the first a letter. */
export type ReleaseUid = string & { readonly [brand]: 'ReleaseUid' }
export type ReleaseName = string & { readonly [brand]: 'ReleaseName' }

const uidText = '[a-z][a-z0-9]{11}'
const uidPattern = new RegExp(`^${uidText}$`)
export const isReleaseUid = (text: string): text is ReleaseUid => uidPattern.test(text)
export const releaseUidLength = 12

export const recordLabels = {
  /** What kind of record it is; on records alone. */
  record: 'leasehold.record',
  /** The full stamp. Absent: unowned; never blank (prune R2). */
  owner: 'leasehold.owner',
  state: 'leasehold.state',
  revision: 'leasehold.revision',
  epoch: 'leasehold.epoch',
  /** Of a revision: what it still claims, with the ids of what was made. */
  objects: 'leasehold.objects',
  /** Of folded claims: all of them. */
  folded: 'leasehold.folded',
  key: 'leasehold.key',
  signature: 'leasehold.signature',
  // Of a controller's registration.
  holder: 'leasehold.holder',
  beat: 'leasehold.beat',
  appSet: 'leasehold.appset',
  source: 'leasehold.source',
  reclaims: 'leasehold.reclaims',
} as const

export type RecordType = 'head' | 'revision' | 'claims' | 'controller'

export const recordName = {
  head: (uid: ReleaseUid) => `leasehold.rel.${uid}`,
  revision: (uid: ReleaseUid, number: number) => `leasehold.rev.${uid}.${number}`,
  claims: (uid: ReleaseUid) => `leasehold.claims.${uid}`,
  controller: (controllerId: string) => `leasehold.ctl.${controllerId}`,
} as const

export type ParsedName =
  | { type: 'head' | 'claims'; uid: ReleaseUid }
  | { type: 'revision'; uid: ReleaseUid; number: number }
  | { type: 'controller'; controllerId: string }

const release = new RegExp(`^leasehold\\.(rel|claims)\\.(${uidText})$`)
const revision = new RegExp(`^leasehold\\.rev\\.(${uidText})\\.([1-9][0-9]{0,8})$`)
const controller = /^leasehold\.ctl\.([A-Za-z0-9._-]*[A-Za-z0-9])$/

/** Exactly, and with case: what is only like one of ours is none (prune R78). */
export const parseRecordName = (name: string): ParsedName | null => {
  const [, which, of] = release.exec(name) ?? []
  if (of !== undefined) return { type: which === 'rel' ? 'head' : 'claims', uid: of as ReleaseUid }
  const [, uid, number] = revision.exec(name) ?? []
  if (uid !== undefined) return { type: 'revision', uid: uid as ReleaseUid, number: Number(number) }
  const id = controller.exec(name)?.[1]
  return id === undefined ? null : { type: 'controller', controllerId: id }
}

/** Whether a config pretends to be a record, by its name or by its label: then it is read as one, or reported (prune R78). */
export const pretends = (config: { name: string; labels: Readonly<Record<string, string>> }): boolean =>
  /^leasehold\./i.test(config.name) || Object.hasOwn(config.labels, recordLabels.record)
