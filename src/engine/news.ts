/**
 * What one replica's signals tell the others: which pipelines may have work, and which leases changed. Told in groups, a few milliseconds after the first, so
 * that a busy replica costs the database a few statements a second; what is lost on the way is found by the pipelines' ticks and by polling.
 */
import { errorText } from '../lib/redact.ts'
import type { News } from '../store/store.ts'
import type { Log } from './context.ts'
import { pipelineNames, type PipelineName, type Signals } from './signals.ts'

const togetherMs = 10
/** Below the 8,000 bytes that a notification may have. Of more leases nobody is told: whoever waits for one looks again by itself. */
const mostLeases = 200

interface Told {
  from: string
  wake: PipelineName[]
  changed: string[]
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isPipeline = (value: unknown): value is PipelineName => (pipelineNames as readonly unknown[]).includes(value)

/** Of whatever version the teller is: what is not understood is left out. */
const read = (text: string): Told | null => {
  try {
    const { from, wake, changed } = JSON.parse(text) as Record<string, unknown>
    if (!isText(from)) return null
    return { from, wake: Array.isArray(wake) ? wake.filter(isPipeline) : [], changed: Array.isArray(changed) ? changed.filter(isText) : [] }
  } catch {
    return null
  }
}

export interface Newsroom {
  start(): Promise<void>
  stop(): Promise<void>
}

export const createNewsroom = (news: News | undefined, replicaId: string, signals: Signals, log: Log): Newsroom => {
  if (news === undefined) return { start: async () => {}, stop: async () => {} }
  const wake = new Set<PipelineName>()
  const changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let unsubscribe: (() => Promise<void>) | undefined

  const flush = (): void => {
    timer = undefined
    const told: Told = { from: replicaId, wake: [...wake], changed: [...changed] }
    wake.clear()
    changed.clear()
    news.publish(JSON.stringify(told)).catch((error: unknown) => log.debug({ error: errorText(error) }, 'other replicas could not be told'))
  }
  const soon = (): void => {
    if (unsubscribe !== undefined) timer ??= setTimeout(flush, togetherMs)
  }
  signals.onSaid({
    wake: (pipeline) => {
      wake.add(pipeline)
      soon()
    },
    changed: (leaseId) => {
      if (changed.size < mostLeases) changed.add(leaseId)
      soon()
    },
  })
  return {
    async start() {
      unsubscribe = await news.subscribe(
        (text) => {
          const told = read(text)
          if (told !== null && told.from !== replicaId) signals.hear(told)
        },
        () => signals.hear({ wake: pipelineNames, changed: [] }),
      )
    },
    async stop() {
      const end = unsubscribe
      unsubscribe = undefined
      clearTimeout(timer)
      timer = undefined
      await end?.()
    },
  }
}
