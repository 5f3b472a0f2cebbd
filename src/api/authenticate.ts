/** From the `Authorization` header to who asks. Only a token's hash is looked up, compared and remembered. */
import type { Actor } from '../engine/actor.ts'
import { hashOfToken, tokenPrefix } from '../engine/admin/index.ts'
import type { EngineContext } from '../engine/context.ts'
import { leaseOfToken } from '../engine/lease-token.ts'
import { LeaseholdError } from '../model/errors.ts'
import { tokenByHash } from '../store/tokens.ts'

/** How long a revocation by another replica may take to be seen. */
const rememberMs = 5_000
const mostRemembered = 10_000
const shape = /^[A-Za-z0-9_-]{20,200}$/

export interface Authenticator {
  /**
   * An actor at once when the token was seen lately, else a promise of one.
   * @throws LeaseholdError unauthorized
   */
  identify(header: string | undefined): Actor | Promise<Actor>
  /** Forgets everybody: after a revocation in this process. */
  forget(): void
}

const unauthorized = (message: string): never => {
  throw new LeaseholdError('unauthorized', message)
}

const tokenIn = (header: string | undefined): string => {
  if (header === undefined) return unauthorized('no token came with the request; send authorization: Bearer <token>')
  const [scheme, token, ...rest] = header.trim().split(/\s+/)
  if (scheme?.toLowerCase() !== 'bearer' || token === undefined || rest.length > 0)
    return unauthorized('the authorization header must be: Bearer <token>')
  return token
}

export const createAuthenticator = (context: EngineContext): Authenticator => {
  const remembered = new Map<string, { actor: Actor; until: number }>()
  let generation = 0

  const remember = (hash: string, actor: Actor, ms: number): void => {
    if (remembered.size >= mostRemembered) remembered.delete(remembered.keys().next().value as string)
    remembered.set(hash, { actor, until: performance.now() + ms })
  }

  const lookUp = async (hash: string): Promise<Actor> => {
    const begun = generation
    const row = await context.store.read((session) => tokenByHash(session, hash))
    if (!row) return unauthorized('the token is none of this coordinator')
    if (row.revoked_at !== null) return unauthorized('the token is revoked')
    const left = row.expires_at === null ? rememberMs : row.expires_at - (await context.store.now())
    if (left <= 0) return unauthorized('the token has expired')
    const actor: Actor = { name: row.name, role: row.role, project: row.project, onlyLease: null }
    // A revocation that came between the read and here must not be outlived.
    if (begun === generation) remember(hash, actor, Math.min(rememberMs, left))
    return actor
  }

  /** A lease's own token is derived from its id, so it needs no look-up: whether the lease is there, the request itself finds out. */
  const ofLease = (token: string): Actor => {
    const leaseId = leaseOfToken(context.installation.secret, token)
    if (leaseId === null) return unauthorized('the token is none of this coordinator')
    return { name: `lease:${leaseId}`, role: 'user', project: null, onlyLease: leaseId }
  }

  return {
    identify(header) {
      const token = tokenIn(header)
      if (!shape.test(token)) return unauthorized('the token is none of this coordinator')
      if (!token.startsWith(tokenPrefix)) return ofLease(token)
      const hash = hashOfToken(token)
      const known = remembered.get(hash)
      if (known && known.until > performance.now()) return known.actor
      remembered.delete(hash)
      return lookUp(hash)
    },
    forget() {
      generation++
      remembered.clear()
    },
  }
}
