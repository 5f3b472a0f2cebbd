/** From a recorded identity to the box that it names, or the proof that there is none. */
import type { ScopeId } from '../../model/ids.ts'
import type { Contradiction, ResourceIdentity } from '../contract.ts'
import type { Api } from './api.ts'
import { isEngineId, parsePartName, refOfNativeId } from './identity.ts'
import { type Box, contradictionOf, lookAt } from './look.ts'
import { scopeNow } from './scope.ts'
import { engineLocation, ownerKind } from './words.ts'

export type Located =
  | { kind: 'box'; box: Box; contradictions: Contradiction[] }
  | { kind: 'absent'; proof: string; contradictions: Contradiction[] }
  /** What is there is not what the identity names. */
  | { kind: 'replaced'; why: string }
  | { kind: 'unknown'; error: string }

interface Named {
  ref: string
  network: string
  volume: string | undefined
  container: string | undefined
}

/** Null for what this provider never wrote. */
const named = ({ location, kind, nativeId, immutableId, facts }: ResourceIdentity): Named | null => {
  const ref = refOfNativeId(nativeId)
  const { volume, container } = facts
  if (location !== engineLocation || kind !== ownerKind || ref === null || !isEngineId(immutableId)) return null
  if (volume !== undefined && parsePartName(volume)?.nativeId !== nativeId) return null
  if (container !== undefined && !isEngineId(container)) return null
  return { ref, network: immutableId, volume, container }
}

/** Every recorded part by itself: a listing by label shows nothing that has lost its way into one. */
const leftOf = async (api: Api, { network, volume, container }: Named, signal: AbortSignal): Promise<string | null> => {
  const [net, vol, con] = await Promise.all([
    api.network(network, signal),
    volume === undefined ? null : api.volume(volume, signal),
    container === undefined ? null : api.container(container, signal),
  ])
  if (net !== null) return `network ${net.Name}`
  if (vol !== null) return `volume ${vol.Name}`
  return con === null ? null : `container ${con.Name.replace(/^\//, '')}`
}

/** @throws where a call fails: nothing is known then */
export const locate = async (api: Api, resource: ResourceIdentity, signal: AbortSignal): Promise<Located> => {
  const name = named(resource)
  if (name === null) return { kind: 'replaced', why: `${resource.nativeId} (${resource.immutableId}) is no identity of a box` }
  const known = name.container === undefined ? [] : [name.container]
  const { boxes, strays } = await lookAt(api, name.ref, signal, known)
  const box = boxes.find((one) => one.network === name.network)
  const contradictions = strays.map(contradictionOf)
  const scope = await sameEngine(api, resource.scope, signal)
  if (scope !== null) return { kind: 'unknown', error: scope }
  if (box === undefined) {
    const left = await leftOf(api, name, signal)
    if (left !== null) return { kind: 'replaced', why: `${left} is there, and is not the box ${resource.nativeId}` }
    // Asked last, of what was read before it: an Engine in the place of another proves nothing.
    const still = await sameEngine(api, resource.scope, signal)
    if (still !== null) return { kind: 'unknown', error: still }
    return {
      kind: 'absent',
      proof: `the Engine answers "not found" for network, volume and container of ${resource.nativeId}`,
      contradictions,
    }
  }
  const token = resource.facts['attemptToken']
  if (
    box.nativeId !== resource.nativeId ||
    (token !== undefined && token !== box.token) ||
    (name.volume ?? box.volumeName) !== box.volumeName
  )
    return { kind: 'replaced', why: `network ${name.network} is of the box ${box.nativeId}, made by another attempt` }
  if (name.container === undefined || box.container === null || box.container.Id === name.container)
    return { kind: 'box', box, contradictions }
  // The recorded container is in no listing of this box: another one stands in its place.
  const stray = `container ${box.container.Id} carries everything of ${resource.nativeId} and is not the one that was made`
  if ((await api.container(name.container, signal)) !== null)
    return { kind: 'replaced', why: `container ${name.container} is not of the box ${resource.nativeId}` }
  return {
    kind: 'box',
    box: { ...box, container: null },
    contradictions: [
      ...contradictions,
      { nativeId: `container:${box.container.Id.slice(0, 12)}`, location: engineLocation, ref: box.ref, why: stray },
    ],
  }
}

/** Null: it is; else why nothing of the resource can be known here. */
const sameEngine = async (api: Api, expected: ScopeId, signal: AbortSignal): Promise<string | null> => {
  const { scope } = await scopeNow(api, signal)
  return scope === expected ? null : `the Engine that answers is ${scope}, and the box is one of ${expected}`
}
