/** What a removal that a sweep orders stands on, as it is kept with it: everything that its receipt tells when findings and events are long gone. */
import { redact } from '../../lib/redact.ts'
import { sha256 } from '../../lib/sha256.ts'
import { seenThen } from '../../model/fresh-protection.ts'
import type { Inventory } from '../../model/inventory.ts'
import type { FoundEvidence } from '../../model/removal-evidence.ts'
import type { Topology } from '../../model/topology.ts'
import { rowsIn } from '../../store/bulk.ts'
import type { Session } from '../../store/store.ts'
import type { OrphanEntry } from './plan.ts'

export interface Ground {
  project: string
  scope: string
  sweepId: string
  inventory: Inventory
  /** Which groups its provider lets be taken back; undefined: it knows none. */
  topology: Topology | undefined
  /** `pl_…` and how many groups it takes back; null: no plan. */
  plan: FoundEvidence['plan']
}

const mostFacts = 20

/** The open orphan findings about these resources, by target. */
export const findingsOf = async (
  session: Session,
  entries: readonly OrphanEntry[],
  whose: { project: string; scope: string },
): Promise<Map<string, string>> => {
  const targets = entries.map((entry) => entry.target)
  const rows = (await rowsIn(session, 'findings', 'target_id', targets)).filter(
    (row) =>
      row.code === 'orphan' &&
      row.state === 'open' &&
      row.target_type === 'resource' &&
      row.project === whose.project &&
      row.scope === whose.scope,
  )
  return new Map(rows.map((row) => [row.target_id, row.id]))
}

export const stoodOn = (entry: OrphanEntry, finding: string | null, ground: Ground): FoundEvidence | undefined => {
  const { judged, quarantine } = entry.noted
  const { verdict, group } = judged
  if (verdict.kind !== 'orphan' || quarantine === null) return undefined
  return {
    reason: verdict.reason,
    finding,
    fingerprint: quarantine.fingerprint,
    firstSeenAt: quarantine.firstSeenAt,
    lastSeenAt: quarantine.lastSeenAt,
    timesSeen: quarantine.timesSeen,
    sweep: ground.sweepId,
    listedAt: ground.inventory.startedAt,
    coverage: ground.inventory.cells
      .filter((cell) => cell.location === group.location)
      .map((cell) => ({ location: cell.location, kind: cell.kind, state: cell.state.kind, resources: cell.resources })),
    plan: ground.plan,
    members: group.members.map((member) => seenThen(member, sha256)),
    proofs: verdict.proofs,
    facts: verdict.facts.slice(0, mostFacts).map(({ fact, source, at }) => ({ fact: redact(fact), source, at })),
  }
}
