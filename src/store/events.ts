/**
 * The feed of what happened. Events are written in the transaction of the state that they report; a publisher numbers them
 * after the commit, so that a follower who has read up to a number has missed nothing below it.
 */
import { sql, type Selectable } from 'kysely'
import { insertEach, rowsIn } from './bulk.ts'
import type { EventsTable, EventTargetsTable } from './schema.ts'
import type { Store, Tx } from './store.ts'

export type EventRow = Selectable<EventsTable>
export type EventTargetRow = Selectable<EventTargetsTable>
export type NewEvent = Omit<EventRow, 'seq' | 'at' | 'payload'> & {
  payload: Record<string, unknown>
  targets: Omit<EventTargetRow, 'event_id'>[]
}

/** "leaseevt" in ASCII, for PostgreSQL's advisory lock: one publisher at a time. */
const publisherLock = '7810765853811144308'
const batch = 500

export const appendEvents = async (tx: Tx, all: readonly NewEvent[]): Promise<void> => {
  tx.feed?.written(all)
  const events = tx.feed ? all.filter((event) => tx.feed?.stores(event.code)) : all
  if (events.length === 0) return
  await insertEach(
    tx,
    'events',
    events.map(({ targets: _, payload, ...event }) => ({ ...event, payload: JSON.stringify(payload), seq: null, at: tx.now })),
  )
  await insertEach(
    tx,
    'event_targets',
    events.flatMap((event) => event.targets.map((target) => ({ ...target, event_id: event.id }))),
  )
}

/** Nobody numbers, and nobody takes numbered ones away, meanwhile. */
const alone = async (tx: Tx): Promise<void> => {
  if (tx.dialect === 'postgresql') await sql.raw(`select pg_advisory_xact_lock(${publisherLock})`).execute(tx.db)
}

const publish = async (store: Store): Promise<void> => {
  const waiting = await store.read((session) =>
    session.db.selectFrom('events').select('id').where('seq', 'is', null).limit(batch).execute(),
  )
  if (waiting.length === 0) return
  await store.write(async (tx) => {
    await alone(tx)
    await sql`update events set seq = v.seq from
      (select id, row_number() over (order by at, id) + (select coalesce(max(seq), 0) from events) as seq from
        (select id, at from events where seq is null order by at, id limit ${batch}) as waiting) as v
      where events.id = v.id`.execute(tx.db)
  })
  if (waiting.length === batch) await publish(store)
}

export interface EventFilter {
  project: string | null
  /** Only events after this number. */
  after: number
  /** Only events before this number, the newest of them; still oldest first. */
  before?: number
  limit: number
  /** An id or a name of a target; owners that no longer exist included. */
  target: string | null
}

export const readEvents = async (store: Store, filter: EventFilter): Promise<{ event: EventRow; targets: EventTargetRow[] }[]> => {
  await publish(store)
  return store.read(async (session) => {
    const { before } = filter
    const found = await session.db
      .selectFrom('events')
      .selectAll()
      .where('seq', '>', filter.after)
      .$if(before !== undefined, (query) => query.where('seq', '<', before as number))
      .$if(filter.project !== null, (query) => query.where('project', '=', filter.project))
      .$if(filter.target !== null, (query) =>
        query.where('id', 'in', (sub) =>
          sub
            .selectFrom('event_targets')
            .select('event_id')
            .where((where) =>
              where.or([
                where('event_targets.id', '=', filter.target as string),
                where('event_targets.name', '=', filter.target as string),
              ]),
            ),
        ),
      )
      .orderBy('seq', before === undefined ? 'asc' : 'desc')
      .limit(filter.limit)
      .execute()
    const events = before === undefined ? found : found.toReversed()
    const targets =
      events.length === 0
        ? []
        : await session.db
            .selectFrom('event_targets')
            .selectAll()
            .where(
              'event_id',
              'in',
              events.map((event) => event.id),
            )
            .execute()
    const byEvent = Map.groupBy(targets, (target) => target.event_id)
    return events.map((event) => ({ event, targets: byEvent.get(event.id) ?? [] }))
  })
}

/** The newest number given so far: where a follower starts who wants only what comes. */
export const newestEvent = async (store: Store): Promise<number> => {
  await publish(store)
  return store.read(async (session) =>
    Number(
      (
        await session.db
          .selectFrom('events')
          .select((s) => s.fn.max('seq').as('seq'))
          .executeTakeFirst()
      )?.seq ?? 0,
    ),
  )
}

const expiringPage = 1000

/**
 * Removes one page of events from before `cutoff` (ms). Their ids are in the order of their times, so what is to be kept is passed once and not read again.
 * The newest number stays, whatever its age: numbers go on from it, and a follower who has read up to it would else miss what comes.
 * @param after the id where the page before ended; '': from the beginning
 * @param goes may this code go?
 * @returns the id where this page ended; null: there is no older one
 */
export const expireEventsAfter = async (
  store: Store,
  after: string,
  cutoff: number,
  goes: (code: string) => boolean,
): Promise<string | null> => {
  const end = `ev_${Math.max(0, cutoff).toString(16).padStart(12, '0')}`
  const page = await store.read((session) =>
    session.db
      .selectFrom('events')
      .select(['id', 'code', 'at'])
      .where('id', '>', after)
      .where('id', '<', end)
      .orderBy('id')
      .limit(expiringPage)
      .execute(),
  )
  const last = page.at(-1)
  if (!last) return null
  const ids = page.filter((row) => row.at < cutoff && goes(row.code)).map((row) => row.id)
  if (ids.length === 0) return last.id
  await store.write(async (tx) => {
    await alone(tx)
    const newest =
      (
        await tx.db
          .selectFrom('events')
          .select((s) => s.fn.max('seq').as('seq'))
          .executeTakeFirst()
      )?.seq ?? null
    const going = (await rowsIn(tx, 'events', 'id', ids)).filter((row) => row.seq === null || row.seq !== newest).map((row) => row.id)
    if (going.length === 0) return
    await tx.db.deleteFrom('event_targets').where('event_id', 'in', going).execute()
    await tx.db.deleteFrom('events').where('id', 'in', going).execute()
  })
  return last.id
}
