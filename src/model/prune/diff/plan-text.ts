/** A plan for people: what changes first, one line an object, one line a field. */
import type { PlanAction, PlanEntry, ReleasePlan } from './plan.ts'

const signs: Readonly<Record<PlanAction, string>> = {
  create: '+ create',
  update: '~ update',
  delete: '- delete',
  blocked: '! blocked',
  taken: '! taken',
  unknown: '? unknown',
  unmanaged: '. unmanaged',
  unchanged: '  unchanged',
}
const order = Object.keys(signs) as PlanAction[]

/** Ends in a line feed. What does not change is only counted. */
export const planText = (plan: ReleasePlan): string => {
  const count = (action: PlanAction): number => plan.entries.filter((one) => one.action === action).length
  const shown = plan.entries
    .filter((one) => one.action !== 'unchanged')
    .toSorted((a, b) => order.indexOf(a.action) - order.indexOf(b.action))
    .flatMap(entryLines)
  const missing = plan.missing.map((one) => `! missing   ${one.kind} ${one.name}: it is external, and the Swarm does not have it`)
  const unknown = plan.unknown.map((one) => `? unknown   every ${one.kind}: ${one.why}`)
  const counts = order.filter((one) => count(one) > 0).map((one) => `${count(one)} ${one}`)
  return `${[`release ${plan.release}: ${counts.length === 0 ? 'nothing declared' : counts.join(', ')}`, ...shown, ...missing, ...unknown].join('\n')}\n`
}

const entryLines = (one: PlanEntry): string[] => [
  `${signs[one.action].padEnd(11)} ${one.kind} ${one.name}${one.why === null ? '' : `: ${one.why}`}`,
  ...one.changes.map(({ field, from, to }) => `              ${field}: ${from ?? '(not there)'} -> ${to ?? '(not there)'}`),
]
