/** From what the cloud says to what the engine reads. */
import type { ScopeId } from '../../model/ids.ts'
import type { FoundResource, ListedResource, OwnershipTags, ResourceIdentity } from '../contract.ts'
import type { Listed, Neighbour } from './cloud.ts'
import type { Resource } from './resource.ts'
import { states, tag } from './words.ts'

export const scopeOf = (account: string): ScopeId => `simulated:${account}` as ScopeId

/** An id of this cloud is never used again, so it is the immutable one too. */
export const identityOf = (resource: Resource, scope: ScopeId): ResourceIdentity => ({
  scope,
  location: resource.location,
  kind: resource.kind,
  nativeId: resource.id,
  immutableId: resource.id,
  facts: {
    createdAt: new Date(resource.createdAt).toISOString(),
    ...(resource.clientToken === null ? {} : { clientToken: resource.clientToken }),
  },
})

const tagsOf = ({ tags }: Resource): OwnershipTags => ({
  ref: tags?.[tag.ref] ?? null,
  installation: tags?.[tag.installation] ?? null,
  attempt: tags?.[tag.attempt] ?? null,
  mac: tags?.[tag.mac] ?? null,
})

export const foundOf = (resource: Resource, scope: ScopeId): FoundResource => ({
  resource: identityOf(resource, scope),
  tags: tagsOf(resource),
  fixedAttemptToken: resource.clientToken,
  providerState: resource.state,
  existence: states[resource.state],
  labels: resource.tags,
  version: String(resource.version),
})

/** Made by the same attempt, as far as ref and token tell. */
const sameGroup = (resource: Resource, peer: Neighbour): boolean =>
  (resource.tags?.[tag.ref] ?? null) === peer.ref && resource.clientToken === peer.token

const whyReportOnly = (resource: Resource, neighbours: readonly Neighbour[]): string | null => {
  const foreign = neighbours.find((peer) => !sameGroup(resource, peer))
  if (foreign) {
    const other = `${foreign.kind} ${foreign.id}, which is not of its group`
    return foreign.side === 'under' ? `it is attached to ${other}` : `attached to it is ${other}`
  }
  const cascade = neighbours.find((peer) => peer.onEnd === 'delete')
  if (cascade === undefined) return null
  return cascade.side === 'under'
    ? `it is deleted with ${cascade.kind} ${cascade.id} (cascade option)`
    : `deleting it deletes ${cascade.kind} ${cascade.id} (cascade option)`
}

export const listedOf = ({ resource, neighbours }: Listed, scope: ScopeId): ListedResource => ({
  ...foundOf(resource, scope),
  name: resource.name,
  createdAt: resource.createdAt,
  labels: resource.tags,
  attachedTo: resource.attachedTo,
  reportOnly: whyReportOnly(resource, neighbours),
  takesAlong: neighbours.flatMap((peer) => (peer.side === 'above' && peer.onEnd === 'delete' ? [peer.id] : [])),
})

/** As a fresh read shows it: what may stand against its removal by now is looked at once more. */
export const readOf = (listed: Listed, scope: ScopeId): FoundResource => {
  const { createdAt: _createdAt, ...found } = listedOf(listed, scope)
  return found
}
