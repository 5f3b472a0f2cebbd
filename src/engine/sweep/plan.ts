/** From eligible orphans to removals: under limits, and only what was proved (I6, I8). */
import { sha256 } from '../../lib/sha256.ts'
import { isEligible } from '../../model/quarantine.ts'
import { compare } from '../../model/group.ts'
import { countsFor, type Inventory } from '../../model/inventory.ts'
import { canariesOf, type Canary, type LimitPolicy, type PlanDecision, type PlanEntry } from '../../model/limits.ts'
import { planWith, type ApprovedPlan, type Granted } from '../../model/plans.ts'
import type { Session, Tx } from '../../store/store.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import { rowsIn } from '../../store/bulk.ts'
import { instancesByIds } from '../../store/instances.ts'
import { unfinishedRemovalsOf } from '../../store/removals.ts'
import type { AttemptId, InstanceId, Ref } from '../../model/ids.ts'
import type { RemovalEvidence } from '../../model/removal-evidence.ts'
import { membersIn, objectIn } from '../../model/removal-record.ts'
import { isFound, isOpenRemoval } from '../../model/removal.ts'
import { shapeOfGroup } from '../../model/verdict-protection.ts'
import type { Ended } from '../ended.ts'
import { openRemovals } from '../open-removals.ts'
import type { Noted } from './findings.ts'
import { fingerprintOf } from './findings.ts'
import type { SweepWork } from './load.ts'
import { findingsOf, stoodOn, type Ground } from './stood-on.ts'

const dayMs = 86_400_000
/**
 * A day's removals are 100 at most, so this reaches back for days. A kind of removal that is so long ago that none of it is among them begins as a canary
 * again, which is the careful side.
 */
const historyLimit = 500

export interface OrphanEntry extends PlanEntry {
  noted: Noted
}

/** Only where this inventory counts: what a tripped guard or a failed page makes doubtful is not taken back on the word of earlier ones (leases R55). */
export const eligibleOrphans = (work: SweepWork, inventory: Inventory, noted: readonly Noted[], now: number): OrphanEntry[] =>
  noted.flatMap((one): OrphanEntry[] => {
    const { judged, quarantine } = one
    if (judged.verdict.kind !== 'orphan' || quarantine === null || !isEligible(quarantine, work.settings.graceMs.value, now)) return []
    if (!countsFor(inventory, judged.group.location, work.provider.ownerKind)) return []
    // A listing that began no later than the last one that counted starts no quarantine afresh; what changed in it is not taken back all the same.
    if (fingerprintOf(work, judged, 'orphan') !== quarantine.fingerprint) return []
    const kind = judged.group.members[0]?.resource.kind ?? ''
    return [
      {
        target: judged.target,
        provider: work.backend.provider,
        kind,
        rule: judged.verdict.reason,
        fingerprint: quarantine.fingerprint,
        noted: one,
      },
    ]
  })

/** Did this inventory show the place of an entry wholly? */
export const countsIn =
  (work: SweepWork, inventory: Inventory) =>
  ({ target }: PlanEntry): boolean =>
    countsFor(inventory, target.split('/')[1] ?? '', work.provider.ownerKind)

/** Of the resource by which people name a group: its owner, else the first of the others (see `formGroups`). */
const leaderKind = (kinds: readonly string[], ownerKind: string): string =>
  kinds.includes(ownerKind) ? ownerKind : (kinds.toSorted(compare)[0] ?? '')

/** What sweeps have removed in this scope lately: for the day's limit, and for how far each kind of removal is trusted. */
const history = async (
  session: Session,
  scope: string,
  ownerKind: string,
  now: number,
): Promise<{ begunInLastDay: number; canaries: ReadonlyMap<string, Canary>; failing: number; inProgress: number }> => {
  const rows = await session.db
    .selectFrom('removals')
    .select(['id', 'provider', 'cause', 'identity', 'planned', 'state', 'failures', 'first_failed_at', 'held_by'])
    .select((select) => select.fn.coalesce('continued_at', 'begun_at', 'opened_at').as('begunAt'))
    .where('scope', '=', scope as never)
    .where('cause', 'like', 'orphan.%')
    .orderBy('begunAt', 'desc')
    .orderBy('id', 'desc')
    .limit(historyLimit)
    .execute()
  const canaries = canariesOf(
    rows.map((row) => ({
      provider: row.provider,
      kind: leaderKind(
        (membersIn(row.planned ?? row.identity) ?? []).map((one) => one.kind),
        ownerKind,
      ),
      rule: row.cause,
      openedAt: row.begunAt,
      gone: row.state === 'gone',
      stopped: row.state === 'gave-up' || row.state === 'closed' || row.held_by !== null,
      failed: row.failures > 0 || row.first_failed_at !== null,
    })),
  )
  const open = rows.filter((row) => isOpenRemoval(row.state))
  return {
    begunInLastDay: rows.filter((row) => row.begunAt > now - dayMs).length,
    canaries,
    failing: open.filter((row) => row.failures > 0).length,
    inProgress: open.filter((row) => row.failures === 0).length,
  }
}

