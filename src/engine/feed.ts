/**
 * What becomes of events besides the feed: each is logged once its transaction has committed, and where none are to be stored that is all that is left of it
 * (orphans R86). The events of a deletion are stored at any setting.
 */
import { isLasting } from '../model/codes.ts'
import type { NewEvent } from '../store/events.ts'
import type { News, Session, Store, Tx } from '../store/store.ts'
import type { Log } from './context.ts'

const levels = { info: 'info', warning: 'warn', error: 'error' } as const

const tell = (log: Log, event: NewEvent, stored: boolean): void => {
  const { code, project, actor, targets } = event
  const fields = { event: code, project, actor, targets: targets.map(({ type, id }) => `${type} ${id}`) }
  // What the feed has and asks for nobody would only double it.
  log[event.level === 'info' && stored ? 'debug' : levels[event.level]](fields, event.message)
}

class FedStore implements Store {
  readonly dialect: Store['dialect']
  readonly description: string
  readonly news?: News
  readonly #store: Store
  readonly #stores: (code: string) => boolean
  readonly #log: Log

  constructor(store: Store, stores: (code: string) => boolean, log: Log) {
    this.dialect = store.dialect
    this.description = store.description
    if (store.news) this.news = store.news
    this.#store = store
    this.#stores = stores
    this.#log = log
  }

  now(): Promise<number> {
    return this.#store.now()
  }

  read<T>(body: (session: Session) => Promise<T>): Promise<T> {
    return this.#store.read(body)
  }

  async write<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    let written: NewEvent[] = []
    const value = await this.#store.write((tx) => {
      // A body may run again from its beginning.
      written = []
      return body({ ...tx, feed: { stores: this.#stores, written: (events) => void written.push(...events) } })
    })
    for (const event of written) tell(this.#log, event, this.#stores(event.code))
    return value
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/** @param ttlMs how long events are kept; 0 or less: they are logged and not stored */
export const withFeed = (store: Store, ttlMs: number, log: Log): Store => new FedStore(store, (code) => ttlMs > 0 || isLasting(code), log)
