/** The two reads: everything that carries a ref, and one box by its identity. */
import type { ScopeId } from '../../model/ids.ts'
import type { Contradiction, FindOutcome, ReadOutcome, ResourceIdentity } from '../contract.ts'
import { type Box, listBoxes, readBox } from './folder.ts'
import { parseNativeId, seenFromElsewhere } from './identity.ts'
import { type Inspection, contradictionsOf, foundOf, inspectAll, mistaken } from './inspect.ts'
import { locate } from './locate.ts'
import { localLocation } from './words.ts'

interface Look {
  inspections: Inspection[]
  contradictions: Contradiction[]
  incomplete: string | null
}

/** All boxes of a ref, with one pass over `/proc`. `known` stands for the stored box of its name. */
const lookAt = async (dataFolder: string, ref: string, known: Box | null, signal: AbortSignal): Promise<Look> => {
  const boxes: Box[] = known === null ? [] : [known]
  const damaged: Contradiction[] = []
  for (const nativeId of await listBoxes(dataFolder, ref)) {
    if (nativeId === known?.nativeId) continue
    const stored = await readBox(dataFolder, nativeId)
    if (stored.kind === 'box') boxes.push(stored.box)
    if (stored.kind === 'damaged') damaged.push({ nativeId, location: localLocation, why: stored.why })
  }
  const { inspections, table } = await inspectAll(boxes, signal)
  const starting = inspections.find((one) => one.state === 'starting')
  return {
    inspections,
    contradictions: [
      ...damaged,
      ...inspections.filter((one) => one.init === 'foreign').map(mistaken),
      ...contradictionsOf(ref, inspections, table),
    ],
    incomplete:
      table.incomplete ??
      boxes.map(({ record }) => seenFromElsewhere(record)).find((why) => why !== null) ??
      (starting ? `${starting.box.nativeId} is just starting` : null),
  }
}

/** Throws when a folder can't be read, and `signal.reason` when aborted. */
export const findBoxes = async (dataFolder: string, scope: ScopeId, ref: string, signal: AbortSignal): Promise<FindOutcome> => {
  const look = await lookAt(dataFolder, ref, null, signal)
  if (look.incomplete !== null) return { kind: 'incomplete', why: look.incomplete }
  const found = look.inspections.filter((one) => one.init !== 'foreign').map((one) => foundOf(one, scope))
  return { kind: 'complete', found, contradictions: look.contradictions }
}

/** Throws as `findBoxes`. */
export const readBoxOf = async (
  dataFolder: string,
  scope: ScopeId,
  resource: ResourceIdentity,
  signal: AbortSignal,
): Promise<ReadOutcome> => {
  const located = await locate(dataFolder, { scope }, resource)
  if (located.kind === 'replaced' || located.kind === 'unknown') return located
  const ref = parseNativeId(resource.nativeId)?.ref ?? ''
  const look = await lookAt(dataFolder, ref, located.kind === 'box' ? located.box : null, signal)
  if (look.incomplete !== null) return { kind: 'unknown', error: look.incomplete }
  const { inspections, contradictions } = look
  if (located.kind === 'absent') return { kind: 'absent', proof: located.proof, contradictions }
  const inspection = inspections.find((one) => one.box.nativeId === resource.nativeId)
  if (inspection === undefined) return { kind: 'unknown', error: `${resource.nativeId} was not seen` }
  if (inspection.init === 'foreign') return { kind: 'replaced', why: mistaken(inspection).why }
  if (!located.folder && inspection.state !== 'running' && inspection.alive.length === 0) {
    return { kind: 'absent', proof: 'its folder is gone, and all that is left of its processes waits to be collected', contradictions }
  }
  const found = foundOf(inspection, scope)
  // Under the identity that was asked for: a box whose start was never seen is known by its token.
  return { kind: 'present', found: { ...found, resource: { ...found.resource, immutableId: resource.immutableId } }, contradictions }
}
