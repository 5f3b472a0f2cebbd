/** Backends: a project's configuration of a provider. The account behind one is read back from the provider before it is taken in. */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { BackendView } from '../../model/wire.ts'
import type { Provider, ScopeOutcome } from '../../providers/contract.ts'
import { findBackend, insertBackend, listBackends as list, markBackendDeleted, type BackendRow } from '../../store/backends.ts'
import { forUpdate } from '../../store/bulk.ts'
import { listFleets } from '../../store/fleets.ts'
import { appendEvents } from '../../store/events.ts'
import { rememberScope } from '../../store/scopes.ts'
import type { Tx } from '../../store/store.ts'
import { projectFor, requireAdmin, requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { event } from '../record.ts'
import { requireKnown, requireLiving } from '../known.ts'
import { iso, isoOrNull } from '../views.ts'
import { checkName } from './projects.ts'

const secretKey = /secret|token|password|key/i

/** Values under keys that name a secret are replaced, at any depth. */
export const masked = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, secretKey.test(key) && inner !== null ? '***' : masked(inner)]),
  )
}

export const backendView = (row: BackendRow): BackendView => ({
  name: row.name,
  project: row.project,
  provider: row.provider,
  scope: row.scope,
  isDefault: row.is_default === 1,
  config: masked(JSON.parse(row.config)) as Record<string, unknown>,
  createdAt: iso(row.created_at),
  deletedAt: isoOrNull(row.deleted_at),
})

const target = (row: { project: string; name: string }) => ({ type: 'backend', id: `${row.project}/${row.name}`, name: row.name })

export interface BackendInput {
  name: string
  project?: string
  provider: string
  config?: Record<string, unknown>
  /** Missing: true for the first backend of a project that has no default. */
  isDefault?: boolean
}

const providerNamed = (context: EngineContext, name: string): Provider => {
  const provider = context.providers.get(name)
  if (!provider)
    throw new LeaseholdError(
      'bad_request',
      `provider: "${name}" is none that this coordinator has; it has ${[...context.providers.keys()].join(', ')}`,
    )
  return provider
}

const parsedConfig = (provider: Provider, config: unknown): Record<string, unknown> => {
  try {
    return provider.parseConfig(config)
  } catch (error) {
    throw new LeaseholdError('bad_request', `config: ${errorText(error)}`)
  }
}

const scopeOf = (provider: Provider, config: Record<string, unknown>): Promise<ScopeOutcome> =>
  withDeadline(
    `reading the account through ${provider.name}`,
    provider.callDeadlineSeconds * 1000,
    new AbortController().signal,
    (signal) => provider.scope(config, { signal }),
  ).catch((error: unknown) => ({ kind: 'unknown', error: errorText(error) }))

/** @throws LeaseholdError forbidden, bad_request, not_found, already_exists, backend_unavailable when the account can't be read */
export const addBackend = async (context: EngineContext, actor: Actor, input: BackendInput): Promise<BackendView> => {
  requireAdmin(actor)
  checkName('backend', input.name)
  const project = projectFor(actor, input.project)
  const provider = providerNamed(context, input.provider)
  const config = parsedConfig(provider, input.config ?? {})
  const answer = await scopeOf(provider, config)
  if (answer.kind === 'unknown')
    throw new LeaseholdError(
      'backend_unavailable',
      `the account behind backend "${input.name}" can't be read, so nothing was added: ${errorText(answer.error)}. Mend its credentials, its network or --set, and add it again`,
    )
  const row = await context.store.write(async (tx) => {
    await requireLiving(tx, actor, project)
    const isDefault = input.isDefault ?? !(await list(tx, project)).some((one) => one.is_default === 1)
    // The name is looked up first: taking a default away from another backend for one that is then refused would be a change.
    if (await findBackend(tx, project, input.name))
      throw new LeaseholdError(
        'already_exists',
        `project "${project}" has a backend "${input.name}", which may be draining; take another name`,
      )
    const values = {
      project,
      name: input.name,
      provider: provider.name,
      config: JSON.stringify(config),
      scope: answer.scope,
      is_default: isDefault ? 1 : 0,
    }
    if (!(await insertBackend(tx, values)))
      throw new LeaseholdError('already_exists', `project "${project}" has a backend "${input.name}"; take another name`)
    await rememberScope(tx, { name: answer.scope, provider: provider.name, description: answer.description })
    const payload = { provider: provider.name, scope: answer.scope }
    await appendEvents(tx, [event(tx, 'backend.created', payload, { project, actor: actor.name, targets: [target(values)] })])
    return (await findBackend(tx, project, input.name)) as BackendRow
  })
  return backendView(row)
}

export const listBackends = async (context: EngineContext, actor: Actor, project?: string): Promise<BackendView[]> => {
  requireFull(actor)
  const rows = await context.store.read(async (session) => list(session, await requireKnown(context, session, actor, { project })))
  return rows.map(backendView)
}

/** A fleet would go on asking for boxes where none may be made. */
const refuseForFleets = async (tx: Tx, project: string, backend: string): Promise<void> => {
  const fleets = (await listFleets(tx, project)).filter((row) => row.backend === backend && row.deleted_at === null)
  if (fleets.length === 0) return
  const names = fleets.map((row) => row.name)
  throw new LeaseholdError('in_use', `backend "${backend}" keeps boxes ready (fleet ${names.join(', ')}); "leasehold fleet delete" first`)
}

/**
 * Marks it draining: it takes no new lease, and its row stays until nothing of ours is left there (orphans R34, R100). Deleting twice changes nothing.
 * @throws LeaseholdError forbidden, not_found, in_use while live leases or fleets are on it
 */
export const deleteBackend = async (context: EngineContext, actor: Actor, name: string, named?: string): Promise<BackendView> => {
  requireAdmin(actor)
  const project = projectFor(actor, named)
  const row = await context.store.write(async (tx) => {
    const known = await forUpdate(
      tx,
      tx.db.selectFrom('backends').selectAll().where('project', '=', project).where('name', '=', name),
    ).executeTakeFirst()
    if (!known) {
      if (named !== undefined) await requireKnown(context, tx, actor, { project })
      throw new LeaseholdError('not_found', `project "${project}" has no backend "${name}"; "leasehold backend list" shows all`)
    }
    if (known.deleted_at !== null) return known
    const live = await tx.db
      .selectFrom('leases')
      .select('id')
      .where('project', '=', project)
      .where('backend', '=', name)
      .where('state', 'in', ['provisioning', 'active'])
      .limit(5)
      .execute()
    if (live.length > 0)
      throw new LeaseholdError(
        'in_use',
        `backend "${name}" has live leases (${live.map((one) => one.id).join(', ')}${live.length === 5 ? ', …' : ''}); release them first`,
      )
    await refuseForFleets(tx, project, name)
    await markBackendDeleted(tx, project, name)
    await appendEvents(tx, [event(tx, 'backend.deleted', {}, { project, actor: actor.name, targets: [target(known)] })])
    return (await findBackend(tx, project, name)) as BackendRow
  })
  return backendView(row)
}
