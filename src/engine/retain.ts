/**
 * What is over goes after its time, in small pages: events (orphans R86), the rows of what has ended and is proved gone, resolved findings, certificates that no
 * removal stands on. Audit records, removals, attempts, the ledger and the events of a deletion are kept for ever; who reads them later has to find the whole chain.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { errorText } from '../lib/redact.ts'
import { isLasting } from '../model/codes.ts'
import { defaultRetainDays } from '../model/config.ts'
import { compact, dropResolvedFindings, dropSweepsAfter, readEnded, type Place } from '../store/compacted.ts'
import { expireEventsAfter } from '../store/events.ts'
import type { EngineContext } from './context.ts'

const everyMs = 3_600_000
const page = 100

/** In ms. */
export interface RetainPolicy {
  leasesMs: number
  findingsMs: number
  sweepsMs: number
}
const defaultMs = defaultRetainDays * 86_400_000
export const defaultRetain: RetainPolicy = { leasesMs: defaultMs, findingsMs: defaultMs, sweepsMs: defaultMs }

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

/**
 * Lets go of what is older than the policy says. Each page is a transaction of its own, and what stands in the way of one row holds up no other.
 * @returns how much went
 */
export const compactOld = async (
  { store }: Pick<EngineContext, 'store'>,
  policy: RetainPolicy,
  stopped = () => false,
): Promise<{ instances: number; findings: number }> => {
  const now = await store.now()
  const went = { instances: 0, findings: 0 }
  for (let after: Place = { at: 0, id: '' }; !stopped();) {
    const from = after
    const ended = await store.read((session) => readEnded(session, now - policy.leasesMs, page, from))
    const last = ended.at(-1)
    if (!last) break
    after = last
    const ids = ended.map((one) => one.id)
    went.instances += await store.write((tx) => compact(tx, ids))
    await yieldToOthers()
  }
  while (!stopped()) {
    const dropped = await store.write((tx) => dropResolvedFindings(tx, now - policy.findingsMs, page))
    went.findings += dropped
    if (dropped === 0) break
    await yieldToOthers()
  }
  for (let after: Place | null = { at: 0, id: '' }; after !== null && !stopped();) {
    const from: Place = after
    after = await store.write((tx) => dropSweepsAfter(tx, now - policy.sweepsMs, page, from))
    await yieldToOthers()
  }
  return went
}

export const createRetention = (context: EngineContext, ttlMs: number, policy: RetainPolicy): Retention => {
  let timer: NodeJS.Timeout | undefined
  let stopping = false
  let after = ''
  let pass: Promise<void> = Promise.resolve()
  const run = (): void => {
    pass = pass.then(async () => {
      try {
        after = await expireEvents(context, ttlMs, after, () => stopping)
        await compactOld(context, policy, () => stopping)
      } catch (error) {
        context.log.error({ error: errorText(error) }, 'what is over could not be let go of; trying again within the hour')
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
