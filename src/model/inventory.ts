/**
 * What a listing proves. An inventory is sealed once, when its listing has ended, with one cell per location and kind; absence is concluded from a
 * `CompleteCell` only, and nothing outside this file can make one (I5). Not in here: what was seen, which the caller judges page by page.
 */

declare const sealed: unique symbol
declare const complete: unique symbol

export type CellState = { kind: 'complete' } | { kind: 'partial'; why: string } | { kind: 'denied'; permission: string }

/** As a provider reports it. */
export interface CoverageReport {
  location: string
  kind: string
  state: CellState
  pages: number
}

export interface Cell extends CoverageReport {
  resources: number
}

/** A cell in which everything was seen, of an inventory whose counts are plausible: the only ground for "it is not there". */
export interface CompleteCell {
  readonly location: string
  readonly kind: string
  /** ms: the listing's, not the page's. */
  readonly startedAt: number
  readonly endedAt: number
  readonly [complete]: true
}

export type Guard =
  | { kind: 'passed' }
  | { kind: 'tripped'; rule: 'refs' | 'tags'; why: string }
  /** It would have tripped, and a person let this inventory pass. */
  | { kind: 'let-pass'; by: string; why: string }

/** What the ledger expects of this listing. Counts only what lies in cells that the provider called complete. */
export interface Expectation {
  /** Refs that the ledger says exist: bound, not ended, past visibility. */
  expected: number
  seen: number
  /** Of those not seen, how many an exact read has proved absent since: they explain themselves. */
  explained: number
  /** Resources whose tags could be read in the last plausible listing of their cell, as far as this one can have shown them again (`tag-shape.ts`). */
  hadTags: number
  /** Of these, how many have unreadable tags now. */
  unreadable: number
  /** The person who lets an implausible inventory pass; null: nobody. */
  letPassBy: string | null
}

export interface Inventory {
  readonly startedAt: number
  readonly endedAt: number
  readonly cells: readonly Cell[]
  readonly guard: Guard
  readonly pages: number
  readonly resources: number
  readonly [sealed]: true
}

export interface ListingReport {
  /** ms, taken before the first call to the provider (orphans R45). */
  startedAt: number
  endedAt: number
  /** Every location and kind that was asked for: a cell without a report is partial. */
  locations: readonly string[]
  kinds: readonly string[]
  coverage: readonly CoverageReport[]
  /** How many distinct resources were seen, by `cellKey`. */
  resources: ReadonlyMap<string, number>
  expectation: Expectation
}

export const cellKey = (location: string, kind: string): string => `${location}\n${kind}`

/** A person lets one sweep pass, and exactly the counts that were shown to that person. */
export interface LetPass {
  by: string
  reason: string
  /** `countsText` of them. */
  numbers: string
}

export const countsText = (counts: Omit<Expectation, 'letPassBy'>): string =>
  JSON.stringify([counts.expected, counts.seen, counts.explained, counts.hadTags, counts.unreadable])

/** Who lets these counts pass; null: nobody, also when other counts were let pass. */
export const letPassBy = (pass: LetPass | null, counts: Omit<Expectation, 'letPassBy'>): string | null =>
  pass !== null && pass.numbers === countsText(counts) ? pass.by : null

/** Fewer expected refs than this say nothing by being missed (decisions, guard on counts). */
const guardedFrom = 5

/** How many of the unseen an exact read has to prove absent before the guard on refs lets the rest be believed; 0: none. */
export const readsNeeded = ({ expected, seen }: Pick<Expectation, 'expected' | 'seen'>): number =>
  expected < guardedFrom ? 0 : Math.max(0, Math.ceil((expected * 4) / 5) - seen)

/** decisions, guard on counts; case I2: tags that can't be read are not tags that are not there. */
export const judgeCounts = (counts: Expectation): Guard => {
  const accounted = counts.seen + counts.explained
  const implausible: { rule: 'refs' | 'tags'; why: string } | null =
    counts.expected >= guardedFrom && accounted * 5 < counts.expected * 4
      ? { rule: 'refs', why: `of ${counts.expected} refs that the ledger says exist only ${accounted} were seen or proved absent` }
      : counts.unreadable * 5 > counts.hadTags
        ? {
            rule: 'tags',
            why: `the tags of ${counts.unreadable} of ${counts.hadTags} resources that had readable ones can not be read now`,
          }
        : null
  if (implausible === null) return { kind: 'passed' }
  if (counts.letPassBy !== null) return { kind: 'let-pass', by: counts.letPassBy, why: implausible.why }
  return { kind: 'tripped', ...implausible }
}

