/** From a listing to verdicts: groups are formed, their evidence is read in one statement for some hundreds, and each is judged by itself. */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { RefEvidence, SweepPolicy } from '../../model/evidence.ts'
import { eachGroup, leader, type Group } from '../../model/group.ts'
import { isRef } from '../../model/ids.ts'
import { sealInventory, type Expectation, type Inventory } from '../../model/inventory.ts'
import { rewindOf, type Rewind } from '../../model/own.ts'
import { resourceKey } from '../../model/removal.ts'
import { judge } from '../../model/verdict.ts'
import type { Verdict } from '../../model/verdict-case.ts'
import { evidenceOf } from '../../store/evidence.ts'
import type { EngineContext } from '../context.ts'
import { ownOf } from '../own.ts'
import type { Listing } from './listing.ts'
import type { SweepWork } from './load.ts'

const groupsAStatement = 200

export interface Judged {
  /** `provider/location/native-id` of the group's leader. */
  target: string
  group: Group
  evidence: RefEvidence | null
  verdict: Verdict
  /** A sign that this ledger is older than the world; null: it is none. */
  rewind: Rewind | null
}

export const seal = (work: SweepWork, listing: Listing, expectation: Expectation): Inventory =>
  sealInventory({
    startedAt: listing.startedAt,
    endedAt: listing.endedAt,
    locations: listing.locations,
    kinds: work.provider.kinds,
    coverage: listing.coverage,
    resources: listing.resources,
    expectation,
  })

export const judgeAll = async (context: EngineContext, listing: Listing, inventory: Inventory, given: SweepPolicy): Promise<Judged[]> => {
  // Anew, after the listing: another replica may have been started, or a key made, while it went on.
  const own = await context.store.read((session) => ownOf(session, given.installation, given.own.macSince !== null))
  const policy = { ...given, own }
  const groups: Group[] = []
  for (const group of eachGroup(listing.kept, policy.ownerKind)) {
    if (group !== null) groups.push(group)
    if (group === null || groups.length % groupsAStatement === 0) await yieldToOthers()
  }
  const judged: Judged[] = []
  for (let at = 0; at < groups.length; at += groupsAStatement) {
    const part = groups.slice(at, at + groupsAStatement)
    const refs = [...new Set(part.flatMap((group) => (group.ref !== null && isRef(group.ref) ? [group.ref] : [])))]
    const now = await context.store.now()
    const evidence = await context.store.read((session) => evidenceOf(session, refs, now))
    for (const group of part) {
      const known = (group.ref === null ? undefined : evidence.get(group.ref)) ?? null
      const { location, nativeId } = leader(group).resource
      const clock = { listingStartedAt: listing.startedAt, now }
      const verdict = judge(group, known, inventory, clock, policy)
      judged.push({
        target: resourceKey(policy.provider, location, nativeId),
        group,
        evidence: known,
        verdict,
        rewind: rewindOf(verdict.reason, group, own),
      })
    }
    await yieldToOthers()
  }
  return judged
}
