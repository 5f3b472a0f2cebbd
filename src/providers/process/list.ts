/**
 * The listing of this machine: every box folder, and the processes outside that carry a ref tag. There is one cell and one pass over `/proc` for all of
 * it, so it is complete, or it says why not.
 */
import { readdir } from 'node:fs/promises'
import { processEnvironment } from '../../lib/host.ts'
import { type ScopeId, isInstallationId } from '../../model/ids.ts'
import type { Contradiction, Coverage, FoundResource, ListedResource, ListingItem } from '../contract.ts'
import { type Box, boxesFolder, readBox } from './folder.ts'
import { parseNativeId, seenFromElsewhere } from './identity.ts'
import { type BoxState, type Inspection, contradictionsOf, foundOf, inspectAll, mistaken } from './inspect.ts'
import type { ProcessTable } from './table.ts'
import { errorCode, errorText, localLocation, ownerKind, tag } from './words.ts'

const pageSize = 100

const namesOfBoxes = async (dataFolder: string): Promise<string[]> => {
  try {
    const names = await readdir(boxesFolder(dataFolder))
    return [...new Set(names.map((name) => name.replace(/^\.removing-/, '')).filter((name) => parseNativeId(name) !== null))].toSorted()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

interface Stored {
  boxes: Box[]
  damaged: Contradiction[]
}

const readBoxes = async (dataFolder: string, signal: AbortSignal): Promise<Stored> => {
  const stored: Stored = { boxes: [], damaged: [] }
  for (const nativeId of await namesOfBoxes(dataFolder)) {
    signal.throwIfAborted()
    const one = await readBox(dataFolder, nativeId)
    if (one.kind === 'box') stored.boxes.push(one.box)
    if (one.kind === 'damaged') stored.damaged.push({ nativeId, location: localLocation, why: one.why })
  }
  return stored
}

/** Another installation's processes are its own affair: two may share a machine. Only a tag that says so clearly makes one foreign. */
const isForeign = (nativeId: string, ours: ReadonlySet<string>): boolean => {
  const environment = processEnvironment(Number(nativeId.replace('pid:', '')))
  const installation = environment.kind === 'read' ? environment.values.get(tag.installation) : undefined
  return installation !== undefined && isInstallationId(installation) && ours.size > 0 && !ours.has(installation)
}

/** Living processes with a ref tag that are in no box of that ref. */
const strays = (inspections: readonly Inspection[], table: ProcessTable, ours: ReadonlySet<string>): Contradiction[] => {
  const byRef = Map.groupBy(inspections, ({ box }) => box.record.ref)
  const members = new Map([...byRef].map(([ref, own]) => [ref, new Set(own.flatMap((one) => [...one.members]))]))
  const refs = new Set<string>()
  for (const { ref, pid, alive } of table.entries.values()) if (alive && ref !== null && !members.get(ref)?.has(pid)) refs.add(ref)
  return [...refs].flatMap((ref) => contradictionsOf(ref, byRef.get(ref) ?? [], table)).filter(({ nativeId }) => !isForeign(nativeId, ours))
}

const listedOf = ({ box }: Inspection, found: FoundResource): ListedResource => {
  const { ref, installation, attempt, mac } = found.tags
  const tags = [
    [tag.ref, ref],
    [tag.installation, installation],
    [tag.attempt, attempt],
    [tag.mac, mac],
  ].flatMap(([key, value]) => (typeof key === 'string' && typeof value === 'string' ? [[key, value] as const] : []))
  const createdAt = Date.parse(box.record.createdAt)
  return {
    ...found,
    name: box.record.name,
    createdAt: Number.isNaN(createdAt) ? null : createdAt,
    labels: { ...box.record.labels, ...Object.fromEntries(tags) },
    attachedTo: [],
    reportOnly: null,
  }
}

const coverage = (state: Coverage['state'], pages: number): ListingItem => ({
  type: 'coverage',
  coverage: { location: localLocation, kind: ownerKind, state, pages },
})

/** A location or an installation that is not this provider's makes no difference. `installation` may be unknown: then the boxes tell. */
export async function* listBoxResources(
  dataFolder: string,
  scope: ScopeId,
  installation: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ListingItem> {
  let stored: Stored
  let look: { inspections: Inspection[]; table: ProcessTable }
  try {
    stored = await readBoxes(dataFolder, signal)
    look = await inspectAll(stored.boxes, signal)
  } catch (error) {
    yield coverage({ kind: 'partial', why: errorText(error) }, 0)
    return
  }
  const { inspections, table } = look
  if (table.incomplete !== null) {
    yield coverage({ kind: 'partial', why: table.incomplete }, 0)
    return
  }
  const ours = new Set([...(installation === undefined ? [] : [installation]), ...stored.boxes.map((box) => box.record.installation)])
  const contradictions = [
    ...stored.damaged,
    ...inspections.filter((one) => one.init === 'foreign').map(mistaken),
    ...strays(inspections, table, ours),
  ]
  for (const contradiction of contradictions) yield { type: 'contradiction', contradiction }

  // What is just starting has no identity yet, and one that changes meanwhile is no absence.
  const elsewhere = inspections.find(({ box }) => seenFromElsewhere(box.record) !== null)
  const settled = inspections.filter(
    (one) => one.init !== 'foreign' && one.state !== 'starting' && seenFromElsewhere(one.box.record) === null,
  )
  const resources = settled.map((one) => listedOf(one, foundOf(one, scope)))
  // The pass over the folders and /proc, also where it shows nothing.
  let pages = resources.length === 0 ? 1 : 0
  for (let at = 0; at < resources.length; at += pageSize) {
    pages += 1
    yield { type: 'page', location: localLocation, kind: ownerKind, resources: resources.slice(at, at + pageSize) }
  }
  const starting = inspections.find((one) => one.state === 'starting')
  const why = elsewhere
    ? `${elsewhere.box.nativeId}: ${seenFromElsewhere(elsewhere.box.record)}`
    : starting && `${starting.box.nativeId} is just starting`
  yield coverage(why ? { kind: 'partial', why } : { kind: 'complete' }, pages)
}

/** The state table: a box's state, and what it can mean (orphans U10). An ending box exists while more than its clock is in it. */
export const states: Record<BoxState, readonly FoundResource['existence'][]> = {
  unstarted: ['going'],
  starting: ['exists'],
  running: ['exists'],
  ending: ['exists', 'going'],
  ended: ['going'],
  removing: ['going'],
}