const worse: Record<CellState['kind'], number> = { complete: 0, partial: 1, denied: 2 }

/** A provider that says "complete" without a page has been answered nothing. */
const plausible = (report: CoverageReport): CellState =>
  report.state.kind === 'complete' && !(report.pages >= 1)
    ? { kind: 'partial', why: 'called complete without a single page having been read' }
    : report.state

/** Closes a listing. Of several reports about one cell the worst counts; a cell nobody reported is partial. */
export const sealInventory = (listing: ListingReport): Inventory => {
  const cells = new Map<string, Cell>()
  for (const report of listing.coverage) {
    const key = cellKey(report.location, report.kind)
    const state = plausible(report)
    const before = cells.get(key)
    const pages = report.pages + (before?.pages ?? 0)
    const worst = before && worse[before.state.kind] >= worse[state.kind] ? before.state : state
    cells.set(key, { location: report.location, kind: report.kind, state: worst, pages, resources: listing.resources.get(key) ?? 0 })
  }
  for (const location of listing.locations)
    for (const kind of listing.kinds) {
      const key = cellKey(location, kind)
      if (!cells.has(key))
        cells.set(key, {
          location,
          kind,
          state: { kind: 'partial', why: 'the listing said nothing about it' },
          pages: 0,
          resources: listing.resources.get(key) ?? 0,
        })
    }
  const list = [...cells.values()]
  const inventory: Omit<Inventory, typeof sealed> = {
    startedAt: listing.startedAt,
    endedAt: listing.endedAt,
    cells: list,
    guard: judgeCounts(listing.expectation),
    pages: list.reduce((sum, cell) => sum + cell.pages, 0),
    resources: list.reduce((sum, cell) => sum + cell.resources, 0),
  }
  // The brands exist for the types alone, and the index is kept beside: a certificate can be written from the value as it is.
  const value = Object.freeze(inventory) as Inventory
  indexes.set(value, cells)
  return value
}

const indexes = new WeakMap<Inventory, ReadonlyMap<string, Cell>>()

export const cellOf = (inventory: Inventory, location: string, kind: string): Cell | undefined =>
  indexes.get(inventory)?.get(cellKey(location, kind))

/** May anything be concluded from what this inventory does not show? */
export const provesAbsence = (inventory: Inventory): boolean => inventory.guard.kind !== 'tripped'

/** Null: nothing may be concluded from what is not seen there (I5). */
export const completeCell = (inventory: Inventory, location: string, kind: string): CompleteCell | null => {
  if (cellOf(inventory, location, kind)?.state.kind !== 'complete' || !provesAbsence(inventory)) return null
  return { location, kind, startedAt: inventory.startedAt, endedAt: inventory.endedAt } as CompleteCell
}

export const cellsNot = (inventory: Inventory, kind: CellState['kind']): Cell[] =>
  inventory.cells.filter((cell) => cell.state.kind !== kind)

/**
 * Not one page of any cell arrived, and none may not be listed: that is a listing that failed, not one with gaps (orphans R22, R79, case orphan 10).
 * @returns why, in the words of the first cell; null: something was listed
 */
export const nothingListed = (inventory: Inventory): string | null => {
  const [first] = inventory.cells
  if (first?.state.kind !== 'partial' || !inventory.cells.every((cell) => cell.state.kind === 'partial' && cell.pages === 0)) return null
  return first.state.why
}

/**
 * Does this inventory count for quarantines in a location? The owner's kind must be complete and nothing there partial, so that groups are whole
 * (leases R55: nothing of a region whose inventory failed advances). A kind that may not be listed at all stops only itself (orphans R102).
 */
export const countsFor = (inventory: Inventory, location: string, ownerKind: string): boolean =>
  completeCell(inventory, location, ownerKind) !== null &&
  inventory.cells.every((cell) => cell.location !== location || cell.state.kind !== 'partial')
