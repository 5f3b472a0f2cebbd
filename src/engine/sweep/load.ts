/** One cleanup with all that its sweep needs: backend, provider, settings, policy. */
import { marginMs, type SweepSettings } from '../../model/sweep-settings.ts'
import type { LimitPolicy } from '../../model/limits.ts'
import type { SweepPolicy } from '../../model/evidence.ts'
import type { HoldFacts } from '../../model/removal.ts'
import type { Provider } from '../../providers/contract.ts'
import { findBackend, type BackendRow } from '../../store/backends.ts'
import type { CleanupRow } from '../../store/cleanups.ts'
import { standingHolds } from '../../store/holds.ts'
import type { EngineContext } from '../context.ts'
import { ownOf } from '../own.ts'

export interface SweepWork {
  cleanup: CleanupRow
  backend: BackendRow
  provider: Provider & Required<Pick<Provider, 'list'>>
  config: Record<string, unknown>
  settings: SweepSettings
  limits: LimitPolicy
  marginMs: number
}

const canList = (provider: Provider | undefined): provider is SweepWork['provider'] => provider?.list !== undefined

/** Undefined: this binary can't list it. */
export const sweepWork = (context: EngineContext, cleanup: CleanupRow, backend: BackendRow): SweepWork | undefined => {
  const provider = context.providers.get(backend.provider)
  if (!canList(provider)) return undefined
  return {
    cleanup,
    backend,
    provider,
    config: JSON.parse(backend.config) as Record<string, unknown>,
    settings: context.sweepSettings(backend.provider),
    limits: context.limits,
    marginMs: marginMs(backend.provider, provider.visibilitySeconds),
  }
}

/** For a look that writes nothing: as the first sweep of the backend would have it, whether it is enrolled or not. */
export const unenrolledWork = (context: EngineContext, backend: BackendRow): SweepWork | undefined =>
  sweepWork(
    context,
    {
      id: `${backend.project}/${backend.name}`,
      project: backend.project,
      backend: backend.name,
      enrolled_at: 0,
      clean_at: null,
      clean_mode: null,
      failures: 0,
      listed_at: null,
      outcome: null,
      requested_at: null,
      let_pass: null,
      waits_until: null,
      due_at: null,
      lock_fence: 0,
      lock_owner: null,
      lock_until: null,
    },
    backend,
  )

/** Undefined: there is nothing to sweep (any more), or this binary can't list it. */
export const loadSweep = async (context: EngineContext, id: string): Promise<SweepWork | undefined> => {
  const { cleanup, backend } = await context.store.read(async (session) => {
    const row = await session.db.selectFrom('cleanups').selectAll().where('id', '=', id).executeTakeFirst()
    return { cleanup: row, backend: row ? await findBackend(session, row.project, row.backend) : undefined }
  })
  return cleanup && backend ? sweepWork(context, cleanup, backend) : undefined
}

/** @param scope the account as the provider itself names it now */
export const policyOf = async (context: EngineContext, work: SweepWork, scope: string, now: number): Promise<SweepPolicy> => {
  const { holds, own } = await context.store.read(async (session) => ({
    holds: await standingHolds(session, now),
    own: await ownOf(session, context.installation.installation_id, work.provider.writesMac === true),
  }))
  return {
    installation: context.installation.installation_id,
    project: work.backend.project,
    provider: work.backend.provider,
    scope,
    ownerKind: work.provider.ownerKind,
    kinds: work.provider.kinds,
    ...(work.provider.topology ? { topology: work.provider.topology(work.config) } : {}),
    marginMs: work.marginMs,
    attemptMs: work.provider.createDeadlineSeconds * 1000,
    holds: holds.map((row): HoldFacts => ({ id: row.id, targetType: row.target_type, targetId: row.target_id })),
    own,
  }
}
