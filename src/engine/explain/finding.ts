/** A finding explained: by the verdict of the sweep that judged it, else by what it says itself; beside it what our rows say of its owner. */
import type { ExplanationNode, HeldBack } from '../../model/explain.ts'
import { counted } from '../../lib/counted.ts'
import { findingCodes, type FindingCode } from '../../model/codes.ts'
import type { FindingRow } from '../../store/findings.ts'
import type { Session } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { concludeRemoval, obstacles } from './conclude.ts'
import { explainStanding, providerOfTarget, standingOf, subjectsOf, type Standing } from './judged.ts'
import { withMembers } from './member.ts'
import { loadOwner, type Owner } from './owner.ts'
import { ownerNodes } from './owner-tree.ts'
import type { ShownMember } from '../sweep/shown.ts'
import { inventoryNodes, settingsNode } from './seen.ts'
import { conclusionNode, node, type Conclusion, type Told } from './told.ts'

/** Of a resource that a sweep met. */
const membersOf = (row: FindingRow): ShownMember[] =>
  ((JSON.parse(row.evidence) as { members?: ShownMember[] }).members ?? []).filter((one) => one.kind !== undefined)

/** What stops its removal, with who and until when where our rows say so; the rest as it was concluded. */
const withStops = (heldBack: readonly HeldBack[], stops: readonly HeldBack[], { verdict, stoppedBy }: Standing): readonly HeldBack[] => {
  if (stops.length === 0 || !(verdict.kind === 'orphan' || verdict.reason === 'protected.hold')) return heldBack
  return [...stops, ...heldBack.filter((one) => one.what !== stoppedBy && verdict.kind === 'orphan')]
}

