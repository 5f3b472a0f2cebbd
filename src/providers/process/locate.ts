/** From a recorded identity to the box that it names, or the proof that there is none. */
import type { ResourceIdentity } from '../contract.ts'
import { type Box, type BoxRecord, type ReadBox, boxFolder, readBox } from './folder.ts'
import { type InitFacts, immutableIdOf, initState, isOurKind, parseImmutableId, parseNativeId, seenFromElsewhere } from './identity.ts'
import { localLocation, ownerKind } from './words.ts'

export type Located =
  /** `folder` is false when only the process is left. */
  | { kind: 'box'; box: Box; folder: boolean }
  | { kind: 'absent'; proof: string }
  /** What is there is not what the identity names. */
  | { kind: 'replaced'; why: string }
  | { kind: 'unknown'; error: string }

/** A box whose folder was deleted or emptied by other hands: what the recorded identity says stands for it. */
const withoutRecord = (dataFolder: string, resource: ResourceIdentity, init: InitFacts, ref: string, attemptNumber: number): Box => ({
  nativeId: resource.nativeId,
  folder: boxFolder(dataFolder, resource.nativeId),
  removing: false,
  init,
  record: {
    version: 1,
    ref,
    attemptNumber,
    installation: '',
    attemptToken: resource.facts['attemptToken'] ?? '',
    leaseID: null,
    name: '',
    project: '',
    labels: {},
    createdAt: '',
    mode: init.inode === null ? 'session' : 'namespace',
    userNamespace: resource.facts['userNamespace'] === 'true',
    bootID: init.boot,
    ...(resource.facts['observer'] === undefined ? {} : { observer: resource.facts['observer'] }),
  },
})

const locateUnstarted = (stored: ReadBox, token: string): Located => {
  if (stored.kind === 'none') return { kind: 'absent', proof: 'its folder is gone, and no box starts without one' }
  if (stored.kind === 'damaged') return { kind: 'unknown', error: stored.why }
  // Its first process may have started since; the token is the same, so it is the same box.
  return stored.box.record.attemptToken === token
    ? { ...stored, folder: true }
    : { kind: 'replaced', why: `${stored.box.folder} belongs to another attempt` }
}

/**
 * The first process's own facts decide; files in the folder can be changed by what runs in the box. Throws when the folder can't be read.
 */
export const locate = async (dataFolder: string, own: Pick<ResourceIdentity, 'scope'>, resource: ResourceIdentity): Promise<Located> => {
  if (!isOurKind(resource, { ...own, location: localLocation, kind: ownerKind })) {
    return { kind: 'replaced', why: `${resource.kind} ${resource.nativeId} of ${resource.scope} is not a box of ${own.scope}` }
  }
  const name = parseNativeId(resource.nativeId)
  const identity = parseImmutableId(resource.immutableId)
  if (name === null || identity === null)
    return { kind: 'replaced', why: `${resource.nativeId} (${resource.immutableId}) is no identity of a box` }
  const stored = await readBox(dataFolder, resource.nativeId)
  const observer = resource.facts['observer'] ?? (stored.kind === 'box' ? stored.box.record.observer : undefined)
  const started = identity.kind === 'started' ? identity.init.boot : stored.kind === 'box' ? stored.box.record.bootID : ''
  const elsewhere = seenFromElsewhere({ observer, bootID: started })
  if (elsewhere !== null) return { kind: 'unknown', error: elsewhere }
  if (identity.kind === 'unstarted') return locateUnstarted(stored, identity.token)

  const recordedToken = stored.kind === 'box' ? stored.box.record.attemptToken : null
  const token = resource.facts['attemptToken'] ?? recordedToken
  const state = initState(identity.init, { ref: name.ref, token })
  if (state === 'foreign') return { kind: 'replaced', why: `process ${identity.init.pid} is not the first process of ${resource.nativeId}` }
  if (stored.kind === 'box') {
    const { init } = stored.box
    const same = init === null ? recordedToken === token : immutableIdOf(init) === resource.immutableId
    if (same || state !== 'dead') {
      // What the coordinator recorded at creation stands above a file that the box can write.
      const userNamespace = resource.facts['userNamespace']
      const record: BoxRecord = {
        ...stored.box.record,
        attemptToken: token ?? stored.box.record.attemptToken,
        ...(userNamespace === undefined ? {} : { userNamespace: userNamespace === 'true' }),
        ...(observer === undefined ? {} : { observer }),
      }
      return { kind: 'box', box: { ...stored.box, record, init: identity.init }, folder: true }
    }
    if (init === null) return { kind: 'replaced', why: `${resource.nativeId} belongs to another attempt` }
    return { kind: 'replaced', why: `${resource.nativeId} is now the box ${immutableIdOf(init)}` }
  }
  if (stored.kind === 'none' && state === 'dead') return { kind: 'absent', proof: 'its first process and its folder are gone' }
  const box = withoutRecord(dataFolder, resource, identity.init, name.ref, name.attemptNumber)
  return { kind: 'box', box, folder: stored.kind === 'damaged' }
}
