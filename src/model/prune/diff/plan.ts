/**
 * What would have to change so that a Swarm holds what a release declares: shown before anything is done, and the ground that an apply stands on.
 * It gives no permission to delete: what it calls `delete` is a candidate, whose proof is another's work (prune R56).
 */
import type { SwarmKind } from '../names.ts'
import { namespaceLabel, uidLabel } from '../swarm/stamp.ts'
import type { FileObjectSpec, NetworkSpec, ReleaseObjects } from '../swarm/types.ts'
import { byText } from '../compose/shapes.ts'
import { isMap, type Json, type JsonMap } from '../document.ts'
import { canonicalService } from './canonical.ts'
import { changesBetween, type Change } from './changes.ts'
import type { Observed, Seen, SeenNetwork, SeenObject } from './observed.ts'

export type PlannedKind = Exclude<SwarmKind, 'volume'>

/**
 * - `blocked`: what is there can't become what is wanted: `why` says it. Nothing is written.
 * - `taken`: the name is there and is not of this release. It is never touched.
 * - `unmanaged`: it carries the release's name, and nothing proves that we made it. It is never touched.
 * - `unknown`: its kind could not be listed. Nothing is concluded.
 */
export type PlanAction = 'create' | 'update' | 'unchanged' | 'delete' | 'blocked' | 'taken' | 'unmanaged' | 'unknown'

export interface PlanEntry {
  kind: PlannedKind
  name: string
  action: PlanAction
  /** Of what is there; null: nothing is, or it is not known. */
  id: string | null
  changes: Change[]
  why: string | null
}

export interface ReleasePlan {
  release: string
  entries: PlanEntry[]
  /** External networks, configs and secrets that the Swarm does not have. */
  missing: { kind: PlannedKind; name: string }[]
  /** Kinds that could not be listed. */
  unknown: { kind: PlannedKind; why: string }[]
}

/** `uid` is the release's; null: it has none yet, so nothing there is ours. */
export const planRelease = (wanted: ReleaseObjects, observed: Observed, uid: string | null): ReleasePlan => {
  const names = new Map(observed.networks.ok ? observed.networks.list.map((one) => [one.Id, one.Name]) : [])
  const nameOf = (id: string): string => names.get(id) ?? id
  const about = { release: wanted.release, uid }
  const networks = asObjects(observed.networks)
  const entries = [
    ...entriesOf('network', wanted.networks, networks, about, compareNetwork),
    ...entriesOf('config', wanted.configs, observed.configs, about, compareConfig),
    ...entriesOf('secret', wanted.secrets, observed.secrets, about, compareSecret),
    ...entriesOf('service', wanted.services, observed.services, about, (want, seen) => {
      const [before, after] = [canonicalService(seen, nameOf), canonicalService(want as unknown as JsonMap, nameOf)]
      return { changes: changesBetween(withImage(before, after), after), why: null }
    }),
  ]
  const lists = { network: networks, config: observed.configs, secret: observed.secrets, service: observed.services } as const
  const unknown = (Object.keys(lists) as PlannedKind[]).flatMap((kind) => {
    const list = lists[kind]
    return list.ok ? [] : [{ kind, why: list.why }]
  })
  const missing = (['network', 'config', 'secret'] as const).flatMap((kind) => {
    const list = lists[kind]
    const there = new Set(list.ok ? list.list.map(({ Spec }) => Spec['Name']) : [])
    return list.ok
      ? wanted.external[`${kind}s`].filter((name) => !there.has(name) && !nodeNetworks.has(name)).map((name) => ({ kind, name }))
      : []
  })
  return { release: wanted.release, entries, missing, unknown }
}

/** Every node has these by itself. */
const nodeNetworks: ReadonlySet<string> = new Set(['host', 'bridge', 'none'])

interface About {
  release: string
  uid: string | null
}
interface Compared {
  changes: Change[]
  /** Not null: it can't be changed into what is wanted. */
  why: string | null
}

const asObjects = (seen: Seen<SeenNetwork>): Seen<SeenObject> =>
  seen.ok ? { ok: true, list: seen.list.map((one) => ({ ID: one.Id, Spec: one })) } : seen

const labelsOf = (spec: JsonMap): JsonMap => (isMap(spec['Labels']) ? spec['Labels'] : {})
const nameOfSpec = (spec: JsonMap): string => (typeof spec['Name'] === 'string' ? spec['Name'] : '')

