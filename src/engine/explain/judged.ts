/** What sweeps judged, as their findings keep it, with everything that holds the consequence back. One place for `explain`, `sweep` and `orphans`. */
import type { PlanDecision } from '../../model/limits.ts'
import { explain, type Explanation } from '../../model/explain.ts'
import { isEligible, type Quarantine } from '../../model/quarantine.ts'
import { heldBy, type HoldFacts } from '../../model/removal.ts'
import type { SweepSettings } from '../../model/sweep-settings.ts'
import { verdictReasons, type VerdictReason } from '../../model/verdict-reasons.ts'
import type { Verdict } from '../../model/verdict-case.ts'
import { rowsIn } from '../../store/bulk.ts'
import type { FindingRow } from '../../store/findings.ts'
import { instancesByIds } from '../../store/instances.ts'
import { openRemovalsOf, type RemovalRow } from '../../store/removals.ts'
import type { Session } from '../../store/store.ts'
import type { AttemptId } from '../../model/ids.ts'
import type { EngineContext } from '../context.ts'
import { readObstacles } from '../../store/obstacles.ts'
import type { Certificate } from '../sweep/certificate.ts'
import { quarantineOf } from '../sweep/findings.ts'

export interface Judgement {
  verdict: Verdict
  judgedAt: number
}

/** Null: no sweep judged it, or in words that this binary does not know. */
export const judgementOf = (row: FindingRow): Judgement | null => {
  const evidence = JSON.parse(row.evidence) as { verdict?: Omit<Verdict, 'reason'> & { reason?: string }; judgedAt?: number }
  const { verdict, judgedAt } = evidence
  if (verdict?.reason === undefined || !Object.hasOwn(verdictReasons, verdict.reason)) return null
  return { verdict: { ...verdict, proofs: [] } as unknown as Verdict, judgedAt: judgedAt ?? row.last_seen_at }
}

/** `provider/location/native-id` begins with the provider. */
export const providerOfTarget = (target: string): string => target.slice(0, Math.max(0, target.indexOf('/')))

/** What the plan of a certificate means for one of its orphans. Null: it is in none, or is being taken back by it. */
const planFor = (plan: Certificate['plan'] | undefined, target: string, eligible: boolean): PlanDecision | null => {
  if (plan == null || !eligible) return null
  const id = plan.id ?? ''
  const why = plan.why ?? ''
  if (plan.kind === 'wait') return { kind: 'wait', id, entries: [], limit: 'sweep', allowed: 0, why, whatToDo: plan.whatToDo ?? '' }
  const entry = { target, provider: '', kind: '', rule: '', fingerprint: '' }
  return plan.removals.includes(target) ? null : { kind: 'begin', id, entries: [], later: [entry], why }
}

export interface Standing extends Judgement {
  target: string
  name: string
  findingId: string | null
  quarantine: Quarantine | null
  settings: SweepSettings
  plan: PlanDecision | null
  stoppedBy: string | null
  /** The open removal of what its attempt made. */
  removal: RemovalRow | null
}

export interface Subject extends Judgement {
  target: string
  name: string
  findingId: string | null
  attemptId: string | null
  project: string | null
  scope: string | null
  quarantine: Quarantine | null
  /** The plan of the sweep that judged it. */
  plan: Certificate['plan'] | undefined
}

/** Adds to each what stands in its way now: holds, freezes, plans, and its own removal. */
export const standingOf = async (
  session: Session,
  context: EngineContext,
  subjects: readonly Subject[],
  now: number,
): Promise<Standing[]> => {
  if (subjects.length === 0) return []
  const attemptIds = subjects.flatMap((one) => (one.attemptId === null ? [] : [one.attemptId as AttemptId]))
  const attempts = new Map((await rowsIn(session, 'attempts', 'id', attemptIds)).map((row) => [row.id as string, row]))
  const instances = new Map(
    (
      await instancesByIds(
        session,
        [...attempts.values()].map((row) => row.instance_id),
      )
    ).map((row): [string, string | null] => [row.id, row.lease_id]),
  )
  const removals = new Map((await openRemovalsOf(session, attemptIds)).map((row): [string, RemovalRow] => [row.attempt_id, row]))
  const { holds, frozenScopes } = await readObstacles(session, now)
  return subjects.map((one) => {
    const settings = context.sweepSettings(providerOfTarget(one.target))
    const attempt = attempts.get(one.attemptId ?? '')
    const instanceId = attempt?.instance_id ?? ''
    const about = {
      resourceKeys: [one.target],
      instanceId,
      leaseId: instances.get(instanceId) ?? null,
      project: one.project ?? '',
      scope: one.scope ?? '',
      ...(attempt === undefined ? {} : { madeAt: attempt.opened_at }),
    }
    const eligible = one.quarantine !== null && isEligible(one.quarantine, settings.graceMs.value, now)
    const { target, name, findingId, quarantine, verdict, judgedAt } = one
    const plan = planFor(one.plan, target, eligible)
    const stoppedBy = heldBy(about, holds as HoldFacts[], frozenScopes)
    return {
      target,
      name,
      findingId,
      quarantine,
      verdict,
      judgedAt,
      settings,
      plan,
      stoppedBy,
      removal: removals.get(one.attemptId ?? '') ?? null,
    }
  })
}

/** The findings of sweeps as subjects; those that no sweep judged are left out. */
export const subjectsOf = async (session: Session, rows: readonly FindingRow[]): Promise<Subject[]> => {
  const ids = [...new Set(rows.flatMap((row) => (row.sweep_id === null ? [] : [row.sweep_id])))]
  const plans = new Map(
    (await rowsIn(session, 'sweeps', 'id', ids)).map((row) => [row.id, (JSON.parse(row.certificate ?? '{}') as Partial<Certificate>).plan]),
  )
  return rows.flatMap((row): Subject[] => {
    const judgement = judgementOf(row)
    if (judgement === null) return []
    const { target_id: target, target_name: name, id: findingId, attempt_id: attemptId, project, scope } = row
    return [
      {
        ...judgement,
        target,
        name,
        findingId,
        attemptId,
        project,
        scope,
        quarantine: quarantineOf(row),
        plan: plans.get(row.sweep_id ?? ''),
      },
    ]
  })
}

export const explainStanding = (one: Standing, subject: string, now: number): Explanation & { reason: VerdictReason } => ({
  ...explain({
    subject,
    verdict: one.verdict,
    judgedAt: one.judgedAt,
    quarantine: one.quarantine,
    mode: one.settings.mode.value,
    graceMs: one.settings.graceMs.value,
    plan: one.plan,
    stoppedBy: one.stoppedBy,
    now,
  }),
  reason: one.verdict.reason,
})
