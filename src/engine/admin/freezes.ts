/** Freezes: the stop switch. No removal begins in a frozen scope, or in any with `*`. */
import { LeaseholdError } from '../../model/errors.ts'
import type { FreezeView } from '../../model/wire.ts'
import { appendEvents } from '../../store/events.ts'
import { everyScope, freeze, listFreezes as list, unfreeze, type FreezeRow } from '../../store/holds.ts'
import { wakeHeldRemovals } from '../../store/removals.ts'
import type { Session } from '../../store/store.ts'
import { requireFull, requireOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { event } from '../record.ts'
import { iso } from '../views.ts'
import { auditOperator } from './operator-audit.ts'
import { requireScope, scopesOfProject } from './scopes.ts'

export const freezeView = (row: FreezeRow): FreezeView => ({
  scope: row.scope,
  reason: row.reason,
  createdBy: row.created_by,
  createdAt: iso(row.created_at),
})

const target = (scope: string) => ({ type: 'scope', id: scope, name: scope })

/** Whoever may freeze a scope may let it go on. */
const requireFreezable = async (session: Session, actor: Actor, scope: string): Promise<void> => {
  if (scope !== everyScope) return requireScope(session, actor, scope)
  if (actor.project !== null)
    throw new LeaseholdError(
      'forbidden',
      'stopping every scope, or letting it go on, needs an operator of every project; name a scope of your own',
    )
}

/**
 * Freezing what is frozen replaces the reason.
 * @throws LeaseholdError forbidden, not_found, bad_request
 */
export const addFreeze = async (context: EngineContext, actor: Actor, input: { scope?: string; reason: string }): Promise<FreezeView> => {
  requireOperator(actor)
  const reason = input.reason.trim()
  if (reason === '') throw new LeaseholdError('bad_request', 'reason: say why, for those who find removals stopped')
  const scope = input.scope ?? everyScope
  const row = await context.store.write(async (tx) => {
    await requireFreezable(tx, actor, scope)
    const frozen = await freeze(tx, { scope, reason, created_by: actor.name })
    await appendEvents(tx, [
      event(tx, 'freeze.added', { scope, reason }, { project: actor.project, actor: actor.name, targets: [target(scope)] }),
    ])
    await auditOperator(tx, actor, { project: actor.project, scope }, { action: 'freeze', scope, reason })
    return frozen
  })
  return freezeView(row)
}

/** What concerns the asker: for one project `*` and the scopes of its own backends. */
export const visibleFreezes = async (session: Session, actor: Actor): Promise<FreezeView[]> => {
  const rows = await list(session)
  if (actor.project === null) return rows.map(freezeView)
  const own = await scopesOfProject(session, actor.project)
  return rows.filter((row) => row.scope === everyScope || own.has(row.scope)).map(freezeView)
}

export const listFreezes = async (context: EngineContext, actor: Actor): Promise<FreezeView[]> => {
  requireFull(actor)
  return context.store.read((session) => visibleFreezes(session, actor))
}

/**
 * What it held back is tried again at once.
 * @param reason kept in the audit; optional
 * @throws LeaseholdError forbidden, not_found when the scope is not frozen
 */
export const removeFreeze = async (context: EngineContext, actor: Actor, scope: string, reason?: string): Promise<FreezeView> => {
  requireOperator(actor)
  const row = await context.store.write(async (tx) => {
    const frozen = (await list(tx)).find((one) => one.scope === scope)
    await requireFreezable(tx, actor, scope)
    if (!frozen)
      throw new LeaseholdError(
        'not_found',
        scope === everyScope
          ? 'there is no freeze of every scope'
          : `scope "${scope}" is not frozen; "leasehold freeze --list" shows what is`,
      )
    await unfreeze(tx, scope)
    await appendEvents(tx, [
      event(tx, 'freeze.removed', { scope }, { project: actor.project, actor: actor.name, targets: [target(scope)] }),
    ])
    await auditOperator(tx, actor, { project: actor.project, scope }, { action: 'unfreeze', scope, reason: reason ?? null })
    await wakeHeldRemovals(tx)
    return frozen
  })
  context.signals.wake('remove')
  return freezeView(row)
}