/** The verdict that a finding without a sweep's judgement stands for, and what ends it. */
const meanings: Record<FindingCode, Pick<Conclusion, 'verdict' | 'change'>> = {
  contradiction: { verdict: 'contradiction', change: 'a person finding out whose it is; nothing is touched until then' },
  'retained-overdue': { verdict: 'held', change: 'a release of its lease with delete' },
  orphan: { verdict: 'orphan', change: 'a hold or a keep label on it' },
  'malformed-ref': { verdict: 'foreign', change: 'nothing: it is never touched' },
  stuck: { verdict: 'inFlight', change: 'its owner becoming active or ending' },
  protected: { verdict: 'protected', change: 'the end of its protection' },
  'left-behind': { verdict: 'protected', change: 'its end by hand; "leasehold explain" of the resource names what is left' },
  'not-seen': {
    verdict: 'missing',
    change: 'a listing that shows it again, or a second complete inventory and an exact read that do not find it',
  },
  missing: { verdict: 'missing', change: 'nothing: its lease has ended with resource_missing' },
  'scope-stranded': { verdict: 'unseen', change: 'credentials that reach the account of its boxes again' },
  'denied-kind': { verdict: 'unseen', change: 'the permission that it names' },
  'counts-implausible': {
    verdict: 'unseen',
    change: 'a listing that shows what should be there, exact reads that prove the rest absent, or a person: leasehold sweep --let-pass',
  },
  'fleet-held': {
    verdict: 'held',
    change: 'a person who looks why its boxes end, and lets it go on: leasehold fleet scale NAME --resume',
  },
  'plan-waiting': {
    verdict: 'held',
    change: 'a person who approves it (leasehold approve), or fewer orphans: holds on what must stay, or removals by hand',
  },
  elsewhere: {
    verdict: 'contradiction',
    change: 'a person who says which database is the true one: leasehold installation adopt, or fork',
  },
  rewound: { verdict: 'contradiction', change: 'a person who says which database is the true one: leasehold installation adopt, or fork' },
  'unexplained-absence': {
    verdict: 'held',
    change: 'a person who finds out why it is gone: leasehold removal acknowledge-absence lets the removal go on',
  },
  'removal-needs-person': { verdict: 'held', change: 'a person who looks at the resource and at the error' },
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const evidenceNodes = (row: FindingRow): ExplanationNode[] =>
  Object.entries(JSON.parse(row.evidence) as Record<string, unknown>)
    .filter(([key]) => !['verdict', 'judgedAt', 'members', 'token', 'why', 'error'].includes(key))
    .map(([key, value]) => {
      const said = (text: string): ExplanationNode => node('finding', row.last_seen_at, text)
      if (!Array.isArray(value)) return said(`${key}: ${textOf(value)}`)
      return node(
        'finding',
        row.last_seen_at,
        `${key}: ${value.length}`,
        value.map((one) => said(textOf(one))),
      )
    })

const sightings = (row: FindingRow): ExplanationNode =>
  node('finding', row.last_seen_at, `finding ${row.id} (${row.code}) was seen ${counted(row.times_seen, 'time')}, the last time`, [
    node('finding', row.first_seen_at, 'it was first seen'),
    row.sweep_id === null ? null : node('finding', row.last_seen_at, `its fingerprint is ${row.fingerprint.slice(0, 12)}`),
    row.reported_at === null ? null : node('finding', row.reported_at, 'it was last told as an event'),
    row.resolved_at === null ? null : node('finding', row.resolved_at, 'it was resolved'),
  ])

const subjectText = (row: FindingRow): string =>
  `${row.target_type === 'resource' ? '' : `finding ${row.id} (${row.code}) on `}${row.target_type} ${row.target_id}${row.target_name === row.target_id ? '' : ` (${row.target_name})`}`

const absenceNode = (row: FindingRow): ExplanationNode | null =>
  row.code !== 'not-seen' || row.standing_since === null
    ? null
    : node('listing', row.standing_since, 'a complete inventory did not show it, for the first time', [
        node('listing', row.last_complete_at, `${row.complete_sightings} complete inventories in a row did not, the last one`),
      ])

const concludeResolved = (row: FindingRow, owner: Owner | undefined): Conclusion => {
  const gone = owner?.removals.some((one) => one.state === 'gone' && one.attempt_id === row.attempt_id) === true
  return gone
    ? {
        verdict: 'gone',
        reason: null,
        text: 'It was taken back, and its absence is proved.',
        heldBack: [],
        change: 'nothing: what is proved gone stays gone',
      }
    : {
        verdict: 'ended',
        reason: null,
        text: `It no longer stands: ${row.message}`,
        heldBack: [],
        change: 'a sweep that sees the same again',
      }
}

const told = (row: FindingRow, rest: Pick<Told, 'tree' | 'heldBack' | 'change' | 'verdict' | 'reason'>): Told => ({
  ...rest,
  type: row.target_type === 'resource' ? 'resource' : 'finding',
  project: row.project,
  subject: subjectText(row),
})

const fromRow = (row: FindingRow, rest: readonly ExplanationNode[], stops: readonly HeldBack[]): Told => {
  const { verdict, change } = meanings[row.code as FindingCode] ?? { verdict: 'unknown', change: 'its end' }
  const text = `${row.message} (${findingCodes[row.code as FindingCode] ?? row.code})`
  const tree = conclusionNode({ verdict, reason: null, text }, row.last_seen_at, [...evidenceNodes(row), absenceNode(row), ...rest])
  const limits = row.code === 'plan-waiting' ? [{ what: 'the limits on what one sweep, and one day, may take back', until: null }] : []
  return told(row, { tree, heldBack: [...stops, ...limits], change, verdict, reason: null })
}

export const explainFinding = async (session: Session, context: EngineContext, row: FindingRow, now: number): Promise<Told> => {
  const owner = row.ref === null ? undefined : await loadOwner(session, row.ref, now)
  const mine = owner?.project === row.project ? owner : undefined
  const rest = mine ? ownerNodes({ ...mine, findings: mine.findings.filter((one) => one.id !== row.id) }) : []
  if (row.state === 'resolved') {
    const end = concludeResolved(row, mine)
    const tree = conclusionNode(end, row.resolved_at ?? row.last_seen_at, [sightings(row), ...rest])
    return told(row, { ...end, tree })
  }
  const attempts = mine?.attempts ?? []
  const provider = row.target_type === 'resource' ? providerOfTarget(row.target_id) : ''
  const around = [
    sightings(row),
    ...(await inventoryNodes(session, row)),
    ...(provider === '' ? [] : [settingsNode(provider, context.sweepSettings(provider), now)]),
    ...rest,
  ]
  const [standing] = await standingOf(session, context, await subjectsOf(session, [row]), now)
  const stops = mine ? obstacles(mine.holds, mine.freezes) : []
  if (!standing) return fromRow(row, around, stops)
  const explained = explainStanding(standing, subjectText(row), now)
  const { removal, verdict } = standing
  const judged = withMembers(explained.tree, membersOf(row), attempts)
  if (removal !== null) {
    const under = concludeRemoval(removal, stops, context.sweepSettings(provider).mode.value)
    const tree = conclusionNode(under, now, [judged, ...around])
    return told(row, { ...under, tree })
  }
  const tree = { ...judged, children: [...judged.children, ...around] }
  const heldBack = withStops(explained.heldBack, stops, standing)
  return told(row, { tree, heldBack, change: explained.change, verdict: verdict.kind, reason: verdict.reason })
}
