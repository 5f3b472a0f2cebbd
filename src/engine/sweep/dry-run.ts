/** What a sweep would do now: the same listing, judging and planning, and nothing written. Its only calls are scope, list and read. */
import { sweepOutcome } from '../../model/sweep.ts'
import type { EngineContext } from '../context.ts'
import { certificateOf, type Certificate } from './certificate.ts'
import { countNewlyDenied } from './denied.ts'
import { advanceOrphan, openOf, type Noted } from './findings.ts'
import { factsOf, factsWithout } from './index.ts'
import type { SweepWork } from './load.ts'
import { loadApproved } from './approved.ts'
import { beginsNow, countsIn, eligibleOrphans, planSweep, type OrphanEntry, type Planned } from './plan.ts'
import { inspect } from './run.ts'

export interface DryRun {
  certificate: Certificate
  orphans: Noted[]
  /** What `delete` mode would begin or put off, whatever the mode is. */
  plan: Planned | null
  /** All whose quarantine has ended, and where: null where nothing was listed. */
  eligible: { entries: OrphanEntry[]; scope: string; oursInScope: number } | null
}

export const dryRun = async (context: EngineContext, work: SweepWork, signal: AbortSignal): Promise<DryRun> => {
  const inspection = await inspect(context, work, signal)
  // A listing that raised because whoever asked went away is no failed sweep.
  signal.throwIfAborted()
  const now = await context.store.now()
  const mode = work.settings.mode.value
  if (inspection.kind !== 'inspected') {
    const ended = sweepOutcome(factsWithout(inspection))
    return {
      certificate: certificateOf(inspection, mode, ['dry-run'], null, ended, now, new Map()),
      orphans: [],
      plan: null,
      eligible: null,
    }
  }
  return context.store.read(async (session) => {
    const before = new Map(
      (await openOf(session, work, inspection.scope)).filter((row) => row.code === 'orphan').map((row) => [row.target_id, row]),
    )
    const orphans = inspection.judged
      .filter((one) => one.verdict.kind === 'orphan')
      .map((one) => advanceOrphan(work, inspection.inventory, one, before.get(one.target)))
    const eligible = eligibleOrphans(work, inspection.inventory, orphans, now)
    const { scope, inventory, oursInScope } = inspection
    const approved = await loadApproved(session, work)
    const { ownerKind } = work.provider
    const input = { scope, ownerKind, eligible, approved, counts: countsIn(work, inventory), oursInScope, limits: work.limits }
    const plan = await planSweep(session, input, now)
    const newlyDenied = await countNewlyDenied(session, work, inspection)
    const planned = mode === 'delete' ? plan : null
    const facts = factsOf(inspection, orphans, { eligible: eligible.length, plan: planned, newlyDenied })
    // Nothing of the plan is under way: a dry run begins nothing.
    const toBegin = planned === null ? 0 : beginsNow(planned).length
    const ended = sweepOutcome({ ...facts, deletionsInProgress: facts.deletionsInProgress - toBegin, deletionsToBegin: toBegin })
    return {
      certificate: certificateOf(inspection, mode, ['dry-run'], plan, ended, now, new Map()),
      orphans,
      plan,
      eligible: { entries: eligible, scope, oursInScope },
    }
  })
}