const attemptOf = ({ noted: { judged } }: OrphanEntry): AttemptId[] =>
  judged.verdict.kind === 'orphan' ? judged.verdict.proofs.slice(0, 1).map((proof) => proof.attemptId as AttemptId) : []

/** Says of each whether it was dropped when it was tried last, as it stands now: only a drop leaves what a sweep found given up. */
const withDropped = async (session: Session, eligible: readonly OrphanEntry[]): Promise<OrphanEntry[]> => {
  const rows = await unfinishedRemovalsOf(session, eligible.flatMap(attemptOf))
  const dropped = new Set(
    rows
      .filter((row) => row.state === 'gave-up' && isFound(row.cause) && row.evidence !== null)
      .map((row) => `${row.attempt_id} ${objectIn<RemovalEvidence>(row.evidence)?.found?.fingerprint}`),
  )
  return eligible.map((entry) => (dropped.has(`${attemptOf(entry)[0]} ${entry.fingerprint}`) ? { ...entry, dropped: true } : entry))
}

export interface Planned {
  decision: PlanDecision<OrphanEntry>
  /** Approved plans, and what of each begins. */
  granted: Granted<OrphanEntry>[]
  failing: number
  inProgress: number
}

export interface PlanInput {
  scope: string
  ownerKind: string
  eligible: readonly OrphanEntry[]
  approved: readonly ApprovedPlan[]
  /** Did this inventory show where that entry is, wholly? */
  counts: (entry: PlanEntry) => boolean
  oursInScope: number
  limits: LimitPolicy
}

export const planSweep = async (session: Session, input: PlanInput, now: number): Promise<Planned> => {
  const { failing, inProgress, ...past } = await history(session, input.scope, input.ownerKind, now)
  const { oursInScope, limits } = input
  const eligible = await withDropped(session, input.eligible)
  const plan = planWith(eligible, input.approved, input.counts, now, { ...past, oursInScope, hash: sha256 }, limits)
  return { ...plan, failing, inProgress }
}

/** Everything that begins now: what was approved, and what the limits let pass. */
export const beginsNow = (plan: Planned): OrphanEntry[] => [
  ...plan.granted.flatMap((one) => one.begin),
  ...(plan.decision.kind === 'begin' ? plan.decision.entries : []),
]

/** Opens the removals of a plan that begins, each with the ground that it stands on; the caller has checked the fence. */
export const beginPlan = async (tx: Tx, entries: readonly OrphanEntry[], ground: Ground): Promise<void> => {
  const attemptIds = entries.flatMap(({ noted }) =>
    noted.judged.verdict.kind === 'orphan' ? [noted.judged.verdict.proofs[0]?.attemptId ?? ''] : [],
  )
  const attempts = new Map((await rowsIn(tx, 'attempts', 'id', attemptIds)).map((row): [string, AttemptRow] => [row.id, row]))
  const instances = new Map(
    (
      await instancesByIds(
        tx,
        [...attempts.values()].map((row) => row.instance_id),
      )
    ).map((row) => [row.id, row]),
  )
  const findings = await findingsOf(tx, entries, ground)
  const ended = entries.flatMap((entry): Ended[] => {
    const { noted, provider } = entry
    const { group, verdict, evidence } = noted.judged
    const attempt = verdict.kind === 'orphan' ? attempts.get(verdict.proofs[0]?.attemptId ?? '') : undefined
    const ledger = evidence?.ledger
    if (!attempt || !ledger || verdict.kind !== 'orphan') return []
    const gone = {
      id: ledger.ownerId as InstanceId,
      name: ledger.ownerName,
      project: ledger.project,
      provider,
      ref: group.ref as Ref,
      state: 'terminated' as const,
    }
    const shape = shapeOfGroup(group, evidence, ground.topology)
    if (shape.kind !== 'exact') return []
    const members = shape.members.map(({ seen }) => ({ ...seen.resource, scope: attempt.scope, facts: {} }))
    const found = stoodOn(entry, findings.get(entry.target) ?? null, ground)
    const opened = { instance: instances.get(attempt.instance_id) ?? gone, lease: null, attempt, cause: verdict.reason, members }
    return [found ? { ...opened, found } : opened]
  })
  await openRemovals(tx, ended)
}
