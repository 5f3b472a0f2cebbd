/**
 * Everything on an Engine that carries a ref, put together into boxes. What carries one and is no part of a box, a copy of labels say, is a stray: reported,
 * never touched.
 */
import type { ScopeId } from '../../model/ids.ts'
import type { Contradiction, FoundResource, ListedResource, OwnershipTags } from '../contract.ts'
import type { Api, Labels, ListedContainer, Network, Volume } from './api.ts'
import { type PartName, agree, identityOf, isEngineId, parsePartName } from './identity.ts'
import { type BoxState, engineLocation, isBoxState, note, states, tag } from './words.ts'

export interface Box {
  nativeId: string
  ref: string
  token: string
  /** The id of the network that makes it, also when that is gone. */
  network: string
  /** Those of its name that are there: one, or more where a create was interrupted in a race. */
  networks: Network[]
  volume: Volume | null
  volumeName: string
  container: ListedContainer | null
}

export interface Stray {
  nativeId: string
  what: string
  labels: Labels
}

export interface Look {
  boxes: Box[]
  strays: Stray[]
}

const volumesOf = ({ Mounts: mounts }: Pick<ListedContainer, 'Mounts'>): string[] =>
  (mounts ?? []).flatMap((mount) => (mount.Type === 'volume' && mount.Name !== undefined ? [mount.Name] : []))

/** The name of its volume, if it was made with volume and network of one box and its labels say the same. */
export const madeWith = (container: Pick<ListedContainer, 'Mounts' | 'HostConfig'> & { Labels: Labels | null }): PartName | null => {
  const network = container.Labels?.[note.network] ?? ''
  if (!isEngineId(network)) return null
  for (const volume of volumesOf(container)) {
    const name = parsePartName(volume)
    // An Engine may write a network's name where its id was given.
    if (name && agree(name, container.Labels) && [network, volume].includes(container.HostConfig.NetworkMode)) return name
  }
  return null
}

