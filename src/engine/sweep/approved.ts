/** Plans between a sweep and a person: written down to be looked through, and begun once they are approved. */
import { redact } from '../../lib/redact.ts'
import { shortPlanId, type PlanEntry } from '../../model/limits.ts'
import { planMs, type ApprovedPlan, type Granted } from '../../model/plans.ts'
import type { PlanApproval } from '../../model/removal-evidence.ts'
import type { PlannedRemoval } from '../../model/wire.ts'
import type { ScopeId } from '../../model/ids.ts'
import { appendEvents } from '../../store/events.ts'
import { approvedPlans, dropOldPlans, planById, savePlan, type PlanRow } from '../../store/plans.ts'
import type { Session, Tx } from '../../store/store.ts'
import { event, type Target } from '../record.ts'
import { iso } from '../views.ts'
import type { Judged } from './judge-all.ts'
import type { SweepWork } from './load.ts'
import type { OrphanEntry } from './plan.ts'
import { findingsOf } from './stood-on.ts'

const mostFacts = 12

/** Whom events about a plan are about. */
export const planTargets = (row: Pick<PlanRow, 'id' | 'project' | 'backend'>): Target[] => [
  { type: 'plan', id: row.id, name: shortPlanId(row.id) },
  { type: 'backend', id: `${row.project}/${row.backend}`, name: row.backend },
]

export const entriesOf = (row: Pick<PlanRow, 'entries'>): PlannedRemoval[] => JSON.parse(row.entries) as PlannedRemoval[]

const shown = (entry: OrphanEntry, finding: string | null): PlannedRemoval => {
  const { judged, quarantine } = entry.noted
  const { verdict, group } = judged
  return {
    target: entry.target,
    provider: entry.provider,
    kind: entry.kind,
    rule: entry.rule,
    fingerprint: entry.fingerprint,
    name: redact(group.members[0]?.name ?? entry.target),
    ref: group.ref ?? '',
    findingID: finding,
    firstSeenAt: iso(quarantine?.firstSeenAt ?? 0),
    lastSeenAt: iso(quarantine?.lastSeenAt ?? 0),
    timesSeen: quarantine?.timesSeen ?? 0,
    proof: verdict.kind === 'orphan' ? verdict.facts.slice(0, mostFacts).map((one) => redact(one.fact)) : [],
  }
}

export interface NewPlan {
  id: string
  scope: string
  entries: readonly OrphanEntry[]
  oursInScope: number
  /** Which limit it is beyond; null: a person asked for it. */
  why: string | null
  madeBy: string
}

export const writePlan = async (tx: Tx, work: SweepWork, plan: NewPlan): Promise<void> => {
  const findings = await findingsOf(tx, plan.entries, { project: work.backend.project, scope: plan.scope })
  const { project, name, provider } = work.backend
  await dropOldPlans(tx, project, name, tx.now - planMs)
  await savePlan(tx, {
    id: plan.id,
    project,
    backend: name,
    provider,
    scope: plan.scope as ScopeId,
    entries: JSON.stringify(plan.entries.map((entry) => shown(entry, findings.get(entry.target) ?? null))),
    pending: JSON.stringify(plan.entries.map((entry) => entry.target)),
    dropped: '[]',
    ours: plan.oursInScope,
    why: plan.why,
    state: 'waiting',
    made_by: plan.madeBy,
    approved_by: null,
    approved_at: null,
    approval_reason: null,
    settled_at: null,
  })
}

/** What was approved for this backend and is not settled yet. */
export const loadApproved = async (session: Session, work: SweepWork): Promise<ApprovedPlan[]> =>
  (await approvedPlans(session, work.backend.project, work.backend.name)).map((row) => {
    const pending = new Set(JSON.parse(row.pending) as string[])
    return { id: row.id, approvedAt: row.approved_at ?? 0, pending: entriesOf(row).filter((entry) => pending.has(entry.target)) }
  })

/** Who let it begin, for those who ask when the plan is long gone. */
export const approvalOf = async (session: Session, id: string): Promise<PlanApproval | null> => {
  const row = await planById(session, id)
  if (row?.approved_by == null) return null
  return { by: row.approved_by, reason: row.approval_reason ?? '', at: row.approved_at ?? 0, madeBy: row.made_by }
}

/** What a plan did not begin. A version before this one wrote the target alone. */
export type Dropped = string | { target: string; by: string }
export const droppedOf = (row: Pick<PlanRow, 'dropped'>): { target: string; by: string | null }[] =>
  (JSON.parse(row.dropped) as Dropped[]).map((one) => (typeof one === 'string' ? { target: one, by: null } : one))

/** Which hold each group met in this sweep, by target. */
export const holdsMet = (judged: readonly Judged[]): Map<string, string> =>
  new Map(
    judged.flatMap(({ target, verdict }): [string, string][] => {
      const hold = verdict.reason === 'protected.hold' ? verdict.facts.find((one) => one.source === 'hold') : undefined
      return hold === undefined ? [] : [[target, hold.fact]]
    }),
  )

const targetsOf = (entries: readonly PlanEntry[]): string[] => entries.map((entry) => entry.target)

/** What became of approved plans with this sweep; the caller has begun what begins. */
export const settleGranted = async (tx: Tx, work: SweepWork, all: readonly Granted[], held: ReadonlyMap<string, string>): Promise<void> => {
  for (const one of all) {
    const row = await tx.db.selectFrom('plans').selectAll().where('id', '=', one.id).executeTakeFirst()
    if (!row) continue
    const dropped: Dropped[] = [
      ...(JSON.parse(row.dropped) as Dropped[]),
      ...targetsOf(one.dropped).map((target) => {
        const by = held.get(target)
        return by === undefined ? target : { target, by }
      }),
    ]
    const settled = one.pending.length === 0
    const begunAny = entriesOf(row).length > dropped.length
    await tx.db
      .updateTable('plans')
      .set({
        pending: JSON.stringify(targetsOf(one.pending)),
        dropped: JSON.stringify(dropped),
        ...(settled ? { state: begunAny ? ('begun' as const) : ('dropped' as const), settled_at: tx.now } : {}),
      })
      .where('id', '=', one.id)
      .execute()
    if (one.begin.length === 0 && one.dropped.length === 0) continue
    const targets = planTargets(row)
    const payload = { begun: one.begin.length, dropped: one.dropped.length, pending: one.pending.length }
    await appendEvents(tx, [event(tx, 'plan.begun', payload, { project: work.backend.project, targets })])
  }
}
