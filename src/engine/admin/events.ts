/** The feed of what happened, as a reader sees it: its own project's events, or all for a token over every project. */
import type { EventView } from '../../model/wire.ts'
import { newestEvent, readEvents, type EventRow, type EventTargetRow } from '../../store/events.ts'
import { requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { requireKnown } from '../known.ts'
import { iso } from '../views.ts'
import type { FeedWatch } from './feed-watch.ts'

const eventView = ({ event, targets }: { event: EventRow; targets: readonly EventTargetRow[] }): EventView => ({
  id: event.id,
  seq: event.seq as number,
  at: iso(event.at),
  code: event.code,
  level: event.level,
  project: event.project,
  actor: event.actor,
  message: event.message,
  targets: targets.map(({ type, id, name }) => ({ type, id, name })),
  payload: JSON.parse(event.payload) as Record<string, unknown>,
})

export interface FeedInput {
  /** `newest` starts at the end: only what comes. */
  after: number | 'newest'
  /** Backwards: the newest `limit` before this number, oldest first; `newest`: before whatever comes. Does not wait. */
  before?: number | 'newest'
  limit: number
  /** An id or a name; owners that no longer exist included (orphans R84). */
  target?: string
  project?: string
  /** How long to wait for the first event, in ms. */
  waitMs: number
  signal: AbortSignal
}

export interface Feed {
  events: EventView[]
  /** Where to go on: past events of others too, so that nobody reads them over and over. */
  next: number
}

/** Waits without a database connection until there is something for this reader, `waitMs` at most. */
export const readFeed = async (context: EngineContext, watch: FeedWatch, actor: Actor, input: FeedInput): Promise<Feed> => {
  requireFull(actor)
  const { store } = context
  const project = await store.read((session) => requireKnown(context, session, actor, { project: input.project }))
  const filter = { project, limit: input.limit, target: input.target ?? null }
  if (input.before !== undefined) {
    const newest = await newestEvent(store)
    const before = input.before === 'newest' ? newest + 1 : input.before
    return { events: (await readEvents(store, { ...filter, after: 0, before })).map(eventView), next: newest }
  }
  const end = performance.now() + input.waitMs
  let after = input.after === 'newest' ? await newestEvent(store) : input.after
  for (;;) {
    // Before the read: whatever has a number up to here is seen by the read, so the reader may go on from here.
    const newest = await newestEvent(store)
    const found = newest > after ? await readEvents(store, { ...filter, after }) : []
    const last = found.at(-1)?.event.seq ?? after
    const next = found.length < input.limit ? Math.max(newest, last) : last
    const left = end - performance.now()
    if (found.length > 0 || left <= 0 || input.signal.aborted) return { events: found.map(eventView), next: Math.max(next, after) }
    after = Math.max(next, after)
    await watch.beyond(after, left, input.signal)
  }
}
