/** The guard on counts: what a listing should show, by the ledger, by earlier listings and by exact reads, and who lets an implausible one pass. */
import { cellKey, countsText, letPassBy, type Expectation, type LetPass } from '../../model/inventory.ts'
import { tagShape } from '../../model/tag-shape.ts'
import { cellsOf } from '../../store/cells.ts'
import type { Session, Tx } from '../../store/store.ts'
import type { CleanupRow } from '../../store/cleanups.ts'
import { reportFinding, resolveAbout } from '../record.ts'
import type { ExactReads } from './exact-reads.ts'
import type { Expected } from './expected.ts'
import type { Listing } from './listing.ts'
import type { SweepWork } from './load.ts'
import type { Inspected } from './run.ts'

const letPassOf = (cleanup: CleanupRow): LetPass | null => (cleanup.let_pass === null ? null : (JSON.parse(cleanup.let_pass) as LetPass))

export const unreadableIn = (listing: Listing, location: string, kind: string): readonly string[] =>
  listing.unreadable.get(cellKey(location, kind)) ?? []

export const readableIn = (listing: Listing, location: string, kind: string): number =>
  (listing.resources.get(cellKey(location, kind)) ?? 0) - unreadableIn(listing, location, kind).length

/** Cells that the provider called complete, beside what the last plausible listing of each could read (case I2). */
const tagsOf = async (session: Session, work: SweepWork, scope: string, listing: Listing) => {
  const rows = await cellsOf(session, { project: work.backend.project, backend: work.backend.name, scope })
  const before = new Map(rows.map((row) => [cellKey(row.location, row.kind), row]))
  const sum = { hadTags: 0, unreadable: 0 }
  const complete = listing.coverage.filter((cell) => cell.state.kind === 'complete')
  for (const { location, kind } of new Map(complete.map((cell) => [cellKey(cell.location, cell.kind), cell])).values()) {
    const row = before.get(cellKey(location, kind))
    const now = { readable: readableIn(listing, location, kind), unreadable: unreadableIn(listing, location, kind) }
    const then =
      row === undefined || row.readable === null
        ? null
        : { readable: row.readable, unreadable: new Set(JSON.parse(row.unreadable) as string[]) }
    const shape = tagShape(now, then)
    sum.hadTags += shape.hadTags
    sum.unreadable += shape.unreadable
  }
  return sum
}

export const expectationOf = async (
  session: Session,
  work: SweepWork,
  scope: string,
  listing: Listing,
  expected: Expected,
  reads: ExactReads,
): Promise<Expectation> => {
  const counts = {
    expected: expected.expected,
    seen: expected.seen,
    explained: [...reads.values()].filter((read) => read === 'absent').length,
    ...(await tagsOf(session, work, scope, listing)),
  }
  return { ...counts, letPassBy: letPassBy(letPassOf(work.cleanup), counts) }
}

const backendTarget = (work: SweepWork) => ({
  type: 'backend',
  id: `${work.backend.project}/${work.backend.name}`,
  name: work.backend.name,
})

/** A person learns of implausible counts, and of exactly which: only these can be let pass. */
export const noteGuard = async (tx: Tx, work: SweepWork, inspected: Inspected): Promise<void> => {
  const { guard } = inspected.inventory
  const target = backendTarget(work)
  if (guard.kind !== 'tripped') return resolveAbout(tx, 'backend', [target.id], 'counts-implausible')
  const { letPassBy: _, ...counts } = inspected.counts
  await reportFinding(tx, {
    code: 'counts-implausible',
    project: work.backend.project,
    scope: inspected.scope,
    target,
    message: `${guard.why}: nothing is concluded from what was not seen`,
    evidence: { rule: guard.rule, ...counts },
    fingerprint: countsText(counts),
  })
}
