/** One resource by its recorded identity: read, and removed. */
import type { ScopeId } from '../../model/ids.ts'
import type { Precondition, ReadOutcome, RemoveOutcome, ResourceIdentity } from '../contract.ts'
import { type Client, CloudError, ratedBy, request } from './api.ts'
import type { SimulatedConfig } from './config.ts'
import { readOf } from './found.ts'
import { type Resource, parseId } from './resource.ts'
import { type Kind, isKind, states } from './words.ts'

interface Named {
  id: string
  kind: Kind
  location: string
}

/** The identity as this cloud can have given it, or why it can't have. */
export const named = (resource: ResourceIdentity, scope: ScopeId): Named | string => {
  const { kind, location, nativeId, immutableId } = resource
  if (resource.scope !== scope) return `${nativeId} is of ${resource.scope}, and this is ${scope}`
  if (!isKind(kind) || parseId(nativeId)?.kind !== kind || nativeId !== immutableId)
    return `${kind} ${nativeId} (${immutableId}) is no identity of this cloud`
  return { id: immutableId, kind, location }
}

/** An id stands for one resource for ever, so a fact that differs is a mistake or a lie. */
export const differs = (resource: ResourceIdentity, now: Resource): string | null => {
  if (now.location !== resource.location) return `${now.id} is in ${now.location}, not in ${resource.location}`
  const token = resource.facts['clientToken']
  return token !== undefined && token !== now.clientToken ? `${now.id} was made by another request` : null
}

export const readResource = async (
  client: Client,
  scope: ScopeId,
  resource: ResourceIdentity,
  signal: AbortSignal,
): Promise<ReadOutcome> => {
  const target = named(resource, scope)
  if (typeof target === 'string') return { kind: 'replaced', why: target }
  try {
    return await request(
      client,
      { operation: 'get', location: target.location, kind: target.kind, page: null },
      signal,
      (): ReadOutcome => {
        const look = client.cloud.look(target.id)
        if (look === null) return { kind: 'absent', proof: `the cloud answers "not found" for ${target.id}`, contradictions: [] }
        const now = look.resource
        const why = differs(resource, now)
        if (why !== null) return { kind: 'replaced', why }
        // It is still listed for a while; it never comes back, and its id is never used again.
        if (states[now.state] === 'gone') return { kind: 'absent', proof: `${target.id} is ${now.state}`, contradictions: [] }
        return { kind: 'present', found: readOf(look, scope), contradictions: [] }
      },
    )
  } catch (error) {
    if (!(error instanceof CloudError)) throw error
    return { kind: 'unknown', error: error.message, ...ratedBy(error) }
  }
}

export const removeResource = async (
  client: Client,
  scope: ScopeId,
  resource: ResourceIdentity,
  config: SimulatedConfig,
  signal: AbortSignal,
  { version }: Precondition = {},
): Promise<RemoveOutcome> => {
  const target = named(resource, scope)
  if (typeof target === 'string') return { kind: 'blocked', by: target }
  if (signal.aborted) return { kind: 'retryLater', why: 'the call was ended before anything was done', afterSeconds: null }
  try {
    return await request(
      client,
      { operation: 'delete', location: target.location, kind: target.kind, page: null },
      signal,
      ({ delayMs, lie }): RemoveOutcome => {
        const now = client.cloud.get(target.id)
        const why = now === null ? null : differs(resource, now)
        if (why !== null) return { kind: 'blocked', by: why }
        if (lie === 'ignore') return { kind: 'accepted', requestId: client.cloud.requestId() }
        // Only a machine takes its time.
        const durationMs = target.kind === 'machine' ? config.deleteSeconds * 1000 : 0
        const ending = client.cloud.end(target.id, { delayMs, durationMs, ...(version === undefined ? {} : { version }) })
        switch (ending.kind) {
          case 'absent':
            return { kind: 'gone', requestId: null }
          case 'blocked':
            return ending
          case 'changed':
            return { kind: 'changed', why: `${target.id} has version ${ending.version} by now` }
          case 'accepted':
            return { kind: 'accepted', requestId: ending.requestId }
          case 'ended':
            return { kind: 'gone', requestId: ending.requestId }
        }
      },
    )
  } catch (error) {
    if (!(error instanceof CloudError)) throw error
    if (error.failure.kind === 'denied') return { kind: 'denied', permission: error.failure.permission }
    if (error.failure.kind === 'throttled') return { kind: 'retryLater', why: error.message, afterSeconds: null, ...ratedBy(error) }
    return { kind: 'unknown', error: error.message }
  }
}
