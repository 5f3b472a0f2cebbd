/**
 * Why something is as it is, for whatever was ever seen: the verdict, the facts that it rests on with source and age, what holds it back and until when,
 * and what would change it. Reads only. What a sweep judged is told by its finding; what has none by our own rows; a resource that neither knows is
 * looked at freshly, for operators.
 */
import type { ExplanationNode } from '../../model/explain.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { verdictReasons } from '../../model/verdict-reasons.ts'
import type { ExplanationNodeView, ExplanationView } from '../../model/wire.ts'
import type { Session } from '../../store/store.ts'
import { isOperator, requireFull, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso, isoOrNull } from '../views.ts'
import { concludeAttempt, concludeLeft, concludeOwner, concludeRemoval, obstacles } from './conclude.ts'
import { explainFleet, explainReturned } from './fleet.ts'
import { explainFinding } from './finding.ts'
import { lookFor } from './look.ts'
import { leftNode, showsRecorded, withLeft } from './left.ts'
import { loadOwner, type Owner } from './owner.ts'
import { ownerNodes } from './owner-tree.ts'
import { resolveEndedSlug, resolveKey, type Named } from './resolve.ts'
import { explainProject, explainScope } from './places.ts'
import { ownerSeenNode } from './seen.ts'
import { explainBackend, explainEvent, explainHold, explainSweep } from './things.ts'
import { conclusionNode, type Conclusion, type Told } from './told.ts'

const nodeView = (one: ExplanationNode): ExplanationNodeView => ({
  fact: one.fact,
  source: one.source,
  at: isoOrNull(one.at),
  children: one.children.map(nodeView),
})

const view = (key: string, told: Told, now: number): ExplanationView => ({
  key,
  type: told.type,
  subject: told.subject,
  project: told.project,
  verdict: told.verdict,
  reason: told.reason,
  at: iso(now),
  tree: nodeView(told.tree),
  heldBack: told.heldBack.map(({ what, until }) => ({ what, until: isoOrNull(until) })),
  change: told.change,
})

/** The findings that decide about something whose instance is not active. A copy of what is gone is told beside it, and by its own key. */
const weight: Record<string, number> = { orphan: 0, protected: 1, stuck: 2 }
const decisive = (owner: Owner) => {
  const active = owner.instance !== null && ['provisioning', 'idle', 'busy'].includes(owner.instance.state)
  if (active) return undefined
  return owner.findings
    .filter((row) => row.code in weight && row.ref === owner.ref)
    .toSorted((a, b) => (weight[a.code] ?? 9) - (weight[b.code] ?? 9))[0]
}

type OfOwner = Extract<Named, { kind: 'owner' }>

const conclude = (named: OfOwner, owner: Owner, context: EngineContext, now: number): Conclusion => {
  if (owner.leftTo !== null) return concludeLeft(owner.leftTo)
  const provider = owner.instance?.provider ?? owner.lease?.provider ?? ''
  const mode = context.sweepSettings(provider).mode.value
  const stops = obstacles(owner.holds, owner.freezes)
  const removal = owner.removals.find((row) => row.id === named.removalId)
  if (removal) return concludeRemoval(removal, stops, mode)
  const attempt = owner.attempts.find((row) => row.id === named.attemptId)
  const ofAttempt = attempt && attempt.id !== owner.instance?.attempt_id ? concludeAttempt(owner, attempt, stops, mode, now) : null
  return ofAttempt ?? concludeOwner(owner, stops, mode, now)
}

const explainOwner = async (session: Session, context: EngineContext, named: OfOwner, now: number): Promise<Told | undefined> => {
  const owner = await loadOwner(session, named.ref, now)
  if (!owner) return undefined
  const finding = named.removalId === undefined && owner.leftTo === null ? decisive(owner) : undefined
  const ofAttempt = named.attemptId === undefined || finding?.attempt_id === named.attemptId
  const concluded = conclude(named, owner, context, now)
  if (finding && ofAttempt) {
    const told = await explainFinding(session, context, finding, now)
    if (concluded.verdict !== 'gone' || showsRecorded(finding, owner)) return { ...told, type: named.type, subject: named.subject }
    const gone = withLeft(concluded, owner, finding, told)
    const tree = conclusionNode(gone, now, [leftNode(finding, told), ...ownerNodes(owner)])
    return { ...gone, tree, type: named.type, subject: named.subject, project: owner.project }
  }
  const seen = await ownerSeenNode(session, context, owner)
  return {
    ...concluded,
    tree: conclusionNode(concluded, now, [...ownerNodes(owner), ...(seen === null ? [] : [seen])]),
    type: named.type,
    subject: named.subject,
    project: owner.project,
  }
}

const tell = async (session: Session, context: EngineContext, actor: Actor, named: Named, now: number): Promise<Told | undefined> => {
  switch (named.kind) {
    case 'owner':
      return explainOwner(session, context, named, now)
    case 'finding':
      return explainFinding(session, context, named.row, now)
    case 'sweep':
      return explainSweep(session, named.row, now)
    case 'hold':
      return explainHold(named.row, now)
    case 'event':
      return explainEvent(named.event)
    case 'backend':
      return explainBackend(session, context, named.row, now)
    case 'fleet':
      return explainFleet(session, named.row, now)
    case 'returned':
      return explainReturned(named.lease)
    case 'project':
      return explainProject(session, context, named.row, now)
    case 'scope':
      return explainScope(session, context, actor, named.scope, now)
    case 'nothing':
      return undefined
  }
}

const notFound = (key: string, why: string): LeaseholdError =>
  new LeaseholdError('not_found', `nothing that "${key}" names is visible to this token${why === '' ? '' : `: ${why}`}`)

const visible = (actor: Actor, told: Pick<Told, 'project'>): boolean =>
  told.project === null ? actor.project === null : seesProject(actor, told.project)

/**
 * @param key any id, a slug, a ref, `provider/location/native-id`, `project/backend` or `project/fleet`, a project, a scope, or a native id that only one resource has
 * @throws LeaseholdError not_found, also for what belongs to another project
 */
export const explainKey = async (context: EngineContext, actor: Actor, key: string, signal: AbortSignal): Promise<ExplanationView> => {
  requireFull(actor)
  const now = await context.store.now()
  const told = await context.store.read(async (session) => {
    const named = await resolveKey(session, actor, key, now)
    return tell(session, context, actor, named.kind === 'nothing' ? await resolveEndedSlug(session, actor, key) : named, now)
  })
  if (told) {
    if (!visible(actor, told)) throw notFound(key, '')
    return view(key, told, now)
  }
  const look = await lookFor(context, actor, key, signal)
  if (look.kind === 'unknown') {
    const bare =
      /^(?![a-z]{2}_)[^/:]+$/.test(key) && isOperator(actor)
        ? 'a resource that no record names is looked for as provider/location/native-id'
        : ''
    throw notFound(key, look.why === '' ? bare : look.why)
  }
  if (look.kind === 'judged') return view(key, look.told, await context.store.now())
  const owned: OfOwner = { kind: 'owner', type: 'resource', ref: look.ref, subject: `resource ${key}` }
  const tracked = await context.store.read((session) => explainOwner(session, context, owned, now))
  if (!tracked || !visible(actor, tracked)) throw notFound(key, '')
  // Not the resource that the attempt recorded, which our rows would have told of, but one of its group.
  const attached = { verdict: 'tracked', reason: 'tracked.attached', text: verdictReasons['tracked.attached'].text }
  const tree = conclusionNode(attached, now, [look.seen, ...tracked.tree.children])
  return view(key, { ...tracked, ...attached, tree }, await context.store.now())
}
