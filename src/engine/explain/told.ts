/** What an explanation is made of before it goes to the wire, and the small words that all of them share. Times in ms. */
import type { Explanation, ExplanationNode, HeldBack } from '../../model/explain.ts'

export interface Told extends Explanation {
  /** What the key turned out to name. */
  type: string
  project: string | null
  /** A verdict of sweeps, or `gone`, `unknown`, `ended`, or what a thing of its own kind can be (the outcome of a sweep). */
  verdict: string
  /** The reason code, where a sweep judged. */
  reason: string | null
}

/** Something concluded from our own rows. */
export interface Conclusion {
  verdict: string
  reason: string | null
  text: string
  heldBack: readonly HeldBack[]
  change: string
}

export const node = (
  source: string,
  at: number | null,
  fact: string,
  children: readonly (ExplanationNode | null)[] = [],
): ExplanationNode => ({
  fact,
  source,
  at,
  children: children.filter((child) => child !== null),
})

export const stamp = (ms: number): string => new Date(ms).toISOString()

/** The tree's root says the verdict, as that of a sweep does. */
export const conclusionNode = (
  one: Pick<Conclusion, 'verdict' | 'reason' | 'text'>,
  at: number,
  children: readonly (ExplanationNode | null)[],
): ExplanationNode => node('verdict', at, `${one.verdict}${one.reason === null ? '' : ` (${one.reason})`}: ${one.text}`, children)
