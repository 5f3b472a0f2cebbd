/** May a kind that was denied be listed now? Asked once an interval, and only where something was denied (orphans R102). */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { cellKey } from '../../model/inventory.ts'
import { cellsOf } from '../../store/cells.ts'
import type { EngineContext } from '../context.ts'
import type { SweepWork } from './load.ts'

interface Denied {
  location: string
  kind: string
}

/** Without a probe of its own the provider lists the locations in question, as far as it takes to come to what was denied there. */
const listedNow = async (work: SweepWork, denied: readonly Denied[], signal: AbortSignal): Promise<boolean> => {
  const left = new Set(denied.map(({ location, kind }) => cellKey(location, kind)))
  const locations = [...new Set(denied.map(({ location }) => location))]
  for await (const item of work.provider.list(locations, work.config, { signal })) {
    signal.throwIfAborted()
    if (item.type === 'page' && left.has(cellKey(item.location, item.kind))) return true
    if (item.type !== 'coverage' || !left.delete(cellKey(item.coverage.location, item.coverage.kind))) continue
    if (item.coverage.state.kind === 'complete') return true
    if (left.size === 0) return false
  }
  return false
}

const mayListNow = async (work: SweepWork, denied: readonly Denied[], signal: AbortSignal): Promise<boolean> => {
  const { provider, config } = work
  if (provider.mayList === undefined) return listedNow(work, denied, signal)
  for (const { location, kind } of denied) if (await provider.mayList(location, kind, config, { signal })) return true
  return false
}

/** A probe that fails shows no permission, and is no failure of the account. */
export const deniedKindReadable = async (context: EngineContext, work: SweepWork, signal: AbortSignal): Promise<boolean> => {
  const { project, name: backend, scope } = work.backend
  if (scope === null) return false
  const denied = (await context.store.read((session) => cellsOf(session, { project, backend, scope }))).filter(
    (row) => row.state === 'denied',
  )
  if (denied.length === 0) return false
  try {
    return await withDeadline('the probe of what was denied', work.provider.callDeadlineSeconds * 1000, signal, (inner) =>
      mayListNow(work, denied, inner),
    )
  } catch (error) {
    context.log.debug({ backend: work.cleanup.id, error: errorText(error) }, 'what was denied could not be asked for')
    return false
  }
}
