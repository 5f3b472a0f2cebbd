/**
 * Most cleanups of a large installation are idle: for all that are due, their gates are read in one statement, and those that nothing opens are moved to their
 * next time in another. That is what an idle backend costs in an interval: its part of one query, one row written, no lock, no provider call (orphans R35, R39).
 */
import { nextDue } from '../../model/sweep.ts'
import { marginMs } from '../../model/sweep-settings.ts'
import { putOff } from '../../store/cleanups.ts'
import type { EngineContext } from '../context.ts'
import { gateOf, readDueGates, type DueGate } from './gate.ts'

const batch = 200

/** Is it certain that there is nothing to do? Not where a provider has to be asked, and not where this binary can't list. */
const isIdle = (context: EngineContext, row: DueGate, now: number): boolean => {
  const provider = context.providers.get(row.provider)
  if (provider?.list === undefined) return false
  const settings = context.sweepSettings(row.provider)
  if (settings.mode.value === 'off') return true
  const gate = gateOf({ cleanup: row, settings, marginMs: marginMs(row.provider, provider.visibilitySeconds) }, row, now)
  return gate.reasons.length === 0 && (!gate.denied || gate.circuitOpenUntil !== null)
}

export const settleIdle = async (context: EngineContext, now: number): Promise<'lock' | 'again' | 'done'> => {
  const due = await context.store.read((session) => readDueGates(session, now, batch))
  const idle = due.filter((row) => isIdle(context, row, now))
  if (idle.length > 0)
    await context.store.write((tx) =>
      putOff(
        tx,
        idle.map((row) => ({
          id: row.id,
          lockFence: row.lock_fence,
          seenDueAt: row.due_at ?? 0,
          requestedAt: row.requested_at,
          dueAt: nextDue(tx.now, context.sweepSettings(row.provider).intervalMs.value, 0, Math.random(), null),
        })),
      ),
    )
  // None at all: what is due is a dead worker's, or has lost its backend, and the lock finds it.
  if (due.length === 0 || idle.length < due.length) return 'lock'
  return due.length === batch ? 'again' : 'done'
}
