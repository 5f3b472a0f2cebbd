/** Events go after their time (orphans R86). Audit records and the events of a deletion are kept for ever; who reads them later has to find the whole chain. */
import { errorText } from '../lib/redact.ts'
import { isLasting } from '../model/codes.ts'
import { expireEventsAfter } from '../store/events.ts'
import type { EngineContext } from './context.ts'

const everyMs = 3_600_000

export interface Retention {
  start(): void
  stop(): Promise<void>
}

/**
 * Removes what is older than the time to live, page by page.
 * @param after what an earlier pass answered: it has been looked at
 * @returns where this pass ended
 */
export const expireEvents = async (
  context: Pick<EngineContext, 'store'>,
  ttlMs: number,
  after = '',
  stopped = () => false,
): Promise<string> => {
  const cutoff = (await context.store.now()) - Math.max(0, ttlMs)
  for (let from = after; ;) {
    const next = stopped() ? null : await expireEventsAfter(context.store, from, cutoff, (code) => !isLasting(code))
    if (next === null) return from
    from = next
  }
}

export const createRetention = (context: EngineContext, ttlMs: number): Retention => {
  let timer: NodeJS.Timeout | undefined
  let stopping = false
  let after = ''
  let pass: Promise<void> = Promise.resolve()
  const run = (): void => {
    pass = pass.then(async () => {
      try {
        after = await expireEvents(context, ttlMs, after, () => stopping)
      } catch (error) {
        context.log.error({ error: errorText(error) }, 'old events could not be removed; trying again within the hour')
      }
    })
  }
  return {
    start() {
      run()
      timer = setInterval(run, everyMs)
    },
    async stop() {
      stopping = true
      clearInterval(timer)
      await pass
    },
  }
}
