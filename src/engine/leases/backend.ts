/** Which backend a lease is made on, and the account behind it. */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { ScopeId } from '../../model/ids.ts'
import { listBackends, setBackendScope, type BackendRow } from '../../store/backends.ts'
import { rememberScope } from '../../store/scopes.ts'
import type { Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { refuseBackend, requireLiving } from '../known.ts'
import type { Place } from '../placeholder.ts'

const unavailable = (message: string): never => {
  throw new LeaseholdError('backend_unavailable', message)
}

/** Without `backend` and `provider`: the project's default. With a provider: the default if it fits, else the first that does. */
const pick = (rows: readonly BackendRow[], project: string, wanted: { backend?: string; provider?: string }): BackendRow => {
  const usable = rows.filter((row) => row.deleted_at === null)
  if (wanted.backend !== undefined) {
    const named = usable.find((row) => row.name === wanted.backend) ?? refuseBackend(project, wanted.backend, usable)
    if (wanted.provider !== undefined && named.provider !== wanted.provider)
      unavailable(`backend "${named.name}" is of provider ${named.provider}, not ${wanted.provider}`)
    return named
  }
  const byDefault = usable.toSorted((a, b) => b.is_default - a.is_default)
  if (wanted.provider !== undefined)
    return (
      byDefault.find((row) => row.provider === wanted.provider) ??
      unavailable(`project "${project}" has no backend of provider "${wanted.provider}"; "leasehold backend add" makes one`)
    )
  return (
    byDefault.find((row) => row.is_default === 1) ??
    unavailable(`project "${project}" has no default backend; name one with "backend", or set one`)
  )
}

/** Reads the account back from the provider once, and keeps it; nothing is created in an unknown one. */
export const ensureScope = async (context: EngineContext, backend: BackendRow): Promise<ScopeId> => {
  if (backend.scope !== null) return backend.scope
  const provider = context.providers.get(backend.provider) ?? unavailable(`this coordinator has no provider "${backend.provider}"`)
  const answer = await withDeadline(
    `reading the account of backend ${backend.name}`,
    provider.callDeadlineSeconds * 1000,
    new AbortController().signal,
    (signal) => provider.scope(JSON.parse(backend.config) as Record<string, unknown>, { signal }),
  ).catch((error: unknown) => ({ kind: 'unknown', error: errorText(error) }) as const)
  if (answer.kind === 'unknown') return unavailable(`the account behind backend "${backend.name}" can't be read: ${answer.error}`)
  await context.store.write(async (tx) => {
    await rememberScope(tx, { name: answer.scope, provider: backend.provider, description: answer.description })
    await setBackendScope(tx, backend.project, backend.name, answer.scope)
  })
  return answer.scope
}

/** @throws LeaseholdError bad_request for a project or backend that is not there, backend_unavailable */
export const choosePlace = async (
  context: EngineContext,
  actor: Pick<Actor, 'project'>,
  project: string,
  wanted: { backend?: string; provider?: string },
): Promise<Place> => {
  const rows = await context.store.read(async (session) => {
    await requireLiving(session, actor, project)
    return listBackends(session, project)
  })
  const backend = pick(rows, project, wanted)
  const provider = context.providers.get(backend.provider) ?? unavailable(`this coordinator has no provider "${backend.provider}"`)
  // Where the backend itself says: a lost create is looked for, and its leftover proved ours, in the location of its attempt.
  const locations = provider.locationsOf?.(JSON.parse(backend.config) as Record<string, unknown>) ?? provider.locations
  return {
    backend,
    scope: await ensureScope(context, backend),
    location: locations[0] ?? 'default',
    deadlineMs: provider.createDeadlineSeconds * 1000,
  }
}
