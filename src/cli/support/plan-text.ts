/** Plans for people: what would go, each with its proof. */
import { counted } from '../../lib/counted.ts'
import { shortPlanId } from '../../model/limits.ts'
import type { PlanView } from '../../model/wire.ts'
import type { Cli } from './cli.ts'
import { printable, relative } from './text.ts'

const became = (plan: PlanView, target: string): string => {
  if (plan.state === 'waiting') return ''
  const hold = plan.held.find((one) => one.target === target)
  if (hold !== undefined) return `dropped: held by ${hold.by}`
  if (plan.dropped.includes(target)) return 'dropped: it changed before it could begin'
  return plan.pending.includes(target) ? 'waits for a sweep that sees its place wholly' : 'begun'
}

const nextStep = (plan: PlanView): string => {
  switch (plan.state) {
    case 'waiting':
      return `leasehold approve ${shortPlanId(plan.id)}   begins exactly this, where sweeps run in mode delete; what changed until then is dropped`
    case 'approved':
      return 'the next sweep begins it; "leasehold sweep" does so now'
    case 'begun':
    case 'dropped':
      return `leasehold receipt TARGET   tells what became of one of them`
  }
}

export const describePlan = (cli: Cli, plan: PlanView): string => {
  const now = cli.io.now()
  const head = `${plan.id}\n${plan.state}: ${counted(plan.removals.length, 'removal')} on backend ${plan.project}/${plan.backend} (${printable(plan.scope)}), of ${plan.oursInScope} groups of ours there\n`
  const made = `made by ${printable(plan.madeBy)} ${relative(plan.madeAt, now)}${plan.why === null ? '' : `: ${printable(plan.why)}`}\n`
  const approval =
    plan.approvedBy === null
      ? ''
      : `approved by ${printable(plan.approvedBy)} ${relative(plan.approvedAt, now)}${plan.approvalReason ? `: ${printable(plan.approvalReason)}` : ''}\n`
  const each = plan.removals.map((one) => {
    const what = became(plan, one.target)
    const seen = `${one.rule}; seen ${one.timesSeen}x, first ${relative(one.firstSeenAt, now)}`
    const proof = one.proof.map((fact) => `      ${printable(fact)}\n`).join('')
    return `  ${printable(one.target)}  ${printable(one.name)}  ${seen}${what === '' ? '' : `  [${what}]`}\n${proof}`
  })
  return `${head}${made}${approval}${each.join('')}${nextStep(plan)}\n`
}
