/** A resource as a listing showed it, with what a verdict on it rests on: from a finding's evidence, or from a look just now. */
import type { ExplanationNode } from '../../model/explain.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import type { ShownMember } from '../sweep/shown.ts'
import { node } from './told.ts'

/** Attempts whose tokens may be named. */
export type Tokens = readonly Pick<AttemptRow, 'id' | 'number' | 'token'>[]

const attemptOf = (token: string, attempts: Tokens): string => {
  const known = attempts.find((attempt) => attempt.token === token)
  return known ? `attempt ${known.number} (${known.id})` : 'no attempt of this ref that is known'
}

const fixedText = (token: string | null, attempts: Tokens): string =>
  token === null
    ? 'nothing that was fixed at its creation names an attempt'
    : `fixed at its creation: the token of ${attemptOf(token, attempts)}`

const tagText = ({ installation, attempt }: NonNullable<ShownMember['tags']>, attempts: Tokens): string =>
  `its tags, which can be copied, name ${installation === null ? 'no installation' : `installation ${installation}`} and ${
    attempt === null ? 'no attempt' : `the token of ${attemptOf(attempt, attempts)}`
  }`

/** @param seenAt when the listing began that showed it */
const memberNode = (one: ShownMember, seenAt: number, attempts: Tokens): ExplanationNode => {
  const { createdAt, fixedAttemptToken: token, tags, attachedTo } = one
  const said = (fact: string): ExplanationNode => node('listing', seenAt, fact)
  return node('listing', seenAt, `${one.kind} ${one.nativeId}${one.state === undefined ? '' : ` is ${one.state}`}`, [
    createdAt === undefined || createdAt === null
      ? createdAt === null
        ? said('the provider does not say when it was made')
        : null
      : node('listing', createdAt, 'the provider says that it was made then'),
    token === undefined ? null : said(fixedText(token, attempts)),
    tags === undefined ? null : said(tagText(tags, attempts)),
    attachedTo === undefined
      ? null
      : said(attachedTo.length === 0 ? 'it is attached to nothing' : `it is attached to ${attachedTo.join(', ')}`),
  ])
}

/** Puts them under the first fact of the listing, which names them. */
export const withMembers = (tree: ExplanationNode, members: readonly ShownMember[], attempts: Tokens): ExplanationNode => {
  const at = tree.children.findIndex((child) => child.source === 'listing')
  const listed = tree.children[at]
  if (!listed || members.length === 0) return tree
  const nodes = members.map((one) => memberNode(one, listed.at ?? tree.at ?? 0, attempts))
  // Of one alone the fact itself has said the name and the state.
  const shown = nodes.length === 1 ? (nodes[0]?.children ?? []) : nodes
  return { ...tree, children: tree.children.with(at, { ...listed, children: [...listed.children, ...shown] }) }
}
