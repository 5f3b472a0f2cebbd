/**
 * The three ways in which a record changes: made, relabelled as the version that was read, taken away. An answer that did not come is looked up before
 * anything is concluded from it, so each may be repeated after a crash.
 */
import type { FileSpec, Labels, Swarm, SwarmObject } from '../../providers/swarm/index.ts'
import type { KnownKey, Signer } from './keys.ts'

export interface RecordsContext {
  swarm: Swarm
  clusterId: string
  controllerId: string
  signer: Signer
  /** The keys that our own database knows. */
  own: readonly KnownKey[]
  /** Of the controller, as its lease says: what a newer one wrote is not written over (case A4). */
  epoch: number
  /** Whether the lease on the Swarm still is ours; asked before each write. */
  stands(): boolean
  /** ms, of the store (I4). */
  now(): Promise<number>
  signal: AbortSignal
}

export const ownKey = ({ signer, controllerId }: RecordsContext): KnownKey => ({
  publicKey: signer.publicKey,
  controllerId,
  standing: 'own',
})

export type WriteFailure =
  /** Somebody else changed it meanwhile, or the lease is lost: nothing was written by us. */
  | { kind: 'lost'; why: string }
  /** The Swarm will not have it: nothing was written. */
  | { kind: 'refused'; why: string }
  /** It is not known whether it was written. */
  | { kind: 'unknown'; error: string }
export type Write<T> = { kind: 'done'; value: T } | WriteFailure

const done = <T>(value: T): Write<T> => ({ kind: 'done', value })
export const lost = (why: string): WriteFailure => ({ kind: 'lost', why })
export const refused = (why: string): WriteFailure => ({ kind: 'refused', why })

const leaseLost = lost('the lease of the controller on the Swarm is not held any more')

export interface NewRecord {
  name: string
  labels: Labels
  base64: string
}

/** What is there under that name is what was to be written: the answer was lost, or an earlier run wrote it. */
const isSame = (found: SwarmObject<FileSpec>, wanted: NewRecord): boolean => found.name === wanted.name && found.spec.Data === wanted.base64

export const createRecord = async (context: RecordsContext, wanted: NewRecord): Promise<Write<SwarmObject<FileSpec>>> => {
  if (!context.stands()) return leaseLost
  const { configs } = context.swarm
  const made = await configs.create({ Name: wanted.name, Labels: wanted.labels, Data: wanted.base64 }, context)
  if (made.kind === 'rejected') return refused(made.why)
  const found = await configs.inspect(made.kind === 'created' ? made.id : wanted.name, context)
  if (found.kind === 'present')
    return isSame(found.object, wanted) ? done(found.object) : lost(`there is another config called ${found.object.name}`)
  if (made.kind === 'taken') return lost(made.why)
  return { kind: 'unknown', error: made.kind === 'uncertain' ? made.error : `the record ${wanted.name} was made and can not be read` }
}

const sameLabels = (a: Labels, b: Labels): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([key, value]) => b[key] === value)

export interface Relabelled {
  configId: string
  name: string
  version: number
}

/** As the version that was read, or not at all (docker facts 3.5). */
export const relabelRecord = async (context: RecordsContext, record: Relabelled, labels: Labels): Promise<Write<SwarmObject<FileSpec>>> => {
  if (!context.stands()) return leaseLost
  const { configs } = context.swarm
  const updated = await configs.update(record.configId, record.version, { Name: record.name, Labels: labels }, context)
  if (updated.kind === 'rejected') return refused(updated.why)
  if (updated.kind === 'absent') return lost(`the record ${record.name} is not there any more`)
  const found = await configs.inspect(record.configId, context)
  if (found.kind === 'present' && sameLabels(found.object.labels, labels)) return done(found.object)
  if (updated.kind === 'uncertain') return { kind: 'unknown', error: updated.error }
  return found.kind === 'unknown' ? { kind: 'unknown', error: found.error } : lost(`the record ${record.name} was changed meanwhile`)
}

/** By its id: what is recreated under the name has another. */
export const removeRecord = async (context: RecordsContext, record: { configId: string; name: string }): Promise<Write<null>> => {
  if (!context.stands()) return leaseLost
  const removed = await context.swarm.configs.remove(record.configId, context)
  if (removed.kind === 'gone' || removed.kind === 'accepted') return done(null)
  if (removed.kind === 'blocked') return refused(`the record ${record.name} is in use: ${removed.by}`)
  if (removed.kind === 'denied') return refused(removed.permission)
  const found = await context.swarm.configs.inspect(record.configId, context)
  if (found.kind === 'absent') return done(null)
  return { kind: 'unknown', error: 'error' in removed ? removed.error : `the record ${record.name} is there still` }
}
