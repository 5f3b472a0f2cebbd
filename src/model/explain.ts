/** Why something is judged as it is: the evidence as a tree, what holds it back and until when, and what would change the verdict. */
import { counted } from '../lib/counted.ts'
import { briefDuration } from '../lib/duration.ts'
import type { Fact } from './evidence.ts'
import type { PlanDecision } from './limits.ts'
import { eligibleAt, inventoriesMissing, isEligible, type Quarantine } from './quarantine.ts'
import type { SweepMode } from './sweep-settings.ts'
import { reasonOf } from './verdict-reasons.ts'
import type { VerdictKind } from './verdict-reasons.ts'
import type { Verdict } from './verdict-case.ts'

export interface ExplanationNode {
  fact: string
  /** Who says so: a `FactSource`, or `verdict`, `quarantine`, `plan`, `mode`. */
  source: string
  /** ms; null: it has no time of its own. */
  at: number | null
  children: readonly ExplanationNode[]
}

export interface HeldBack {
  what: string
  /** ms; null: not by time alone. */
  until: number | null
}

export interface Explanation {
  subject: string
  tree: ExplanationNode
  heldBack: readonly HeldBack[]
  change: string
}

export interface ExplainInput {
  subject: string
  verdict: Verdict
  judgedAt: number
  quarantine: Quarantine | null
  mode: SweepMode
  graceMs: number
  /** The plan that it is, or would be, in; null: none was made. */
  plan: PlanDecision | null
  /** Who or what stops removals of it: a hold or a freeze (see `heldBy`). */
  stoppedBy: string | null
  now: number
}

const node = (source: string, at: number | null, fact: string, children: readonly ExplanationNode[] = []): ExplanationNode => ({
  fact,
  source,
  at,
  children,
})

const quarantineNode = (quarantine: Quarantine, input: ExplainInput): ExplanationNode =>
  node('quarantine', quarantine.firstSeenAt, 'the same fingerprint has stood since', [
    node(
      'quarantine',
      quarantine.lastSeenAt,
      `${counted(quarantine.timesSeen, 'complete inventory', 'complete inventories')} showed it unchanged, the last one`,
    ),
    node('quarantine', input.now, `grace is ${briefDuration(input.graceMs)}`),
  ])

/** Why a verdict other than orphan takes nothing back: the rule, as the verdict's own text gives the case. */
const rules: Record<Exclude<VerdictKind, 'orphan'>, string> = {
  tracked: 'what an active instance has is never taken back',
  held: 'what somebody holds is never taken back',
  inFlight: 'nothing is taken back while somebody may be at work on it',
  settling: 'nothing is judged so close to a change',
  missing: 'nothing is taken back because something else is not shown',
  foreign: 'what is not ours is never touched',
  contradiction: 'what contradicts itself is never touched: a person decides',
  protected: 'what is protected, or may be, is never taken back',
  unseen: 'nothing is concluded from what a listing does not show',
}

/** In the order in which it would have to be overcome. */
const holdsBack = (input: ExplainInput): HeldBack[] => {
  const { verdict, quarantine, plan } = input
  if (verdict.kind !== 'orphan') return [{ what: rules[verdict.kind], until: verdict.until }]
  const held: HeldBack[] = []
  if (input.stoppedBy !== null) held.push({ what: input.stoppedBy, until: null })
  if (input.mode !== 'delete') held.push({ what: `the mode is ${input.mode}: sweeps remove nothing`, until: null })
  if (quarantine === null) held.push({ what: 'it is in no quarantine yet: no complete inventory has counted it', until: null })
  else if (!isEligible(quarantine, input.graceMs, input.now)) {
    const missing = inventoriesMissing(quarantine, input.graceMs)
    held.push({
      what: `quarantine: ${counted(missing, 'more complete inventory', 'more complete inventories')} must show it unchanged, the last at or after its end`,
      until: eligibleAt(quarantine, input.graceMs),
    })
  }
  if (plan?.kind === 'wait') held.push({ what: `plan ${plan.id} is beyond the limits: ${plan.why}; ${plan.whatToDo}`, until: null })
  if (plan?.kind === 'begin' && plan.why !== null && plan.later.length > 0) held.push({ what: `plan ${plan.id}: ${plan.why}`, until: null })
  return held
}

export const explain = (input: ExplainInput): Explanation => {
  const { verdict } = input
  const reason = reasonOf(verdict.reason)
  const facts = verdict.facts.map((fact: Fact) => node(fact.source, fact.at, fact.fact))
  const children = input.quarantine === null ? facts : [...facts, quarantineNode(input.quarantine, input)]
  const heldBack = holdsBack(input)
  const free = verdict.kind === 'orphan' && heldBack.length === 0
  const change = free ? `${reason.change}; nothing holds it back, and the next sweep takes it` : reason.change
  return {
    subject: input.subject,
    tree: node('verdict', input.judgedAt, `${verdict.kind} (${verdict.reason}): ${reason.text}`, children),
    heldBack,
    change,
  }
}

const iso = (ms: number): string => new Date(ms).toISOString()
const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim()

const when = (at: number, now: number): string =>
  at <= now ? `${iso(at)}, ${briefDuration(now - at)} ago` : `${iso(at)}, in ${briefDuration(at - now)}`

const nodeLines = (one: ExplanationNode, now: number, indent: string): string[] => [
  `${indent}${oneLine(one.fact)} [${one.source}${one.at === null ? '' : `, ${when(one.at, now)}`}]`,
  ...one.children.flatMap((child) => nodeLines(child, now, `${indent}  `)),
]

/** One fact a line, then what holds it back, and in the last line what would change the verdict. */
export const renderExplanation = (explanation: Explanation, now: number): string[] => [
  oneLine(explanation.subject),
  ...nodeLines(explanation.tree, now, '  '),
  ...explanation.heldBack.map((held) =>
    oneLine(`Held back by: ${held.what}${held.until === null ? '' : `, until ${when(held.until, now)}`}`),
  ),
  oneLine(`What would change this verdict: ${explanation.change}`),
]