const entriesOf = <Want extends { Name: string }>(
  kind: PlannedKind,
  wanted: readonly Want[],
  seen: Seen<SeenObject>,
  { release, uid }: About,
  compare: (want: Want, seen: JsonMap) => Compared,
): PlanEntry[] => {
  const entry = (name: string, action: PlanAction, id: string | null, changes: Change[] = [], why: string | null = null): PlanEntry => ({
    kind,
    name,
    action,
    id,
    changes,
    why,
  })
  if (!seen.ok) return wanted.map((one) => entry(one.Name, 'unknown', null, [], seen.why))
  // As a Swarm compares names (prune R80).
  const there = new Map(seen.list.map((one) => [nameOfSpec(one.Spec).toLowerCase(), one]))
  const isOurs = (one: SeenObject): boolean => uid !== null && labelsOf(one.Spec)[uidLabel] === uid
  const found = wanted.map((want) => {
    const one = there.get(want.Name.toLowerCase())
    if (!one) return entry(want.Name, 'create', null)
    if (!isOurs(one)) return entry(want.Name, 'taken', one.ID, [], takenBy(one.Spec, release))
    const { changes, why } = compare(want, one.Spec)
    return entry(
      want.Name,
      changes.length === 0 ? 'unchanged' : why === null ? 'update' : 'blocked',
      one.ID,
      changes,
      changes.length === 0 ? null : why,
    )
  })
  const names = new Set(wanted.map((one) => one.Name.toLowerCase()))
  const others = seen.list.flatMap((one) => {
    const name = nameOfSpec(one.Spec)
    if (names.has(name.toLowerCase())) return []
    if (isOurs(one)) return [entry(name, 'delete', one.ID, [], 'no file declares it any more')]
    if (labelsOf(one.Spec)[namespaceLabel] !== release) return []
    return [entry(name, 'unmanaged', one.ID, [], 'it carries the name of this release, and nothing shows that it was made by it')]
  })
  return [...found, ...others].toSorted((a, b) => byText(a.name, b.name))
}

const takenBy = (spec: JsonMap, release: string): string => {
  const stack = labelsOf(spec)[namespaceLabel]
  if (typeof stack !== 'string') return 'it is there already, and nothing shows that this release made it'
  return stack === release
    ? 'it carries the name of this release, and nothing shows that it was made by it'
    : `it belongs to the stack ${stack}`
}

/** An image that was resolved to a digest is still the image that was asked for. */
const withImage = (before: JsonMap, after: JsonMap): JsonMap => {
  const image = (of: JsonMap): Json | undefined =>
    ((of['TaskTemplate'] as JsonMap | undefined)?.['ContainerSpec'] as JsonMap | undefined)?.['Image']
  const [had, wants] = [image(before), image(after)]
  if (typeof had !== 'string' || typeof wants !== 'string' || !had.startsWith(`${wants}@sha256:`)) return before
  const task = before['TaskTemplate'] as JsonMap
  return { ...before, TaskTemplate: { ...task, ContainerSpec: { ...(task['ContainerSpec'] as JsonMap), Image: wants } } }
}

const compareNetwork = (want: NetworkSpec, seen: JsonMap): Compared => {
  const options = isMap(seen['Options'])
    ? Object.entries(seen['Options']).filter(([key]) => key !== 'com.docker.network.driver.overlay.vxlanid_list')
    : []
  const view = (of: JsonMap, opts: [string, Json][]): JsonMap => ({
    Driver: of['Driver'] ?? '',
    Internal: of['Internal'] ?? false,
    Attachable: of['Attachable'] ?? false,
    Labels: of['Labels'] ?? {},
    Options: Object.fromEntries(opts),
    // Subnets that nobody asked for were chosen by the Engine.
    ...(want.IPAM?.Config && { Subnets: subnetsOf(of['IPAM']) }),
  })
  const wanted = want as unknown as JsonMap
  const changes = changesBetween(view(seen, options), view(wanted, Object.entries(want.Options ?? {})))
  return { changes, why: 'a network can never be changed: give it another name, or remove it first' }
}

const subnetsOf = (ipam: Json | undefined): Json => {
  const config = isMap(ipam) && Array.isArray(ipam['Config']) ? ipam['Config'] : []
  return config.map((one) => (isMap(one) ? (one['Subnet'] ?? null) : null))
}

const fileObject = (of: JsonMap): JsonMap => {
  const driver = isMap(of['Driver']) ? { Driver: of['Driver']['Name'] ?? '', Options: of['Driver']['Options'] ?? {} } : {}
  const template = isMap(of['Templating']) ? { Template: of['Templating']['Name'] ?? '' } : {}
  return { Labels: of['Labels'] ?? {}, ...driver, ...template }
}

const immutable = (what: string): string =>
  `what a ${what} holds can never be changed: give it another name, such as one with a version in it`

const compareConfig = (want: FileObjectSpec, seen: JsonMap): Compared => {
  const changes = changesBetween(fileObject(seen), fileObject(want as unknown as JsonMap))
  const content = want.Data.reveal()
  const had = typeof seen['Data'] === 'string' ? seen['Data'] : ''
  if (had !== base64(content))
    changes.push({
      field: 'content',
      from: `${Math.floor((had.replace(/=+$/, '').length * 3) / 4)} bytes`,
      to: `${content.byteLength} other bytes`,
    })
  return { changes, why: changes.every((one) => one.field.startsWith('Labels.')) ? null : immutable('config') }
}

/** An Engine never tells what a secret holds, so that it has changed can't be seen here. */
const compareSecret = (want: FileObjectSpec, seen: JsonMap): Compared => {
  const changes = changesBetween(fileObject(seen), fileObject(want as unknown as JsonMap))
  return { changes, why: changes.every((one) => one.field.startsWith('Labels.')) ? null : immutable('secret') }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const base64 = (bytes: Uint8Array): string => {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += 3) {
    const [a = 0, b = 0, c = 0] = bytes.subarray(at, at + 3)
    const left = bytes.length - at
    const code = (index: number): string => alphabet[index] as string
    parts.push(
      code(a >> 2),
      code(((a & 3) << 4) | (b >> 4)),
      left > 1 ? code(((b & 15) << 2) | (c >> 6)) : '=',
      left > 2 ? code(c & 63) : '=',
    )
  }
  return parts.join('')
}
