/** A person moves the releases of another controller id to this one, after its id was changed or it was given up (prune R75). */
import type { Actor } from '../../engine/actor.ts'
import { auditOperator } from '../../engine/admin/operator-audit.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { keysOf } from '../../model/prune/controller.ts'
import { currentOf, newestOf } from '../../model/prune/history.ts'
import { applicationOf, controllerOf, ownerId, parseStamp, stampOf } from '../../model/prune/owner.ts'
import { addControllerKey } from '../../store/controllers.ts'
import type { Store } from '../../store/store.ts'
import { loadRecords } from '../records/deploy.ts'
import { writeFolded } from '../records/history.ts'
import type { ReleaseRecords } from '../records/read.ts'
import { beginRevision, commitRevision, moveHead, saysSame } from '../records/release.ts'
import type { RecordsContext, Write } from '../records/write.ts'
import { mayChangeControllers } from './identity.ts'

export interface Adoption {
  from: string
  /** A person's word that it runs nowhere: two controllers would deploy one release in turn. */
  originalIsStopped: true
}

export interface Adopted {
  moved: string[]
  left: { release: string; why: string }[]
}

const headController = (one: ReleaseRecords): string | null => controllerOf(parseStamp(one.head?.state.stamp)?.owner ?? '')

/** What keeps a release from being moved: all but the other's key, and a move that was begun already. */
const whyNot = (one: ReleaseRecords): string | null => {
  const doubt = one.doubts.find(({ code }) => code !== 'foreign-key' && code !== 'handover')
  return doubt?.why ?? (newestOf(one.revisions) === null ? `${one.release} has no revision` : null)
}

/**
 * For each release a new revision with the same content, signed by this controller, and then the head: killed in between, the same word again goes on. No
 * object is touched.
 * @throws LeaseholdError bad_request, not_found, forbidden
 */
export const adoptFromController = async (store: Store, context: RecordsContext, actor: Actor, { from }: Adoption): Promise<Adopted> => {
  mayChangeControllers(actor)
  if (from === context.controllerId) throw new LeaseholdError('bad_request', `"${from}" is this controller's own id`)
  if (!context.stands())
    throw new LeaseholdError('not_ready', `this controller does not hold its own lease on the Swarm: nothing is adopted`)
  const loaded = await loadRecords(context)
  if (loaded.kind !== 'read') throw new LeaseholdError('not_ready', `the records on the Swarm can't be read: ${loaded.error}`)
  const registration = loaded.records.controllers.find((one) => one.body.controllerId === from)
  const theirs = loaded.records.releases.filter((one) => headController(one) === from)
  if (registration === undefined && theirs.length === 0)
    throw new LeaseholdError('not_found', `no controller "${from}" has anything on this Swarm`)
  await store.write(async (tx) => {
    for (const publicKey of registration ? keysOf(registration) : [])
      await addControllerKey(tx, {
        public_key: publicKey,
        private_key: null,
        controller_id: from,
        instance_uid: registration?.body.instanceUid ?? from,
        pinned_by: actor.name,
      })
    const body = {
      action: 'controller-adopt',
      from,
      to: context.controllerId,
      clusterId: context.clusterId,
      releases: theirs.map((one) => one.release),
    }
    await auditOperator(tx, actor, { project: null, scope: null }, body)
  })
  const adopted: Adopted = { moved: [], left: [] }
  for (const one of theirs) {
    const why = whyNot(one)
    const moved = why === null ? await moveRelease(context, one, from) : null
    if (moved?.kind === 'done') adopted.moved.push(one.release)
    else adopted.left.push({ release: one.release, why: why ?? (moved === null ? '' : 'why' in moved ? moved.why : moved.error) })
  }
  return adopted
}

const moveRelease = async (context: RecordsContext, one: ReleaseRecords, from: string): Promise<Write<unknown>> => {
  const newest = newestOf(one.revisions)
  const source = currentOf(one.revisions) ?? newest
  const application = applicationOf(parseStamp(one.head?.state.stamp)?.owner ?? '', from)
  if (one.head === null || source === null || newest === null || application === null)
    return { kind: 'refused', why: `${one.release} is of no application of ${from}` }
  const owner = ownerId(context.controllerId, application)
  const intent = { owner, manifest: source.body.manifest, claims: source.body.claims.filter(({ id }) => Object.hasOwn(source.objects, id)) }
  const begun: Write<typeof newest> = saysSame(newest, intent) ? { kind: 'done', value: newest } : await beginRevision(context, one, intent)
  if (begun.kind !== 'done') return begun
  const committed: Write<typeof newest> = begun.value.state === 'committed' ? begun : await commitRevision(context, begun.value, new Map())
  if (committed.kind !== 'done') return committed
  if (one.folded !== null) {
    const folded = await writeFolded(context, one, one.folded.claims)
    if (folded.kind !== 'done') return folded
  }
  return moveHead(context, one.head, { stamp: stampOf(owner, one.release), revision: committed.value.number, state: one.head.state.state })
}
