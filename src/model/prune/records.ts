/** What the records of releases hold, and how what was read is taken apart: a record is whole or it is none (prune 7.1, R78). */
import { type Json, canonical } from './canonical.ts'
import { type Claim, type ClaimObjects, type HeldClaim, isSwarmKind } from './claims.ts'
import { type ReleaseName, type ReleaseUid, isReleaseUid } from './record-names.ts'

/** Of the format; another is not read, and not touched. */
export const recordVersion = 1

/** Measured (docker facts 3.3): an Engine takes 1,023,999 bytes of data, older ones half of that; and at least 300 kB in a label. */
export const mostDataBytes = 500_000
export const mostLabelBytes = 300_000
/** A record that is larger when unpacked was not written by us. */
export const mostPlainBytes = 16_000_000

/** Fixed at creation. */
export interface HeadBody {
  uid: ReleaseUid
  clusterId: string
  release: ReleaseName
  /** The controller that made it. */
  createdBy: string
  /** ms. */
  createdAt: number
}

export interface RevisionBody {
  uid: ReleaseUid
  clusterId: string
  release: ReleaseName
  /** The owner id of its application: with the release, the full stamp (prune R2). */
  owner: string
  number: number
  epoch: number
  /** ms. */
  createdAt: number
  /** SHA-256 of the manifest, in hex. */
  manifestHash: string
  manifest: string
  claims: readonly Claim[]
  carried: readonly HeldClaim[]
}

export interface ClaimsBody {
  uid: ReleaseUid
  clusterId: string
  release: ReleaseName
}

export interface AppSetSource {
  /** Of repository, path and branch; changes when the controller is pointed at another set. */
  fingerprint: string
  /** For people; without credentials. */
  source: string
}

export interface ControllerBody {
  controllerId: string
  instanceUid: string
  /** SPKI, DER, base64. */
  publicKey: string
  clusterId: string
  appSet: AppSetSource
  /** ms. */
  createdAt: number
}

export interface Bodies {
  head: HeadBody
  revision: RevisionBody
  claims: ClaimsBody
  controller: ControllerBody
}

/** A release that is being taken back is `removing`; what could not be taken is `residual` (prune R40). */
export type HeadState = 'active' | 'removing' | 'residual'
export const headStates: readonly HeadState[] = ['active', 'removing', 'residual']

/** What changes of a head: in its labels, moved by the version that was read. */
export interface HeadLabels {
  /** The full stamp. */
  stamp: string
  state: HeadState
  /** The current revision; 0: none was committed yet. */
  revision: number
  epoch: number
}

/** What changes of a revision. */
export interface RevisionLabels {
  state: 'intent' | 'committed'
  objects: ClaimObjects
}

export const envelopeText = (type: keyof Bodies, body: unknown, key: string): string =>
  canonical({ version: recordVersion, type, key, body: body as Json })

export const headLabelsText = (body: HeadBody, labels: HeadLabels): string =>
  canonical({ type: 'head-labels', uid: body.uid, clusterId: body.clusterId, ...labels })

/** @param data SHA-256 of the record's bytes: labels of one revision are never another's */
export const revisionLabelsText = (body: RevisionBody, data: string, labels: RevisionLabels): string =>
  canonical({ type: 'revision-labels', uid: body.uid, clusterId: body.clusterId, number: body.number, data, ...labels })

export const foldedText = (body: ClaimsBody, folded: string): string =>
  canonical({ type: 'claims-labels', uid: body.uid, clusterId: body.clusterId, folded })

export const reclaimText = (body: ControllerBody, reclaim: { epoch: number; instanceUid: string; publicKey: string }): string =>
  canonical({
    type: 'reclaim',
    controllerId: body.controllerId,
    clusterId: body.clusterId,
    epoch: reclaim.epoch,
    instanceUid: reclaim.instanceUid,
    publicKey: reclaim.publicKey,
  })

// --- taking apart -------------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>
export const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isHash = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

const isClaim = (value: unknown): value is Claim => {
  const { id, kind, name } = fieldsOf(value)
  return isText(id) && isSwarmKind(kind) && isText(name)
}
const isHeld = (value: unknown): value is HeldClaim => {
  const { object } = fieldsOf(value)
  return isClaim(value) && (object === null || isText(object))
}
const isRelease = ({ uid, clusterId, release }: Fields): boolean =>
  typeof uid === 'string' && isReleaseUid(uid) && isText(clusterId) && isText(release)

const parsers: { [T in keyof Bodies]: (fields: Fields) => boolean } = {
  head: (f) => isRelease(f) && isText(f['createdBy']) && isCount(f['createdAt']),
  revision: (f) =>
    isRelease(f) &&
    isText(f['owner']) &&
    isCount(f['number']) &&
    f['number'] > 0 &&
    isCount(f['epoch']) &&
    isCount(f['createdAt']) &&
    isHash(f['manifestHash']) &&
    typeof f['manifest'] === 'string' &&
    Array.isArray(f['claims']) &&
    f['claims'].every(isClaim) &&
    Array.isArray(f['carried']) &&
    f['carried'].every(isHeld),
  claims: isRelease,
  controller: (f) =>
    isText(f['controllerId']) &&
    isText(f['instanceUid']) &&
    isText(f['publicKey']) &&
    isText(f['clusterId']) &&
    isText(fieldsOf(f['appSet'])['fingerprint']) &&
    isText(fieldsOf(f['appSet'])['source']) &&
    isCount(f['createdAt']),
}

/** Null: it is none of that type. */
export const parseBody = <T extends keyof Bodies>(type: T, value: unknown): Bodies[T] | null =>
  parsers[type](fieldsOf(value)) ? (value as Bodies[T]) : null

/** Null: not a number as it is written in a label. */
export const countIn = (text: string | undefined): number | null =>
  text !== undefined && /^(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : null

/** Null: no such list. Only claims of the revision itself may stand in it. */
export const parseObjects = (value: unknown, body: RevisionBody): ClaimObjects | null => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const own = new Set([...body.claims, ...body.carried].map((claim) => claim.id))
  const entries = Object.entries(value)
  return entries.every(([id, object]) => own.has(id) && typeof object === 'string') ? (Object.fromEntries(entries) as ClaimObjects) : null
}

export const parseFolded = (value: unknown): HeldClaim[] | null => (Array.isArray(value) && value.every(isHeld) ? value : null)
