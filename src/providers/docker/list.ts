/** The listing of an Engine: containers, networks and volumes with a ref, as boxes. One cell: it is complete when all three answered, and the Engine is the same still. */
import { type ScopeId, isInstallationId } from '../../model/ids.ts'
import type { Coverage, FindOutcome, ListingItem } from '../contract.ts'
import type { Api } from './api.ts'
import { type Look, type Stray, contradictionOf, foundOf, listedOf, lookAt } from './look.ts'
import { scopeNow } from './scope.ts'
import { engineLocation, errorText, ownerKind, tag } from './words.ts'

const pageSize = 100

/** Several installations may use one Engine: what another one clearly calls its own is its affair. */
const isForeign = ({ labels }: Stray, installation: string | undefined): boolean => {
  const said = labels[tag.installation]
  return installation !== undefined && said !== undefined && said !== installation && isInstallationId(said)
}

const coverage = (state: Coverage['state'], pages: number): ListingItem => ({
  type: 'coverage',
  coverage: { location: engineLocation, kind: ownerKind, state, pages },
})

/** The scope is asked for last: an Engine that took the place of another meanwhile shows as one. */
const lookWhole = async (api: Api, ref: string | null, signal: AbortSignal): Promise<{ look: Look; scope: ScopeId }> => {
  const before = await scopeNow(api, signal)
  const look = await lookAt(api, ref, signal)
  const { scope } = await scopeNow(api, signal)
  if (before.scope !== scope) throw new Error('another Engine has taken the place of the one that was asked')
  return { look, scope }
}

export async function* listBoxes(api: Api, installation: string | undefined, signal: AbortSignal): AsyncGenerator<ListingItem> {
  let items: ListingItem[]
  try {
    const { look, scope } = await lookWhole(api, null, signal)
    const resources = look.boxes.map((box) => listedOf(box, scope))
    items = look.strays
      .filter((stray) => !isForeign(stray, installation))
      .map((stray) => ({ type: 'contradiction', contradiction: contradictionOf(stray) }))
    for (let at = 0; at < resources.length; at += pageSize)
      items.push({ type: 'page', location: engineLocation, kind: ownerKind, resources: resources.slice(at, at + pageSize) })
  } catch (error) {
    yield coverage({ kind: 'partial', why: errorText(error) }, 0)
    return
  }
  yield* items
  // The Engine answers each of the three in one.
  yield coverage({ kind: 'complete' }, Math.max(1, items.filter((item) => item.type === 'page').length))
}

export const findBoxes = async (api: Api, ref: string, signal: AbortSignal): Promise<FindOutcome> => {
  const { look, scope } = await lookWhole(api, ref, signal)
  return {
    kind: 'complete',
    found: look.boxes.map((box) => foundOf(box, scope)),
    contradictions: look.strays.map(contradictionOf),
  }
}