const idText = (id: string): string => id.slice(0, 12)
const nameOf = (container: ListedContainer): string => container.Names?.[0]?.replace(/^\//, '') ?? idText(container.Id)

interface Parts {
  name: PartName
  volumeName: string
  networks: Network[]
  volume: Volume | null
  containers: ListedContainer[]
}

/** Which network makes the box: what its volume says, which only one create can have made; else its container; else the only one that there is. */
const anchorOf = ({ volume, containers, networks }: Parts): string | null => {
  const said = volume?.Labels?.[note.network] ?? containers[0]?.Labels?.[note.network]
  return said ?? networks.map((one) => one.Id).toSorted()[0] ?? null
}

const strayContainer = (one: ListedContainer): Stray => ({
  nativeId: `container:${idText(one.Id)}`,
  what: `container ${nameOf(one)} (${idText(one.Id)})`,
  labels: one.Labels ?? {},
})

export const assemble = (
  listed: { containers: readonly ListedContainer[]; networks: readonly Network[]; volumes: readonly Volume[] },
  known: readonly string[] = [],
): Look => {
  const parts = new Map<string, Parts>()
  const strays: Stray[] = []
  const partsOf = (name: PartName): Parts => {
    const volumeName = `${name.nativeId}-${name.token}`
    const own = parts.get(volumeName) ?? { name, volumeName, networks: [], volume: null, containers: [] }
    parts.set(volumeName, own)
    return own
  }
  for (const one of listed.networks) {
    const name = parsePartName(one.Name)
    if (name && agree(name, one.Labels)) partsOf(name).networks.push(one)
    else strays.push({ nativeId: `network:${idText(one.Id)}`, what: `network ${one.Name}`, labels: one.Labels ?? {} })
  }
  for (const one of listed.volumes) {
    const name = parsePartName(one.Name)
    if (name && agree(name, one.Labels) && isEngineId(one.Labels?.[note.network] ?? '')) partsOf(name).volume = one
    else strays.push({ nativeId: `volume:${one.Name}`, what: `volume ${one.Name}`, labels: one.Labels ?? {} })
  }
  // The oldest first: a copy of a container, made with its network and volume, came after it.
  for (const one of listed.containers.toSorted((a, b) => a.Created - b.Created || (a.Id < b.Id ? -1 : 1))) {
    const name = madeWith(one)
    if (name) partsOf(name).containers.push(one)
    else strays.push(strayContainer(one))
  }
  const boxes = [...parts.values()].flatMap((own): Box[] => {
    const network = anchorOf(own)
    if (network === null) return []
    const fitting = own.containers.filter((one) => one.Labels?.[note.network] === network)
    const container = fitting.find((one) => known.includes(one.Id)) ?? fitting[0] ?? null
    strays.push(...own.containers.filter((one) => one !== container).map(strayContainer))
    const { name, volumeName, networks, volume } = own
    return [{ ...name, network, networks, volume, volumeName, container }]
  })
  return { boxes, strays }
}

/**
 * @param ref null: every ref
 * @param known ids of containers that were recorded as a box's own
 * @throws where a call fails: a part is no answer
 */
export const lookAt = async (api: Api, ref: string | null, signal: AbortSignal, known: readonly string[] = []): Promise<Look> => {
  const label = ref === null ? tag.ref : `${tag.ref}=${ref}`
  const [containers, networks, volumes] = await Promise.all([
    api.containers({ label: [label] }, signal),
    api.networks(label, signal),
    api.volumes(label, signal),
  ])
  return assemble({ containers, networks, volumes }, known)
}

const labelsIn = (box: Box): Labels => box.container?.Labels ?? box.volume?.Labels ?? box.networks[0]?.Labels ?? {}

/** @throws for a word that no table of ours has: a failed read */
export const stateOf = ({ container }: Box): BoxState => {
  if (container === null) return 'remains'
  if (!isBoxState(container.State))
    throw new Error(`the Engine calls container ${nameOf(container)} '${container.State}', which is no state that is known`)
  return container.State
}

const tagsOf = (labels: Labels): OwnershipTags => ({
  ref: labels[tag.ref] ?? null,
  installation: labels[tag.installation] ?? null,
  attempt: labels[tag.attempt] ?? null,
  mac: labels[tag.mac] ?? null,
})

export const resourceOf = (box: Box, scope: ScopeId) => {
  const labels = labelsIn(box)
  return identityOf(scope, box.nativeId, box.network, {
    token: box.token,
    volume: box.volumeName,
    container: box.container?.Id ?? null,
    folder: labels[note.folder] ?? null,
    user: labels[note.user] ?? null,
  })
}

export const foundOf = (box: Box, scope: ScopeId): FoundResource => {
  const state = stateOf(box)
  const labels = labelsIn(box)
  return {
    resource: resourceOf(box, scope),
    tags: tagsOf(labels),
    fixedAttemptToken: box.token,
    providerState: state,
    existence: states[state],
    labels,
  }
}

export const listedOf = (box: Box, scope: ScopeId): ListedResource => {
  const labels = labelsIn(box)
  const times = [box.container === null ? Number.NaN : box.container.Created * 1000, ...box.networks.map((one) => Date.parse(one.Created))]
  const known = times.filter((time) => Number.isFinite(time))
  return {
    ...foundOf(box, scope),
    name: labels[note.name] ?? box.nativeId,
    createdAt: known.length === 0 ? null : Math.min(...known),
    labels,
    attachedTo: [],
    reportOnly: null,
  }
}

export const contradictionOf = ({ nativeId, what, labels }: Stray): Contradiction => {
  const ref = labels[tag.ref] ?? ''
  return {
    nativeId,
    location: engineLocation,
    ref,
    why: `${what} carries ${tag.ref}=${ref} and is no part of a box: no attempt made it so`,
  }
}
