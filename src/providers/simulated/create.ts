import type { ScopeId } from '../../model/ids.ts'
import type { CreateOutcome, CreateRequest } from '../contract.ts'
import { type Client, CloudError, ratedBy, request as ask } from './api.ts'
import type { LaunchSpec } from './cloud.ts'
import type { SimulatedConfig } from './config.ts'
import { foundOf } from './found.ts'
import { defaultLocations, ownerKind, tag } from './words.ts'

const members = ['disk', 'nic', 'ip'] as const

/** Member by number, target by number: disk and nic stand on the machine, the address on the nic. */
const topology = [
  [1, 0],
  [2, 0],
  [3, 2],
] as const

/** A backend with locations of its own gets what was meant for the provider's first one in its own first one. */
const locationFor = (request: CreateRequest, { locations }: SimulatedConfig): string | null => {
  if (locations.includes(request.location)) return request.location
  return defaultLocations.some((one) => one === request.location) ? (locations[0] ?? null) : null
}

/** The secret environment goes nowhere: nothing runs on a simulated machine. */
export const createGroup = async (
  client: Client,
  scope: ScopeId,
  request: CreateRequest,
  config: SimulatedConfig,
  signal: AbortSignal,
): Promise<CreateOutcome> => {
  const location = locationFor(request, config)
  if (location === null)
    return {
      kind: 'rejected',
      code: 'location_unknown',
      message: `this backend has no location ${request.location}, only ${config.locations.join(', ')}`,
    }
  if (signal.aborted) return { kind: 'rejected', code: 'aborted', message: 'the call was ended before anything was asked for' }
  const tags = {
    ...request.labels,
    [tag.ref]: request.ref,
    [tag.installation]: request.installation,
    [tag.attempt]: request.attemptToken,
    ...(request.mac === null ? {} : { [tag.mac]: request.mac }),
  }
  try {
    return await ask(
      client,
      { operation: 'create', location, kind: ownerKind, page: null },
      signal,
      ({ delayMs, lagMs }): CreateOutcome => {
        const common = {
          location,
          tags,
          token: request.attemptToken,
          delayMs,
          invisibleMs: Math.max(config.visibilitySeconds * 1000, lagMs),
          lingerMs: config.terminatedSeconds * 1000,
        }
        const machine: LaunchSpec = {
          ...common,
          kind: ownerKind,
          name: request.name,
          startMs: config.startSeconds * 1000,
          lifetimeMs: request.maximumLifetimeSeconds * 1000,
          atDeadline: config.atDeadline,
        }
        const rest =
          config.group === 'machine' ? [] : members.map((kind): LaunchSpec => ({ ...common, kind, name: `${request.name}-${kind}` }))
        const edges = config.group === 'machine' ? [] : topology.map(([member, target]) => ({ member, target, onEnd: config.cascade }))
        const { resources, repeated } = client.cloud.launch([machine, ...rest], edges)
        const [made] = resources
        if (made !== undefined) {
          const found = foundOf(made, scope)
          return {
            kind: 'created',
            resource: found.resource,
            ready: found.providerState === 'running' || (delayMs > 0 && config.startSeconds === 0),
          }
        }
        const known = repeated ? client.cloud.byToken(request.attemptToken) : null
        return known === 'coming'
          ? { kind: 'uncertain', message: 'a create with this token is under way', resource: null }
          : { kind: 'rejected', code: 'token_used', message: 'what was made with this token has ended, and the token makes nothing again' }
      },
    )
  } catch (error) {
    if (!(error instanceof CloudError)) throw error
    // Refused before anything was done, and the answer says so; any other error proves nothing.
    if (error.failure.kind === 'denied') return { kind: 'rejected', code: 'permission_denied', message: error.message }
    if (error.failure.kind === 'throttled') return { kind: 'rejected', code: 'throttled', message: error.message, ...ratedBy(error) }
    return { kind: 'uncertain', message: error.message, resource: null }
  }
}
