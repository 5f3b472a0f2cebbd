/**
 * A fresh look at one resource that no row of ours knows: a stranger, a copy that no sweep has met yet, a disk of a live machine. Lists its one location
 * and judges it as a sweep would; writes nothing.
 */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { explain, type ExplanationNode } from '../../model/explain.ts'
import { cellsNot } from '../../model/inventory.ts'
import { resourceKey } from '../../model/removal.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { FoundResource, ListedResource } from '../../providers/contract.ts'
import { listBackends } from '../../store/backends.ts'
import { rowsIn } from '../../store/bulk.ts'
import { isOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { judgeAll, seal, type Judged } from '../sweep/judge-all.ts'
import { listScope } from '../sweep/listing.ts'
import { policyOf, unenrolledWork, type SweepWork } from '../sweep/load.ts'
import { shownMember } from '../sweep/shown.ts'
import { withMembers, type Tokens } from './member.ts'
import { settingsNode } from './seen.ts'
import { conclusionNode, node, type Told } from './told.ts'

const lookDeadlineMs = 45_000

export type Look =
  /** `ref`: what its tags name; null: none. `token`: what was fixed at the creation of something that carries no ref. */
  | { kind: 'judged'; told: Told; ref: string | null; token?: string | null }
  /** An active instance is bound to it, or to what it is attached to. */
  | { kind: 'tracked'; ref: string; seen: ExplanationNode }
  /** Nothing is known; why, for the one who asked. */
  | { kind: 'unknown'; why: string }

interface Key {
  provider: string
  location: string
  nativeId: string
}

/** The provider as it is, and a note of the one resource when its listing shows it. */
const watched = (work: SweepWork, key: Key, seen: (one: ListedResource) => void): SweepWork => {
  const { provider } = work
  const list: SweepWork['provider']['list'] = async function* (locations, config, call) {
    for await (const item of provider.list(locations, config, call)) {
      if (item.type === 'page')
        for (const one of item.resources) if (one.resource.location === key.location && one.resource.nativeId === key.nativeId) seen(one)
      yield item
    }
  }
  return { ...work, provider: Object.defineProperty(Object.create(provider) as SweepWork['provider'], 'list', { value: list }) }
}

const placeNode = (work: SweepWork, now: number): ExplanationNode =>
  node('listing', now, `its location was listed just now through backend ${work.backend.project}/${work.backend.name}; nothing was written`)

const toldOf = (work: SweepWork, judged: Judged, attempts: Tokens, key: string, now: number): Told => {
  const { verdict } = judged
  const { mode, graceMs } = work.settings
  const explained = explain({
    subject: `resource ${key}`,
    verdict,
    judgedAt: now,
    quarantine: null,
    mode: mode.value,
    graceMs: graceMs.value,
    plan: null,
    stoppedBy: null,
    now,
  })
  const judgedTree = withMembers(explained.tree, judged.group.members.map(shownMember), attempts)
  const tree = {
    ...judgedTree,
    children: [...judgedTree.children, settingsNode(work.backend.provider, work.settings, now), placeNode(work, now)],
  }
  return { ...explained, tree, type: 'resource', project: work.backend.project, verdict: verdict.kind, reason: verdict.reason }
}

const toldContradiction = (work: SweepWork, key: string, why: string, now: number): Told => {
  const base = { verdict: 'contradiction', reason: null }
  const tree = conclusionNode({ ...base, text: why }, now, [placeNode(work, now)])
  const change = 'a person finding out whose it is; nothing is touched until then'
  return { ...base, tree, heldBack: [], change, type: 'resource', project: work.backend.project, subject: `resource ${key}` }
}

/** Listings show only what carries a ref. An exact read finds the rest, where the id that people type is the one that the provider fixed (orphans R27). */
const exactRead = async (work: SweepWork, key: Key, scope: ScopeId, signal: AbortSignal): Promise<FoundResource | null> => {
  for (const kind of work.provider.kinds) {
    const resource = { scope, location: key.location, kind, nativeId: key.nativeId, immutableId: key.nativeId, facts: {} }
    const read = await work.provider.read(resource, work.config, { signal })
    if (read.kind === 'present') return read.found
  }
  return null
}

const toldStranger = (
  work: SweepWork,
  { resource, providerState, tags }: FoundResource,
  key: string,
  incomplete: boolean,
  now: number,
): Told => {
  const text =
    tags.ref === null
      ? 'It carries no ref, and whatever we make carries one.'
      : 'It carries a ref, and the listing of its place just now did not show it.'
  const base = tags.ref === null ? { verdict: 'foreign', reason: null, text } : { verdict: 'unseen', reason: null, text }
  const tree = conclusionNode(base, now, [
    node(
      'read',
      now,
      `${resource.kind} ${resource.nativeId} in ${resource.location} is ${providerState}, ${tags.ref === null ? 'no ref' : `ref ${tags.ref}`}`,
    ),
    incomplete ? node('coverage', now, `the listing of ${resource.location} was incomplete`) : null,
    placeNode(work, now),
  ])
  const what = tags.ref === null ? 'what is not ours is never touched' : 'nothing is concluded from what a listing does not show'
  const change =
    tags.ref === null ? 'nothing: it is never touched, and a tag of ours on it would only nominate it' : 'a complete listing that shows it'
  return {
    ...base,
    tree,
    heldBack: [{ what, until: null }],
    change,
    type: 'resource',
    project: work.backend.project,
    subject: `resource ${key}`,
  }
}

const lookThrough = async (context: EngineContext, actor: Actor, given: SweepWork, key: Key, signal: AbortSignal): Promise<Look> => {
  const name = resourceKey(key.provider, key.location, key.nativeId)
  const found: ListedResource[] = []
  const work = watched(given, key, (one) => found.push(one))
  const account = await work.provider.scope(work.config, { signal })
  if (account.kind === 'unknown')
    return { kind: 'unknown', why: `the account of backend "${work.backend.name}" can't be read: ${account.error}` }
  const now = await context.store.now()
  const policy = await policyOf(context, work, account.scope, now)
  const listing = await listScope(context, work, [key.location], policy, signal)
  // One location says nothing about the counts of an account.
  const unreadable = [...listing.unreadable.values()].reduce((sum, ids) => sum + ids.length, 0)
  const hadTags = [...listing.resources.values()].reduce((sum, count) => sum + count, 0)
  const inventory = seal(work, listing, { expected: 0, seen: 0, explained: 0, hadTags, unreadable, letPassBy: null })
  const judged = (await judgeAll(context, listing, inventory, policy)).find(({ group }) =>
    group.members.some((member) => member.resource.location === key.location && member.resource.nativeId === key.nativeId),
  )
  // Whose it is, is nothing for those of one project.
  if (judged?.verdict.reason === 'held.other-project' && actor.project !== null)
    return { kind: 'unknown', why: 'it belongs to another project of this installation' }
  if (judged) {
    const { ref } = judged.group
    const attempts = ref === null ? [] : await context.store.read((session) => rowsIn(session, 'attempts', 'ref', [ref]))
    return { kind: 'judged', told: toldOf(work, judged, attempts, name, await context.store.now()), ref }
  }
  const [seen] = found
  if (seen && seen.tags.ref !== null) {
    const { kind, nativeId, location } = seen.resource
    const attached = seen.attachedTo.length === 0 ? '' : `, attached to ${seen.attachedTo.join(', ')}`
    const fact = `${kind} ${nativeId} (${seen.name}) in ${location}: ${seen.providerState}${attached}, ref ${seen.tags.ref}`
    return { kind: 'tracked', ref: seen.tags.ref, seen: node('listing', listing.startedAt, fact, [placeNode(work, listing.endedAt)]) }
  }
  const contradiction = listing.contradictions.find((one) => one.location === key.location && one.nativeId === key.nativeId)
  if (contradiction) return { kind: 'judged', told: toldContradiction(work, name, contradiction.why, await context.store.now()), ref: null }
  const incomplete = cellsNot(inventory, 'complete').length > 0
  const stranger = await exactRead(work, key, account.scope, signal)
  // What carries a ref may be another project's.
  if (stranger !== null && (stranger.tags.ref === null || actor.project === null))
    return {
      kind: 'judged',
      told: toldStranger(work, stranger, name, incomplete, await context.store.now()),
      ref: stranger.tags.ref,
      token: stranger.fixedAttemptToken,
    }
  return {
    kind: 'unknown',
    why: incomplete
      ? `the listing of ${key.location} just now was incomplete, and what it showed does not include it`
      : `the listing of ${key.location} just now shows nothing of that id with a ref tag: it does not exist there, or it carries no tag of ours and is never touched`,
  }
}

/** Only operators make the provider work. @param key `provider/location/native-id` */
export const lookFor = async (context: EngineContext, actor: Actor, key: string, signal: AbortSignal): Promise<Look> => {
  const [, provider, location, nativeId] = /^([^/\s]+)\/([^/\s]+)\/(\S+)$/.exec(key) ?? []
  if (provider === undefined || location === undefined || nativeId === undefined || !isOperator(actor)) return { kind: 'unknown', why: '' }
  const backends = (await context.store.read((session) => listBackends(session, actor.project))).filter((one) => one.provider === provider)
  let last: Look = { kind: 'unknown', why: '' }
  for (const backend of backends) {
    const work = unenrolledWork(context, backend)
    if (!work) continue
    try {
      last = await withDeadline('the look', lookDeadlineMs, signal, (inner) =>
        lookThrough(context, actor, work, { provider, location, nativeId }, inner),
      )
    } catch (error) {
      last = { kind: 'unknown', why: `it could not be looked at through backend "${backend.name}": ${errorText(error)}` }
    }
    if (last.kind !== 'unknown') return last
  }
  return last
}
