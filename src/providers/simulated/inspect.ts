/** One group, read afresh before its first deletion: from what is known along its attachments, each by an exact read. */
import type { Topology } from '../../model/topology.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { InspectOutcome, InspectRequest } from '../contract.ts'
import { type Client, CloudError, type Failure, ratedBy, request } from './api.ts'
import type { Listed, Neighbour } from './cloud.ts'
import type { SimulatedConfig } from './config.ts'
import { readOf } from './found.ts'
import { pagesOf, readCell } from './list.ts'
import { type Kind, isKind, kinds, ownerKind, states } from './words.ts'

/** machine, nic, ip, disk: what stands on something goes after it. Of machines alone whatever is there is whole. */
export const topologyOf = ({ group }: SimulatedConfig): Topology => {
  const order = ['machine', 'nic', 'ip', 'disk'] satisfies Kind[]
  if (group === 'machine') return { order, companions: [] }
  return {
    order,
    companions: ['nic', 'ip', 'disk'],
    edges: [
      ['nic', 'machine'],
      ['disk', 'machine'],
      ['ip', 'nic'],
    ],
    internal: ['disk'],
  }
}

interface Named {
  id: string
  kind: Kind
}

/**
 * Where a kind is missing, or the owner, nothing leads to the others but their tags and what was fixed at their creation, so that listings are asked. What bears
 * the attempt's token is shown whatever its tags say: whose it is the engine judges, and "there is none" would be untrue. @throws CloudError
 */
const listed = async (client: Client, group: InspectRequest, config: SimulatedConfig, signal: AbortSignal): Promise<Named[]> => {
  const found: Named[] = []
  for (const kind of kinds) {
    const cell = { location: group.location, kind }
    for await (const item of readCell(
      cell,
      pagesOf(client, cell, config.pageSize, { ref: group.ref, token: group.attemptToken }, signal),
    )) {
      if ('listed' in item)
        found.push(
          ...item.listed
            .filter(({ resource }) => resource.clientToken === group.attemptToken)
            .map(({ resource }) => ({ id: resource.id, kind })),
        )
      else if (item.coverage.state.kind !== 'complete') {
        const { state, rate } = item.coverage
        const failure: Failure = rate?.throttled === true ? { kind: 'throttled', retryAfterMs: rate.retryAfterMs } : { kind: 'failed' }
        throw new CloudError(failure, state.kind === 'denied' ? `permission ${state.permission} is missing` : state.why)
      }
    }
  }
  return found
}

export const inspectGroup = async (
  client: Client,
  scope: ScopeId,
  group: InspectRequest,
  config: SimulatedConfig,
  signal: AbortSignal,
): Promise<InspectOutcome> => {
  const found = new Map<string, Listed>()
  const asked = new Set<string>()
  const { internal = [], companions } = topologyOf(config)
  // A disk that the same request made with its machine is shown also without tags: whether it is the machine's own the engine judges.
  const isOurs = (peer: Neighbour): boolean =>
    peer.token === group.attemptToken && (peer.ref === group.ref || (peer.ref === null && internal.includes(peer.kind)))
  /** @throws CloudError */
  const follow = async (begin: readonly Named[]): Promise<void> => {
    const left = [...begin]
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { id, kind } = next
      if (asked.has(id)) continue
      asked.add(id)
      const look = await request(client, { operation: 'get', location: group.location, kind, page: null }, signal, () =>
        client.cloud.look(id),
      )
      if (look === null || states[look.resource.state] === 'gone') continue
      found.set(id, look)
      left.push(...look.neighbours.filter(isOurs))
    }
  }
  try {
    await follow(group.known.flatMap(({ nativeId, kind }) => (isKind(kind) ? [{ id: nativeId, kind }] : [])))
    const seen = new Set<string>([...found.values()].map(({ resource }) => resource.kind))
    if (![ownerKind, ...companions].every((kind) => seen.has(kind))) await follow(await listed(client, group, config, signal))
  } catch (error) {
    if (!(error instanceof CloudError)) throw error
    return { kind: 'incomplete', why: error.message, ...ratedBy(error) }
  }
  return { kind: 'complete', members: [...found.values()].map((look) => readOf(look, scope)) }
}
