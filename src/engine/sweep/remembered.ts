/**
 * What protected a group when an earlier sweep told of it, and can't be listed now, may protect it still (leases R68): other kinds are judged without it (orphans
 * R102), but what is known to protect is not unknown.
 */
import type { Inventory } from '../../model/inventory.ts'
import { conclude, fact, type Verdict } from '../../model/verdict-case.ts'
import type { FindingRow } from '../../store/findings.ts'
import type { EngineContext } from '../context.ts'
import { openOf } from './findings.ts'
import type { Judged } from './judge-all.ts'
import type { SweepWork } from './load.ts'
import { shownMember, unshown, type ShownMember } from './shown.ts'

const whyStill = (inventory: Inventory, row: FindingRow, listed: readonly ShownMember[], { facts }: Verdict): Verdict | null => {
  const hidden = unshown(inventory, row, listed)
  if (hidden.length === 0) return null
  const names = hidden.map(({ kind = '', nativeId = '', location = '' }) => `${kind} ${nativeId} in ${location}`)
  return conclude('protected.member-not-listed', [
    ...facts.slice(0, 1),
    fact('listing', row.last_seen_at, `${row.message} (finding ${row.id})`),
    fact('coverage', inventory.startedAt, `can't be listed now: ${names.join(', ')}`),
  ])
}

export const rememberProtection = async (
  context: EngineContext,
  work: SweepWork,
  scope: string,
  inventory: Inventory,
  judged: Judged[],
): Promise<Judged[]> => {
  if (judged.every(({ verdict }) => verdict.kind !== 'orphan')) return judged
  const told = (await context.store.read((session) => openOf(session, work, scope))).filter((row) => row.code === 'protected')
  if (told.length === 0) return judged
  return judged.map((one) => {
    const { verdict, target, group } = one
    if (verdict.kind !== 'orphan') return one
    const listed = group.members.map(shownMember)
    const attempt = verdict.proofs[0]?.attemptId
    for (const row of told) {
      if (row.target_id !== target && row.attempt_id !== attempt) continue
      const still = whyStill(inventory, row, listed, verdict)
      if (still !== null) return { ...one, verdict: still }
    }
    return one
  })
}
