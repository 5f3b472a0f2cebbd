/** Listings: cell by cell, page by page, and what each cell was worth. */
import type { ScopeId } from '../../model/ids.ts'
import type { Coverage, FindOutcome, ListingItem, Rated } from '../contract.ts'
import { type Client, CloudError, ratedBy, request } from './api.ts'
import type { ListQuery, Listed } from './cloud.ts'
import type { SimulatedConfig } from './config.ts'
import type { Effect } from './faults.ts'
import { foundOf, listedOf } from './found.ts'
import { type Kind, kinds, ownerKind } from './words.ts'

export interface Page {
  listed: Listed[]
  /** Asks for the next page; null: this is the last. */
  next: string | null
}
/** @throws CloudError */
export type Pages = (token: string | null) => Promise<Page>

export interface Cell {
  location: string
  kind: Kind
}

interface Token {
  page: number
  after: number
  shown: Effect[]
}

const readToken = (token: string | null): Token =>
  token === null ? { page: 1, after: 0, shown: [] } : (JSON.parse(Buffer.from(token, 'base64url').toString()) as Token)
const writeToken = (token: Token): string => Buffer.from(JSON.stringify(token)).toString('base64url')

/** The pages of one cell, with whatever strikes them. */
export const pagesOf =
  (client: Client, cell: Cell, size: number, filter: ListQuery['filter'], signal: AbortSignal): Pages =>
  async (text) => {
    const { page, after, shown } = readToken(text)
    const show = (effect: Effect): string => writeToken({ page, after, shown: [...shown, effect] })
    return request(client, { operation: 'list', ...cell, page, shown }, signal, ({ lie, lagMs }) => {
      if (lie === 'fail-page') throw new CloudError({ kind: 'failed' }, `page ${page} of ${cell.kind} in ${cell.location}: internal error`)
      if (lie === 'empty-page') return { listed: [], next: show(lie) }
      const { listed, more } = client.cloud.list({ ...cell, after, size, olderThanMs: lagMs, filter })
      if (lie === 'repeat-page') return { listed, next: show(lie) }
      return { listed, next: more ? writeToken({ page: page + 1, after: listed.at(-1)?.seq ?? after, shown: [] }) : null }
    })
  }

const stateOf = (error: unknown): Coverage['state'] => {
  if (!(error instanceof CloudError)) return { kind: 'partial', why: error instanceof Error ? error.message : String(error) }
  if (error.failure.kind === 'denied') return { kind: 'denied', permission: error.failure.permission }
  return { kind: 'partial', why: error.message }
}

/**
 * All pages of one cell, and last what it was worth. An empty page does not end it, a repeated one adds nothing (the cloud lists in the order of
 * its ids), and a token that comes again would go round for ever: the cell is partial.
 */
export async function* readCell(cell: Cell, pages: Pages): AsyncGenerator<{ listed: Listed[] } | { coverage: Coverage }> {
  const asked = new Set<string>()
  let [token, highest, count]: [string | null, number, number] = [null, 0, 0]
  const worth = (state: Coverage['state'], rated: Rated = {}): { coverage: Coverage } => ({
    coverage: { ...cell, state, pages: count, ...rated },
  })
  for (;;) {
    let page: Page
    try {
      page = await pages(token)
    } catch (error) {
      yield worth(stateOf(error), ratedBy(error))
      return
    }
    count += 1
    const listed = page.listed.filter(({ seq }) => seq > highest)
    highest = listed.at(-1)?.seq ?? highest
    if (listed.length > 0) yield { listed }
    if (page.next === null) {
      yield worth({ kind: 'complete' })
      return
    }
    if (asked.has(page.next)) {
      yield worth({ kind: 'partial', why: `page ${count} asks for a page that was read before` })
      return
    }
    asked.add(page.next)
    token = page.next
  }
}

/** @throws when the account can't be opened; nothing of it can be trusted then */
export async function* listResources(
  client: Client,
  scope: ScopeId,
  locations: readonly string[],
  config: SimulatedConfig,
  signal: AbortSignal,
): AsyncGenerator<ListingItem> {
  for (const location of new Set([...locations, ...config.locations])) {
    for (const kind of kinds) {
      for await (const item of readCell({ location, kind }, pagesOf(client, { location, kind }, config.pageSize, 'tagged', signal))) {
        if ('coverage' in item) yield { type: 'coverage', coverage: item.coverage }
        else yield { type: 'page', location, kind, resources: item.listed.map((one) => listedOf(one, scope)) }
      }
    }
  }
}

/** One resource is enough to know. @throws CloudError when there is no answer */
export const mayListCell = async (client: Client, cell: Cell, signal: AbortSignal): Promise<boolean> => {
  try {
    await pagesOf(client, cell, 1, 'tagged', signal)(null)
    return true
  } catch (error) {
    if (error instanceof CloudError && error.failure.kind === 'denied') return false
    throw error
  }
}

/**
 * The machines of a ref, in every location that was ever used. What else a group has is for listings. A machine whose tags can't be read may be one of them if it was
 * made with a token, as ours are: then nobody can say that these are all (I5).
 */
export const findMachines = async (
  client: Client,
  scope: ScopeId,
  ref: string,
  config: SimulatedConfig,
  signal: AbortSignal,
): Promise<FindOutcome> => {
  const found: Listed[] = []
  for (const location of new Set([...config.locations, ...client.cloud.locations()])) {
    const cell = { location, kind: ownerKind }
    for await (const item of readCell(cell, pagesOf(client, cell, config.pageSize, { ref }, signal))) {
      if ('listed' in item) found.push(...item.listed)
      else if (item.coverage.state.kind === 'denied')
        return { kind: 'incomplete', why: `permission ${item.coverage.state.permission} is missing` }
      else if (item.coverage.state.kind === 'partial') {
        const { state, rate } = item.coverage
        return { kind: 'incomplete', why: state.why, ...(rate === undefined ? {} : { rate }) }
      }
    }
  }
  const existing = found.map((one) => foundOf(one.resource, scope)).filter((one) => one.existence !== 'gone')
  const unreadable = existing.find((one) => one.labels === null && one.fixedAttemptToken !== null)
  if (unreadable) return { kind: 'incomplete', why: `the tags of machine ${unreadable.resource.nativeId} can not be read` }
  const resources = existing.filter((one) => one.labels !== null)
  return { kind: 'complete', found: resources, contradictions: [] }
}
