/** Bearer tokens: who may do what. The secret is shown once, when the token is made; only its hash is stored. */
import { createHash } from 'node:crypto'
import { secret as newSecret, uuidv7Hex } from '../../lib/ids.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { Role, TokenView } from '../../model/wire.ts'
import { forUpdate } from '../../store/bulk.ts'
import { appendEvents } from '../../store/events.ts'
import { insertToken, listTokens as list, revokeToken as revoke, tokenById, type TokenRow } from '../../store/tokens.ts'
import type { Tx } from '../../store/store.ts'
import { projectFor, requireAdmin, seesProject, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { event } from '../record.ts'
import { requireKnown, requireLiving } from '../known.ts'
import { iso, isoOrNull } from '../views.ts'

export const tokenPrefix = 'lhx_'
/** What the database keeps of a token. */
export const hashOfToken = (token: string): string => createHash('sha256').update(token).digest('hex')

export const tokenView = (row: TokenRow): TokenView => ({
  id: row.id,
  name: row.name,
  role: row.role,
  project: row.project,
  createdAt: iso(row.created_at),
  expiresAt: isoOrNull(row.expires_at),
  revokedAt: isoOrNull(row.revoked_at),
})

export interface TokenInput {
  /** The owner of what is made with it. */
  name: string
  role: Role
  /** Missing or null: every project for an admin of every project, else the admin's own. */
  project?: string | null
  /** Missing or null: until it is revoked. */
  expiresInSeconds?: number | null
}

// Without a colon, which only the names that we give ourselves have; `system` is the pipelines' own.
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,62}$/
const longestSeconds = 10 * 366 * 86_400

const checkInput = (input: TokenInput): void => {
  if (!namePattern.test(input.name) || input.name === 'system')
    throw new LeaseholdError(
      'bad_request',
      `name: "${input.name}" can't be one; take letters, digits and . _ @ + -, at most 63, a letter or digit first, and not "system"`,
    )
  const seconds = input.expiresInSeconds ?? 1
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > longestSeconds)
    throw new LeaseholdError(
      'bad_request',
      `expiresInSeconds: ${seconds} is no whole number from 1 to ${longestSeconds}; leave it out for a token without an end`,
    )
}

/** In the caller's transaction. @returns the row, and the secret that nobody can read again */
export const makeToken = async (
  tx: Tx,
  by: string,
  input: TokenInput & { project: string | null },
  given?: string,
): Promise<{ row: TokenRow; secret: string }> => {
  const secret = given ?? newSecret(tokenPrefix)
  const row = await insertToken(tx, {
    id: `tk_${uuidv7Hex(tx.now)}`,
    name: input.name,
    role: input.role,
    project: input.project,
    hash: hashOfToken(secret),
    expires_at: input.expiresInSeconds == null ? null : tx.now + input.expiresInSeconds * 1000,
  })
  const targets = [{ type: 'token', id: row.id, name: row.name }]
  await appendEvents(tx, [event(tx, 'token.created', { role: row.role }, { project: row.project, actor: by, targets })])
  return { row, secret }
}

/** Leases belong to names: who has a token of the same one ends them too. */
const sameName = async (tx: Tx, { id, name, project }: TokenRow): Promise<string[]> => {
  const rows = await tx.db.selectFrom('tokens').selectAll().where('name', '=', name).where('revoked_at', 'is', null).execute()
  const others = rows.filter(
    (one) =>
      one.id !== id &&
      (one.expires_at === null || one.expires_at > tx.now) &&
      (one.project === project || one.project === null || project === null),
  )
  const [other] = others
  if (other === undefined) return []
  return [
    `token ${other.id} has the name "${name}" too: both are one owner, and each may end the leases of the other; give it another name where that is not meant`,
  ]
}

/**
 * An admin of one project makes tokens for that project only.
 * @throws LeaseholdError forbidden, bad_request, not_found
 */
export const createToken = async (
  context: EngineContext,
  actor: Actor,
  input: TokenInput,
): Promise<{ token: TokenView; secret: string; warnings: string[] }> => {
  requireAdmin(actor)
  checkInput(input)
  const project = input.project == null ? actor.project : projectFor(actor, input.project)
  const { row, secret, warnings } = await context.store.write(async (tx) => {
    if (project !== null) await requireLiving(tx, actor, project)
    const made = await makeToken(tx, actor.name, { ...input, project })
    return { ...made, warnings: await sameName(tx, made.row) }
  })
  return { token: tokenView(row), secret, warnings }
}

export const listTokens = async (context: EngineContext, actor: Actor, project?: string): Promise<TokenView[]> => {
  requireAdmin(actor)
  const rows = await context.store.read(async (session) => list(session, await requireKnown(context, session, actor, { project })))
  return rows.map(tokenView)
}

/** Nobody could ever make a token again. */
const refuseTheLast = async (tx: Tx, row: TokenRow): Promise<void> => {
  if (row.role !== 'admin' || row.project !== null || row.revoked_at !== null) return
  const rows = await forUpdate(
    tx,
    tx.db.selectFrom('tokens').selectAll().where('role', '=', 'admin').where('project', 'is', null).where('revoked_at', 'is', null),
  ).execute()
  const left = rows.filter((one) => one.id !== row.id && (one.expires_at === null || one.expires_at > tx.now))
  if (left.length === 0)
    throw new LeaseholdError('in_use', `${row.id} is the last token with the role admin over every project; make another one first`)
}

/**
 * At once and for good; revoking twice changes nothing.
 * @throws LeaseholdError forbidden, not_found, in_use for the last admin of every project
 */
export const revokeToken = async (context: EngineContext, actor: Actor, id: string): Promise<TokenView> => {
  requireAdmin(actor)
  const row = await context.store.write(async (tx) => {
    const known = await tokenById(tx, id)
    const visible = known !== undefined && (actor.project === null || (known.project !== null && seesProject(actor, known.project)))
    if (!visible)
      throw new LeaseholdError('not_found', `no token "${id}" is visible to this token; "leasehold token list" lists those that are`)
    if (known.revoked_at !== null) return known
    await refuseTheLast(tx, known)
    const targets = [{ type: 'token', id: known.id, name: known.name }]
    await appendEvents(tx, [event(tx, 'token.revoked', {}, { project: known.project, actor: actor.name, targets })])
    return (await revoke(tx, id)) as TokenRow
  })
  return tokenView(row)
}
