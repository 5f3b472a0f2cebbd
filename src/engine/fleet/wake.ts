/** Something of a fleet changed: it is looked at now rather than at its next turn. Lost, it costs a moment and nothing else. */
import { wakeRow } from '../../store/due.ts'
import { fleetId } from '../../store/fleets.ts'
import type { EngineContext } from '../context.ts'

/** In a transaction of its own, after the change: whoever takes a box never waits for the fleet's row. */
export const wakeFleet = async (context: EngineContext, project: string, fleet: string): Promise<void> => {
  await context.store.write((tx) => wakeRow(tx, 'fleets', fleetId(project, fleet)))
  context.signals.wake('fleet')
}
