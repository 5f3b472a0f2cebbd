/** A machine for its next holder. Nothing runs on it, so what a holder leaves is a list of words; taking it away can fail, and be a lie, like everything here. */
import type { ScopeId } from '../../model/ids.ts'
import type { LeftoverOutcome, ResourceIdentity, WipeContext, WipeOutcome } from '../contract.ts'
import { type Client, CloudError, request } from './api.ts'
import { differs, named } from './read.ts'
import { states } from './words.ts'

/** Why it is not the machine that was made, or null. */
const wrong = (client: Client, resource: ResourceIdentity, id: string): string | null => {
  const now = client.cloud.get(id)
  if (now === null) return `there is no ${id}`
  return differs(resource, now) ?? (states[now.state] === 'exists' ? null : `${id} is ${now.state}`)
}

export const clearMachine = async (
  client: Client,
  scope: ScopeId,
  resource: ResourceIdentity,
  { signal, stands }: WipeContext,
): Promise<WipeOutcome> => {
  const target = named(resource, scope)
  if (typeof target === 'string') return { kind: 'failed', why: target }
  try {
    return await request(
      client,
      { operation: 'wipe', location: target.location, kind: target.kind, page: null },
      signal,
      ({ lie }): WipeOutcome => {
        const why = wrong(client, resource, target.id)
        if (why !== null) return { kind: 'failed', why }
        if (!stands()) return { kind: 'failed', why: 'whoever wiped it may have lost it meanwhile' }
        if (lie === 'ignore') return { kind: 'wiped' }
        return client.cloud.wipe(target.id) ? { kind: 'wiped' } : { kind: 'failed', why: `${target.id} does not run` }
      },
    )
  } catch (error) {
    if (!(error instanceof CloudError)) throw error
    return { kind: 'failed', why: error.message }
  }
}

export const leftoversOf = async (
  client: Client,
  scope: ScopeId,
  resource: ResourceIdentity,
  signal: AbortSignal,
): Promise<LeftoverOutcome> => {
  const target = named(resource, scope)
  if (typeof target === 'string') return { kind: 'incomplete', why: target }
  try {
    return await request(
      client,
      { operation: 'get', location: target.location, kind: target.kind, page: null },
      signal,
      (): LeftoverOutcome => {
        const why = wrong(client, resource, target.id)
        return why === null
          ? { kind: 'complete', left: client.cloud.contents(target.id), looked: `all that was left on ${target.id}` }
          : { kind: 'incomplete', why }
      },
    )
  } catch (error) {
    if (!(error instanceof CloudError)) throw error
    return { kind: 'incomplete', why: error.message }
  }
}
